"""From the settings of `solve` to what runs: a plan with its judges, or one fixed exploration."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from tiltrm.diagnose import SMALL
from tiltrm.errors import SettingsError
from tiltrm.explore import Exploration
from tiltrm.explore.decide import Judge
from tiltrm.explore.guides import Score
from tiltrm.explore.plan import Adaptive
from tiltrm.methods import ADAPTIVE, FIXED, judges, numbers, parse_guide, plan, usual_plan
from tiltrm.model.base import RecursiveModel
from tiltrm.tasks import Task, by_name


class Recipe(NamedTuple):
    """Either a plan and who may decide, or the settings of a cloud that runs to its end."""

    guide: Score
    plan: Adaptive | None = None
    judges: Mapping[str, Judge] | None = None  # where there is a plan
    fixed: Exploration | None = None


def task_of(model: RecursiveModel, task: Task | str | None = None) -> Task:
    """The task given, or else the model's own; SettingsError where unknown or not fitting."""
    named = task or getattr(model, "task", "")
    if not named:
        raise SettingsError(
            "expected a model that says its task, got one that does not; name the task"
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


def prepare(
    model: RecursiveModel, task: Task | str | None = None, *, method: str = ADAPTIVE,
    guide: str | Score = "halting", rules: bool = False, halt_above: float | None = None,
    **given: Any,
) -> Recipe:  # fmt: skip
    """The recipe of `solve`'s settings; what is None is the method's own."""
    own = partial(task_of, model, task)
    name = task if isinstance(task, str) else own().name if task else getattr(model, "task", "")
    set_ = numbers(
        method,
        {**given, "halt_above": halt_above, "rules": rules or None,
         "guide": None if guide == "halting" else guide},
        name,
    )  # fmt: skip
    score = parse_guide(guide, model, own) if isinstance(guide, str) else guide
    if not callable(score):
        raise SettingsError(f"guide must be a name or a function, got {score!r:.60}")
    if method != ADAPTIVE:
        return Recipe(score, fixed=replace(FIXED[method], **set_))
    deciding = judges(model, halt_above, own().is_solved if rules else None)
    return Recipe(score, plan(set_, usual_plan(name)), deciding)


def small_run(task: str, **given: Any) -> Exploration:
    """A diagnosis's settings: a small cloud, noise and beta as `solve --method guided` has them."""
    small = {"particles": SMALL.particles, "outer_steps": SMALL.outer_steps}
    return Exploration.from_mapping(small | numbers("guided", given, task))
