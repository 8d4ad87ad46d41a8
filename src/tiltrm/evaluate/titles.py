"""What a method with its settings is called in a table."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from tiltrm.evaluate.options import PLANNED, RECORDS, STEERING, TURNED, plan_of, usually
from tiltrm.explore.plan import Adaptive, Stage
from tiltrm.methods import plan, usual_plan


def title(method: str, settings: Iterable[tuple[str, Any]], task: str) -> str:
    """'guided', or 'guided, particles 4' where that is not what it has on this task."""
    usual, own, said = usually(method, task), dict(settings), []
    if method in PLANNED:
        said = list(_planned(plan_of(own), usual_plan(task)))
        own = {n: value for n, value in own.items() if n not in ("stages", TURNED, *STEERING)}
    said += [f"{n} {v}" for n, v in own.items() if n not in RECORDS and v != usual.get(n)]
    return ", ".join((method, *said))


def _planned(own: Adaptive, usual: Adaptive) -> Iterator[str]:
    """Where a plan differs from the usual one: its sizes if they tell it, else every stage."""
    if own.turned != usual.turned:
        yield TURNED if own.turned else f"not {TURNED}"
    for name in ("beta", "resample_below"):
        if getattr(own, name) != getattr(usual, name):
            yield f"{name} {getattr(own, name)}"
    noise = f"noise {own.noise}"
    steps = {"outer_steps": own.outer_steps}
    most = {"particles": max(stage.particles for stage in own.stages)}
    for base, said in ((usual, ()), (usual.with_noise(own.noise), (noise,))):
        for sizes in ({}, steps, most, most | steps):
            if base.noise == own.noise and plan(sizes, base).stages == own.stages:
                yield from (*said, *_sized(sizes))
                return
    if own.noise != usual.noise:
        yield noise
    yield shapes(own.stages)


def _sized(sizes: Mapping[str, int]) -> Iterator[str]:
    if "particles" in sizes:
        yield f"at most {sizes['particles']} particles"
    if "outer_steps" in sizes:
        yield f"{sizes['outer_steps']} steps"


def shapes(stages: Iterable[Stage]) -> str:
    """1x20 2x16*4: so many particles for so many steps, so many times."""
    return " ".join(_shape(stage, len(list(same))) for stage, same in groupby(stages))


def _shape(stage: Stage, times: int) -> str:
    noise = "" if stage.noise is None else f"@{stage.noise:g}"
    again = f"*{times}" if times > 1 else ""
    return f"{stage.particles}x{stage.outer_steps}{noise}{'+' * stage.goes_on}{again}"
