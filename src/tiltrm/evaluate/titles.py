"""The title of a method with its settings, for tables and figures."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tiltrm.evaluate.options import PLANNED, RECORDS, STEERING, TURNED, default_settings, plan_of
from tiltrm.explore.plan import Adaptive, format_stages
from tiltrm.settings import ADAPTIVE
from tiltrm.solving import default_plan, resized_plan
from tiltrm.tasks.registry import defaults_of

LONGEST = 60  # characters of a plan in a title


def title(method: str, settings: Iterable[tuple[str, Any]], task: str) -> str:
    """'guided', or 'guided, particles 4' where that is not the default on this task."""
    usual, own, said = default_settings(method, task), dict(settings), []
    if method in PLANNED:
        said = list(_planned(plan_of(own), default_plan(task)))
        own = {n: value for n, value in own.items() if n not in ("stages", TURNED, *STEERING)}
    if method == ADAPTIVE:
        usual = {"shortest_visited": False, **usual, **defaults_of(task).stopping}
        own.setdefault("shortest_visited", False)
    said += [f"{n} {v}" for n, v in own.items() if n not in RECORDS and v != usual.get(n)]
    return ", ".join((method, *said))


def _planned(own: Adaptive, usual: Adaptive) -> Iterator[str]:
    """The differences to the usual plan: the sizes if they suffice, else every stage."""
    if own.symmetric_views != usual.symmetric_views:
        yield TURNED if own.symmetric_views else f"not {TURNED}"
    if not own.symmetric_views:
        usual = usual.without_guesses()  # as `complete` does
    for name in STEERING[1:]:  # the noise belongs to the stages
        if getattr(own, name) != getattr(usual, name):
            yield f"{name} {getattr(own, name)}"
    noise = f"noise {own.noise}"
    steps = {"outer_steps": own.outer_steps}
    most = {"particles": max(stage.particles for stage in own.stages)}
    for base, said in ((usual, ()), (usual.with_noise(own.noise), (noise,))):
        for sizes in ({}, steps, most, most | steps):
            if base.noise == own.noise and resized_plan(base, sizes).stages == own.stages:
                yield from (*said, *_sized(sizes))
                return
    if own.noise != usual.noise:
        yield noise
    yield _shortened(own)


def _shortened(plan: Adaptive) -> str:
    """All stages if they fit into a table, else the first and the last of them."""
    stages = format_stages(plan.stages)
    if len(stages) <= LONGEST:
        return stages
    first, *_, last = stages.split(" ")
    return f"{first} .. {last} ({len(plan.stages)} stages, {plan.outer_steps} steps)"


def _sized(sizes: Mapping[str, int]) -> Iterator[str]:
    if "particles" in sizes:
        yield f"at most {sizes['particles']} particles"
    if "outer_steps" in sizes:
        yield f"{sizes['outer_steps']} steps"
