"""What a method with its settings is called in a table."""

from collections.abc import Iterable
from typing import Any

from tiltrm.evaluate.options import PLANNED, RECORDS, TURNED, listed, steps_of, usually
from tiltrm.methods import usual_plan


def title(method: str, settings: Iterable[tuple[str, Any]], task: str) -> str:
    """'guided', or 'guided, particles 4' where that is not what it has on this task."""
    usual = usually(method, task)
    said = []
    own = dict(settings)
    if method in PLANNED and own["noise"] != usual["noise"]:  # then all stages have it
        usual["stages"] = listed(usual_plan(task).with_noise(own["noise"]))
    turned = own.pop(TURNED, False)
    if method in PLANNED and turned != usual_plan(task).turned:
        said.append(TURNED if turned else f"not {TURNED}")
    for name, value in own.items():
        if name == "stages" and value != usual[name]:
            said.append(f"{steps_of(value)} steps")
        elif name not in RECORDS and value != usual.get(name):
            said.append(f"{name} {value}")
    return ", ".join((method, *said))
