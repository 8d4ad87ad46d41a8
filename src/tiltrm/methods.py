"""The methods of `solve`: what each one is, which settings it has, and how names become guides.

adaptive       a growing cloud that stops as soon as the answer is decided (the default)
guided         Algorithm 1 with the paper's settings
unguided       the same noise, no tilt, never resampled; the most frequent answer
deterministic  one trajectory without noise: the model as it was published
ptrm           100 noisy rollouts, noise once per supervision step, the best final score
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import torch
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.explore import Exploration, guides
from tiltrm.explore.adaptive import Adaptive, Stage
from tiltrm.explore.decide import Judge, by_agreement, by_halting, by_rules
from tiltrm.explore.guides import Guide
from tiltrm.model.base import RecursiveModel
from tiltrm.tasks import Maze, Symmetry, Task
from tiltrm.tasks.base import views

Views = tuple[Symmetry, ...]  # one for every stage

ADAPTIVE = "adaptive"
TILTED = Exploration(on_degenerate="abstain", entropy_every=0)
EVEN = replace(TILTED, beta=0.0, trigger="never", potential="terminal")  # weights stay equal
FIXED = {
    "guided": TILTED,
    "unguided": EVEN,
    "deterministic": replace(EVEN, particles=1, noise=0.0),
    "ptrm": replace(EVEN, particles=100, placement="supervision", select="best_score"),
}
METHODS = (ADAPTIVE, *FIXED)

GUIDED = ("particles", "noise", "beta", "resample_below", "outer_steps", "guide")
SETTINGS = {  # what may be set
    "adaptive": (*GUIDED, "rules", "halt_above"),
    "guided": GUIDED,
    "unguided": ("particles", "noise", "outer_steps"),
    "deterministic": ("outer_steps",),
    "ptrm": ("particles", "noise", "outer_steps", "guide"),
}
MAZE: dict[str, dict[str, float]] = {  # where mazes differ: Table 2 of the paper, and PTRM's sigma
    "guided": {"noise": 0.5, "beta": 1.0},
    "unguided": {"noise": 0.5},
    "ptrm": {"noise": 1.0},
}

PLANS = {  # chosen on val and extra: docs/LOG.md. The labels of mazes do not turn along with them
    "sudoku": Adaptive(
        (
            Stage(1, 20),
            *(Stage(2, 16),) * 4,
            *(Stage(4, 16),) * 4,
            *(Stage(8, 24, noise=0.6),) * 4,
            *(Stage(16, 24, noise=0.6),) * 4,
        ),
        noise=0.3,
        turned=True,
    ),
    "maze": Adaptive((Stage(1, 24), Stage(16, 24)), noise=0.5, beta=1.0),
}

LARGEST = {"particles": 2**16, "outer_steps": 2**20}  # beyond these a number is a slip
DECIDE_ABOVE = 2.0  # halt logit of a settled answer, for a model that was never calibrated
AGREED, AGREED_AMONG = 0.9, 16  # share of the particles, in a cloud of at least so many


def numbers(method: str, settings: Mapping[str, Any], task: str) -> dict[str, Any]:
    """The fields of Exploration that are set, None being unset, with what mazes need.

    Raises SettingsError for what the method does not have and for what is out of its range.
    """
    if method not in METHODS:
        raise SettingsError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    given = {name: value for name, value in settings.items() if value is not None}
    foreign = [name for name in given if name not in SETTINGS[method]]
    if foreign:
        raise SettingsError(
            f"the settings of {method} are {', '.join(SETTINGS[method])}, got "
            f"{', '.join(foreign)}; leave it out or choose another method"
        )
    above = given.get("halt_above", 0.0)
    if not isinstance(above, int | float) or not -math.inf <= above <= math.inf:
        raise SettingsError(f"halt_above must be a number, got {above!r}")
    if given.get("rules") and "halt_above" in given:
        raise SettingsError(
            "halt_above must be left out where the rules decide, because they do not ask the "
            f"halting head, got {above}"
        )
    usual: dict[str, Any] = dict(MAZE.get(method, {})) if task == "maze" else {}
    usual |= {n: v for n, v in given.items() if n not in ("guide", "rules", "halt_above")}
    Exploration.from_mapping(usual)  # for its checks
    for name, most in LARGEST.items():
        if usual.get(name, 0) > most:
            raise SettingsError(f"{name} must be at most {most}, got {usual[name]}")
    return usual


def usual_plan(task: str) -> Adaptive:
    """What adaptive solving does with a puzzle of this task, unless told otherwise.

    A task that nobody chose a plan for gets that of Sudoku (docs/LOG.md, on Latin squares); puzzles
    of no task, "", cannot be turned.
    """
    return PLANS.get(task, PLANS["sudoku"]) if task else Adaptive()


def views_of(plan: Adaptive, task: Task, model: RecursiveModel, device: torch.device) -> Views:
    """How the particles of each stage see a puzzle, the very first as it is; () unless turned.

    The same for all puzzles, so that a result depends on neither batch nor order. A task with few
    symmetries, or none but the identity, has its views repeated: noise tells the particles apart.
    """
    if not plan.turned:
        return ()
    seen = []
    for number, stage in enumerate(plan.stages):
        drawn = views(task, stage.particles + 1, seed=number, again=True)  # the first as it is
        own = drawn.part(slice(1, None) if number else slice(-1))
        seen.append(own.on(device, model.vocabulary))
    return tuple(seen)


def plan(settings: Mapping[str, Any], base: Adaptive | None = None) -> Adaptive:
    """The adaptive plan with these settings.

    `particles` is the largest cloud: larger stages are left out, and one of that size comes last.
    `outer_steps` is the most a puzzle gets: stages end there, or the last one goes on until then.
    `noise` is that of all stages.
    """
    base = base or Adaptive()
    rest = dict(settings)
    if base.turned and rest.get("resample_below"):  # copies would have to see it as another does
        base = Adaptive()
    if "noise" in rest:
        base = base.with_noise(rest.pop("noise"))
    stages = base.stages
    if (most := rest.pop("particles", None)) is not None:
        stages = _no_larger(stages, most)
    if (steps := rest.pop("outer_steps", None)) is not None:
        stages = _lasting(stages, steps)
    return replace(base, stages=stages, **rest)


def _no_larger(stages: Sequence[Stage], most: int) -> tuple[Stage, ...]:
    kept = [stage for stage in stages if stage.particles <= most]
    if kept and kept[-1].particles == most:
        return tuple(kept)
    following = stages[min(len(kept), len(stages) - 1)]
    return (*kept, replace(following, particles=most, goes_on=False))


def _lasting(stages: Sequence[Stage], steps: int) -> tuple[Stage, ...]:
    cut: list[Stage] = []
    left = steps
    for stage in stages:
        if left > 0:
            cut.append(replace(stage, outer_steps=min(stage.outer_steps, left)))
            left -= cut[-1].outer_steps
    last = cut[-1]
    return (*cut[:-1], replace(last, outer_steps=last.outer_steps + left))


def judges(
    model: RecursiveModel, halt_above: float | None,
    is_solved: Callable[[Tensor, Tensor], Tensor] | None,
) -> dict[str, Judge]:  # fmt: skip
    """Who may decide a puzzle: the halting head and the cloud, or where `is_solved` is given it.

    It must certify a solution: a maze path without fault may still be too long. Then nobody else is
    asked, because it sees a right answer as soon as there is one and never takes a wrong one.
    """
    if is_solved is not None:
        return {"rules": by_rules(lambda puzzle, answer: (~is_solved(puzzle, answer)).long())}
    calibrated = getattr(model, "decide_above", None)
    above = next((v for v in (halt_above, calibrated) if v is not None), DECIDE_ABOVE)
    settled = calibrated is None or getattr(model, "decide_settled", False)
    halting = by_halting(model, above, settled=settled)
    return {"halting": halting, "agreement": by_agreement(AGREED, AGREED_AMONG)}


def parse_guide(text: str, model: RecursiveModel, task: Callable[[], Task]) -> Guide:
    """The guide of a name, or of a sum such as 'halting+2*rules'; `task` is asked for rules."""
    known: dict[str, Callable[[], Guide]] = {
        "halting": lambda: guides.halting(model),
        "confidence": lambda: guides.confidence(model),
        "residual": guides.residual,
        "rules": lambda: guides.rules(task().violations),
        "shortest": lambda: guides.shortest(task().violations, _length_of(task())),
    }
    terms: list[Guide] = []
    for term in text.split("+"):
        factor, star, name = (part.strip() for part in term.rpartition("*"))
        weight = _number(factor) if star else 1.0
        if name not in known or not math.isfinite(weight):
            raise SettingsError(
                f"guide must be one of {', '.join(known)}, or a sum such as 'halting+2*rules', "
                f"got {text!r}"
            )
        terms.append(weight * known[name]())
    return reduce(add, terms)


def _length_of(task: Task) -> Callable[[Tensor, Tensor], Tensor]:
    if not isinstance(task, Maze):
        raise SettingsError(f"the guide 'shortest' is for mazes, got {task.name}; try 'rules'")
    return task.path_length


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
