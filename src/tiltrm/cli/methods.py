"""The methods of `tiltrm evaluate` as they are typed, with their settings."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tiltrm.cli.values import parse_assignment
from tiltrm.errors import SettingsError
from tiltrm.evaluate.options import NAMES, PLANNED, RULES, settable, tuned_settings
from tiltrm.solving.plans import TunedPlan

TUNED = "tuned"  # a setting of this command: whether adaptive takes the plan of `tiltrm tune`
Asked = tuple[str, dict[str, Any]]  # a method and the settings that were typed with it


def parse_method(text: str) -> Asked:
    """'ptrm:particles=25,select=majority' -> its name and its settings."""
    name, _, rest = text.partition(":")
    if name not in NAMES:
        raise SettingsError(f"method must be one of {', '.join(NAMES)}, got {name!r}")
    parts = re.split(r",\s*(?=[a-z_]+=)", rest)  # a comma inside a list begins no setting
    return name, settings_from([part for part in parts if part])


def settings_from(texts: Sequence[str]) -> dict[str, Any]:
    """Settings from KEY=VALUE each; none may be given twice."""
    found: dict[str, Any] = {}
    for name, value in map(parse_assignment, texts):
        if name in found:
            raise SettingsError(f"expected every setting once, got {name} again; leave one out")
        found[name] = value
    return found


def method_settings(
    asked: Sequence[Asked], shared: Mapping[str, Any], task: str, tuned: TunedPlan | None,
    extra: Sequence[str] = (),
) -> Iterator[Asked]:  # fmt: skip
    """The settings of every method; a shared setting goes to the methods that have it.

    Args:
        asked: The methods with settings of their own.
        shared: Settings of --set; SettingsError if no method has one of them.
        task: The name of the task.
        tuned: The plan that `tiltrm tune` stored, which adaptive takes unless told otherwise.
        extra: Further settings that every method has.
    """
    having = {
        method: (*settable(method, task), *extra, *((TUNED,) if method in PLANNED else ()))
        for method, _ in asked
    }
    unlimited = [method for method, names in having.items() if "seconds" not in names]
    if "seconds" in shared and unlimited:
        raise SettingsError(
            f"--seconds must go with methods that can be stopped, got {', '.join(unlimited)}, "
            "which cannot; leave one out"
        )
    for name in shared:
        if not any(name in names for names in having.values()):
            every = sorted({known for names in having.values() for known in names})
            raise SettingsError(
                f"expected a setting among {', '.join(every)} for {', '.join(having)}, got {name}; "
                "leave it out or choose another method"
            )
    for method, own in asked:
        settings = {n: v for n, v in shared.items() if n in having[method]} | own
        wanted = settings.pop(TUNED, True)
        if method in PLANNED and tuned is not None and wanted and "stages" not in settings:
            method = RULES if tuned.rules and "halt_above" not in settings else method
            settings = tuned_settings(method, tuned) | settings
        yield method, settings
