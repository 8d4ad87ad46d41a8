"""The methods of `solve`, and the search that each of them runs.

adaptive       stages of growing clouds that stop as soon as the answer is decided (the default)
guided         Algorithm 1 with the paper's settings
unguided       the same noise without tilt or resampling; the most frequent answer
deterministic  one trajectory without noise: the model as it was published
ptrm           100 noisy rollouts, noise once per supervision step, the best final score
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce
from operator import add
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.explore import Exploration, guides
from tiltrm.explore.bank import VisitedValue, by_path
from tiltrm.explore.guides import Guide, Score
from tiltrm.explore.inputs import device_of
from tiltrm.explore.plan import Adaptive, format_stages
from tiltrm.explore.search import StagedSearch, adaptive_search, fixed_search
from tiltrm.explore.stopping import (
    StoppingRule,
    by_agreement,
    by_halting,
    by_rules,
    by_shortest,
)
from tiltrm.model.base import RecursiveModel, model_info
from tiltrm.model.puzzle_rows import chosen_puzzle, with_puzzle
from tiltrm.settings import (
    ADAPTIVE,
    AGREE_AMONG,
    AGREE_SHARE,
    HALT_ABOVE,
    LARGEST_SCALE,
    METHODS,
    ORACLE,
    TABLE,
    check_settings,
)
from tiltrm.solving.confidence import state_confidence
from tiltrm.solving.guide_folder import learned_terms, named_guide
from tiltrm.solving.plans import (
    Views,
    default_plan,
    plan_clues,
    plan_views,
    resized_plan,
    tuned_plan,
    usual_stopping,
)
from tiltrm.solving.tidy import with_tidy_answers
from tiltrm.tasks import Maze, Task, by_name
from tiltrm.tasks.published import require_rules
from tiltrm.tasks.registry import defaults_of

GUIDED = Exploration(on_degenerate="abstain", entropy_every=0)
UNGUIDED = replace(GUIDED, beta=0.0, trigger="never", potential="terminal")  # weights stay equal
FIXED = {  # methods that are one exploration
    "guided": GUIDED,
    "unguided": UNGUIDED,
    "deterministic": replace(UNGUIDED, particles=1, noise=0.0),
    "ptrm": replace(UNGUIDED, particles=100, placement="supervision", select="best_score"),
}
GUIDES = "halting, confidence, residual, rules, shortest, learned:FOLDER"
STOPPING = (  # settings of the stopping rules
    "rules", "halt_above", "agree_share", "agree_among", "shortest_visited",
)  # fmt: skip


class Stopping(NamedTuple):
    """The settings of the stopping rules of adaptive solving, complete."""

    halt_above: float
    settled: bool  # whether an answer must also equal that of one step before
    agree_share: float = AGREE_SHARE
    agree_among: int = AGREE_AMONG
    rules: bool = False  # stop at a valid solution and for no other reason
    shortest_visited: bool = False  # stop at valid paths only, none shorter among all visited

    @classmethod
    def of(
        cls, model: RecursiveModel, *, halt_above: float | None = None, rules: bool = False,
        uncalibrated_halt_above: float = HALT_ABOVE, **agreement: Any,
    ) -> "Stopping":  # fmt: skip
        """Of a model; `halt_above` replaces its threshold."""
        info = model_info(model)
        own = uncalibrated_halt_above if info.decide_above is None else info.decide_above
        settled = info.decide_above is None or info.decide_settled
        above = own if halt_above is None else halt_above
        return cls(above, settled, rules=rules, **agreement)


def search_settings(
    plan: Adaptive, guide: str | Score, stopping: Stopping, puzzle_id: int | None = None
) -> dict[str, Any]:
    """Everything that decides how an adaptive search stops, ready for JSON.

    A calibration is for one such record. A model with one puzzle id has none in it.
    """
    if stopping.rules:
        stopping = Stopping(0.0, False, rules=True)  # no other rule is asked
    if stopping.shortest_visited:
        stopping = stopping._replace(halt_above=0.0, settled=False)  # likewise
    rest = stopping._asdict()
    if not stopping.shortest_visited:
        del rest["shortest_visited"]  # older calibrations do not have it
    return {
        "stages": format_stages(plan.stages), "noise": plan.noise, "beta": plan.beta,
        "resample_below": plan.resample_below, "symmetric_views": plan.symmetric_views,
        "guide": guide if isinstance(guide, str) else "a function", **rest,
        **({} if puzzle_id is None else {"puzzle_id": puzzle_id}),
    }  # fmt: skip


class AdaptivePlan(NamedTuple):
    """The complete settings of an adaptive search."""

    plan: Adaptive
    stopping: Stopping
    guide: str | Score
    puzzle_id: int | None = None  # of a model with several; None: it has one

    def settings(self) -> dict[str, Any]:
        """Ready for JSON."""
        return search_settings(self.plan, self.guide, self.stopping, self.puzzle_id)


def adaptive_plan(
    model: RecursiveModel, task: Task | str | None = None, *, tuned: bool = True, **settings: Any
) -> AdaptivePlan:
    """What adaptive solving does with these settings: the tuned plan unless it is not wanted."""
    checked = check_settings(ADAPTIVE, settings)
    checked.pop("seconds", None)  # of the run, not of the plan
    puzzle_id = chosen_puzzle(with_puzzle(model, checked.pop("puzzle_id", None)))
    known = _named_task(model, task)
    found = tuned_plan(model, known) if tuned else None
    stopping = {name: checked.pop(name) for name in STOPPING if name in checked}
    guide = checked.pop("guide", "halting")
    if found is None:
        stopping = {**usual_stopping(known, stopping), **stopping}
    elif "rules" not in stopping and "halt_above" not in stopping:
        stopping |= {"rules": found.rules, "halt_above": found.halt_above}
    if stopping.get("rules"):
        require_rules(task_of(model, known), "stopping at a valid solution (rules)")
    plan = resized_plan(default_plan(known) if found is None else found.plan, checked)
    if stopping.get("shortest_visited"):
        plan = replace(plan, symmetric_views=True)  # not the cells but the length must agree
    return AdaptivePlan(plan, Stopping.of(model, **stopping), guide, puzzle_id)


def build_search(
    model: RecursiveModel, task: Task | str | None = None, *, method: str = ADAPTIVE,
    tuned: bool = True, **settings: Any,
) -> StagedSearch:  # fmt: skip
    """The search of a method with these settings; those that are None take their defaults.

    A task changes some defaults; without one the model's own is taken. Adaptive solving takes the
    plan that `tiltrm tune` stored beside the weights, unless `tuned` is False. The confidence is
    calibrated where there is a calibration beside the weights (tiltrm.solving.confidence).
    """
    if method not in METHODS:
        raise SettingsError(f"method must be one of {', '.join(METHODS)}, got {method!r:.60}")
    checked = check_settings(method, settings)
    if checked.get("select") == ORACLE:
        raise SettingsError(
            f"select must be one of {', '.join(TABLE['select'].unlabelled_choices)}, because "
            f"solving has no labels, got {ORACLE}; tiltrm.explore takes labels"
        )
    model = with_puzzle(model, checked.pop("puzzle_id", None))
    known = _named_task(model, task)
    model = with_tidy_answers(model, _known_task(model, known))
    seconds = checked.pop("seconds", math.inf)
    rules_of = _known_task(model, known)
    if method != ADAPTIVE:
        guide = parse_guide(checked.pop("guide", "halting"), model, task)
        fixed = fixed_search(model, exploration_for(method, known, **checked), guide)
        return replace(fixed, seconds=seconds, confidence=state_confidence(model, rules_of, None))
    found = adaptive_plan(model, task, tuned=tuned, **checked)
    plan, stopping = found.plan, found.stopping
    rules = stopping_rules(model, task_of(model, task).is_solved if stopping.rules else None,
                           stopping)  # fmt: skip
    guide = parse_guide(found.guide, model, task, len(plan.stages) > 1)
    views: Views = ()
    clues = None
    if plan.symmetric_views:
        device = device_of(model, torch.empty(0))
        views = plan_views(plan, task_of(model, task), model, device)
        clues = plan_clues(plan, task_of(model, task))
    visited = path_values(task_of(model, task)) if stopping.shortest_visited else None
    search = adaptive_search(model, plan, rules, guide, views, visited, clues)
    stated = state_confidence(model, rules_of, found.settings())
    return replace(search, confidence=stated, seconds=seconds)


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


def _known_task(model: RecursiveModel, named: Task | str) -> Task | None:
    """The task if it is known here, so that its rules can be checked."""
    try:
        return task_of(model, named) if named else None
    except SettingsError:
        return None


def exploration_for(
    method: str, task: Task | str, base: Exploration | None = None, **settings: Any
) -> Exploration:
    """The exploration of a fixed method on a task, with these settings.

    `base` gives the other settings; the method's own unless given.
    """
    own = defaults_of(task).settings.get(method, {})
    return replace(base or FIXED[method], **{**own, **check_settings(method, settings)})


def stopping_rules(
    model: RecursiveModel, is_solved: Callable[[Tensor, Tensor], Tensor] | None = None,
    stopping: Stopping | None = None, **settings: Any,
) -> dict[str, StoppingRule]:  # fmt: skip
    """Stopping rules of adaptive solving: a halt logit above the threshold, or agreement.

    `settings` are those of `Stopping.of`, unless `stopping` is given. The threshold is
    `halt_above`, else the model's calibrated one, else 2. A model without one must also give the
    same answer twice. If `is_solved` is given, it is the only rule: it sees a right answer at once
    and never stops at a wrong one. With `shortest_visited`, agreement on the length of a valid path
    is the only rule.
    """
    if is_solved is not None:
        return {"rules": by_rules(is_solved)}
    own = stopping or Stopping.of(model, **settings)
    if own.shortest_visited:
        return {"agreement": by_shortest(own.agree_share, own.agree_among)}
    halting = by_halting(model, own.halt_above, settled=own.settled)
    return {"halting": halting, "agreement": by_agreement(own.agree_share, own.agree_among)}


def path_values(task: Task) -> VisitedValue:
    """The values of visited paths for the bank; SettingsError for tasks without paths."""
    if not isinstance(task, Maze):
        raise SettingsError(f"shortest_visited is for mazes, got {task.name}; leave it out")
    return by_path(task.violations, task.path_length)


def parse_guide(
    guide: str | Score, model: RecursiveModel, task: Task | str | None = None, staged: bool = False
) -> Score:
    """The guide of a name or of a sum such as 'halting+2*rules'; a function is its own guide.

    `staged` says that fresh particles join the cloud later (see `tiltrm.explore.learned.learned`).
    """
    if not isinstance(guide, str):
        if not callable(guide):
            raise SettingsError(f"guide must be a name or a function, got {guide!r:.60}")
        return guide
    known: dict[str, Callable[[], Guide]] = {
        "halting": lambda: guides.halting(model),
        "confidence": lambda: guides.confidence(model),
        "residual": guides.residual,
        "rules": lambda: _rules(task_of(model, task)),
        "shortest": lambda: _shortest(task_of(model, task)),
    }
    for name in learned_terms(guide):
        known[name] = partial(named_guide, name, model, staged=staged)
    terms: list[Guide] = []
    for term in guide.split("+"):
        factor, star, name = (part.strip() for part in term.rpartition("*"))
        weight = _number(factor) if star else 1.0
        if name not in known or not abs(weight) <= LARGEST_SCALE:
            raise SettingsError(
                f"guide must be one of {GUIDES}, or a sum such as 'halting+2*rules', got {guide!r}"
            )
        terms.append(weight * known[name]())
    return reduce(add, terms)


def _rules(task: Task) -> Guide:
    require_rules(task, "the guide 'rules'")
    return guides.rules(task.violations)


def _shortest(task: Task) -> Guide:
    if not isinstance(task, Maze):
        raise SettingsError(f"the guide 'shortest' is for mazes, got {task.name}; try 'rules'")
    return guides.shortest(task.violations, task.path_length)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
