"""The methods of `solve`, and the search that each of them runs.

adaptive       stages of growing clouds that stop as soon as the answer is decided (the default)
guided         Algorithm 1 with the paper's settings
unguided       the same noise without tilt or resampling; the most frequent answer
deterministic  one trajectory without noise: the model as it was published
ptrm           100 noisy rollouts, noise once per supervision step, the best final score
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import torch
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.explore import Exploration, guides
from tiltrm.explore.guides import Guide, Score
from tiltrm.explore.inputs import device_of
from tiltrm.explore.search import StagedSearch, adaptive_search, fixed_search
from tiltrm.explore.stopping import StoppingRule, by_agreement, by_halting, by_rules
from tiltrm.model.base import RecursiveModel, model_info
from tiltrm.settings import (
    ADAPTIVE,
    AGREE_AMONG,
    AGREE_SHARE,
    HALT_ABOVE,
    LARGEST_SCALE,
    METHODS,
    check_settings,
)
from tiltrm.solving.plans import Views, default_plan, plan_views, resized_plan
from tiltrm.tasks import Maze, Task, by_name
from tiltrm.tasks.registry import defaults_of

GUIDED = Exploration(on_degenerate="abstain", entropy_every=0)
UNGUIDED = replace(GUIDED, beta=0.0, trigger="never", potential="terminal")  # weights stay equal
FIXED = {  # methods that are one exploration
    "guided": GUIDED,
    "unguided": UNGUIDED,
    "deterministic": replace(UNGUIDED, particles=1, noise=0.0),
    "ptrm": replace(UNGUIDED, particles=100, placement="supervision", select="best_score"),
}
STOPPING = ("rules", "halt_above", "agree_share", "agree_among")  # settings of the stopping rules


def build_search(
    model: RecursiveModel, task: Task | str | None = None, *, method: str = ADAPTIVE,
    **settings: Any,
) -> StagedSearch:  # fmt: skip
    """The search of a method with these settings; those that are None take their defaults.

    A task changes some defaults; without one the model's own is taken.
    """
    if method not in METHODS:
        raise SettingsError(f"method must be one of {', '.join(METHODS)}, got {method!r:.60}")
    checked = check_settings(method, settings)
    known = _named_task(model, task)
    guide = parse_guide(checked.pop("guide", "halting"), model, task)
    seconds = checked.pop("seconds", math.inf)
    if method != ADAPTIVE:
        search = fixed_search(model, exploration_for(method, known, **checked), guide)
        return replace(search, seconds=seconds)
    stopping = {name: checked.pop(name) for name in STOPPING if name in checked}
    rules = stopping_rules(
        model, task_of(model, task).is_solved if stopping.pop("rules", False) else None, **stopping
    )
    plan = resized_plan(default_plan(known), checked)
    views: Views = ()
    if plan.symmetric_views:
        device = device_of(model, torch.empty(0))
        views = plan_views(plan, task_of(model, task), model, device)
    return replace(adaptive_search(model, plan, rules, guide, views), seconds=seconds)


def task_of(model: RecursiveModel, task: Task | str | None = None) -> Task:
    """The task, or the model's own; SettingsError where it is unknown or does not fit."""
    named = task or model_info(model).task
    if not named:
        raise SettingsError(
            "expected a model that names its task, got one that does not; name the task"
        )
    found = by_name(named) if isinstance(named, str) else named
    if not hasattr(found, "cells"):
        raise SettingsError(f"task must be a task or its name, got {named!r:.60}")
    if found.cells != model.cells or found.vocabulary > model.vocabulary:
        raise SettingsError(
            f"expected a model for {found.name} ({found.cells} cells, {found.vocabulary} ids), got "
            f"one with {model.cells} cells and {model.vocabulary} ids; take another model or task"
        )
    return found


def _named_task(model: RecursiveModel, task: Task | str | None) -> Task | str:
    """The task or its name, perhaps an unknown one; "" where neither is given."""
    if task and not isinstance(task, str):
        return task_of(model, task)
    return task or model_info(model).task


def exploration_for(
    method: str, task: Task | str, base: Exploration | None = None, **settings: Any
) -> Exploration:
    """The exploration of a fixed method on a task, with these settings.

    `base` gives the other settings; the method's own unless given.
    """
    own = defaults_of(task).settings.get(method, {})
    return replace(base or FIXED[method], **{**own, **check_settings(method, settings)})


def stopping_rules(
    model: RecursiveModel, is_solved: Callable[[Tensor, Tensor], Tensor] | None = None, *,
    halt_above: float | None = None, agree_share: float = AGREE_SHARE,
    agree_among: int = AGREE_AMONG,
) -> dict[str, StoppingRule]:  # fmt: skip
    """Stopping rules of adaptive solving: a halt logit above the threshold, or agreement.

    The threshold is `halt_above`, else the model's calibrated one, else 2. A model without one
    must also give the same answer twice. If `is_solved` is given, it is the only rule: it sees a
    right answer at once and never stops at a wrong one.
    """
    if is_solved is not None:
        return {"rules": by_rules(is_solved)}
    info = model_info(model)
    above = next((v for v in (halt_above, info.decide_above) if v is not None), HALT_ABOVE)
    settled = info.decide_above is None or info.decide_settled
    return {
        "halting": by_halting(model, above, settled=settled),
        "agreement": by_agreement(agree_share, agree_among),
    }


def parse_guide(guide: str | Score, model: RecursiveModel, task: Task | str | None = None) -> Score:
    """The guide of a name or of a sum such as 'halting+2*rules'; a function is its own guide."""
    if not isinstance(guide, str):
        if not callable(guide):
            raise SettingsError(f"guide must be a name or a function, got {guide!r:.60}")
        return guide
    known: Mapping[str, Callable[[], Guide]] = {
        "halting": lambda: guides.halting(model),
        "confidence": lambda: guides.confidence(model),
        "residual": guides.residual,
        "rules": lambda: guides.rules(task_of(model, task).violations),
        "shortest": lambda: _shortest(task_of(model, task)),
    }
    terms: list[Guide] = []
    for term in guide.split("+"):
        factor, star, name = (part.strip() for part in term.rpartition("*"))
        weight = _number(factor) if star else 1.0
        if name not in known or not abs(weight) <= LARGEST_SCALE:
            raise SettingsError(
                f"guide must be one of {', '.join(known)}, or a sum such as 'halting+2*rules', "
                f"got {guide!r}"
            )
        terms.append(weight * known[name]())
    return reduce(add, terms)


def _shortest(task: Task) -> Guide:
    if not isinstance(task, Maze):
        raise SettingsError(f"the guide 'shortest' is for mazes, got {task.name}; try 'rules'")
    return guides.shortest(task.violations, task.path_length)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
