"""The plans of adaptive solving: a task's default, a model's tuned one, sizes, symmetric views."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, overload

import torch

from tiltrm.errors import CheckpointError, SettingsError
from tiltrm.explore.plan import Adaptive, Stage, format_stages, parse_stages
from tiltrm.model.base import RecursiveModel, model_info
from tiltrm.tasks import Symmetry, Task
from tiltrm.tasks.base import Clues, views
from tiltrm.tasks.registry import defaults_of

Views = Sequence[Symmetry]  # one record of views per stage
DECIDING = {"rules": False, "shortest_visited": False, "halt_above": None}  # choose the rules


def default_plan(task: Task | str) -> Adaptive:
    """The plan of a task or of its name; without a task, "", a plan without symmetric views."""
    if not task:
        return Adaptive()
    own = defaults_of(task)
    return Adaptive(
        parse_stages(own.stages), noise=own.noise, beta=own.beta,
        symmetric_views=own.symmetric_views or own.stopping.get("shortest_visited", False),
    )  # fmt: skip


def usual_stopping(task: Task | str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The task's settings of stopping rules; none where others were given in their place."""
    own = defaults_of(task).stopping
    usual = {name: own.get(name, value) for name, value in DECIDING.items()}
    replaced = any(given.get(name, value) != value for name, value in usual.items())
    return {} if replaced else own


class TunedPlan(NamedTuple):
    """The plan and the stopping rule that `tiltrm tune` chose for a model."""

    plan: Adaptive
    halt_above: float | None = None  # None: the model's own threshold
    rules: bool = False  # stop at a valid solution and for no other reason

    def as_mapping(self) -> dict[str, Any]:
        """The part of tuned.json that `tuned_plan` reads."""
        plan = self.plan
        return {
            "stages": format_stages(plan.stages), "noise": plan.noise, "beta": plan.beta,
            "symmetric_views": plan.symmetric_views, "halt_above": self.halt_above,
            "rules": self.rules,
        }  # fmt: skip


def tuned_plan(model: RecursiveModel, task: Task | str) -> TunedPlan | None:
    """The plan beside the model's weights; None if there is none, or it is for another task.

    CheckpointError where the file is damaged.
    """
    content = model_info(model).tuned
    name = task if isinstance(task, str) else task.name
    if content is None or content.get("task") not in (name, defaults_of(task).part_of or name):
        return None
    try:
        plan = Adaptive(
            parse_stages(content["stages"]), noise=content["noise"], beta=content["beta"],
            symmetric_views=content["symmetric_views"],
        )  # fmt: skip
        above = content["halt_above"]
        return TunedPlan(plan, None if above is None else float(above), bool(content["rules"]))
    except (KeyError, TypeError, ValueError, AttributeError, SettingsError) as error:
        raise CheckpointError(
            "expected a plan with stages, noise, beta, symmetric_views, halt_above and rules in "
            f"tuned.json, got damaged content ({type(error).__name__}: {error}); delete it and run "
            "tiltrm tune again"
        ) from error


def resized_plan(plan: Adaptive, settings: Mapping[str, Any]) -> Adaptive:
    """The plan with these settings.

    `particles` is the largest cloud: larger stages are left out, and one of that size comes last.
    `outer_steps` is the most that a puzzle gets: stages end there, or the last one lasts until
    then. `noise` is that of all stages. A plan that resamples has no symmetric views, so it starts
    from the plan for unknown tasks.
    """
    rest = dict(settings)
    if plan.symmetric_views and rest.get("resample_below"):
        plan = Adaptive()
    if "noise" in rest:
        plan = plan.with_noise(rest.pop("noise"))
    stages = plan.stages
    if (most := rest.pop("particles", None)) is not None:
        stages = _no_larger(stages, most)
    if (steps := rest.pop("outer_steps", None)) is not None:
        stages = _lasting(stages, steps)
    stages = (replace(stages[0], guesses=0), *stages[1:])  # where the first one was left out
    return replace(plan, stages=stages, **rest)


def _no_larger(stages: Sequence[Stage], most: int) -> tuple[Stage, ...]:
    """The stages of at most `most` particles, the last one of exactly so many."""
    kept = [stage for stage in stages if stage.particles <= most]
    if kept and kept[-1].particles == most:
        return tuple(kept)
    following = stages[min(len(kept), len(stages) - 1)]
    return (*kept, replace(following, particles=most, continues=False))


def _lasting(stages: Sequence[Stage], steps: int) -> tuple[Stage, ...]:
    """The stages cut, or the last one prolonged, to `steps` outer steps in all."""
    cut: list[Stage] = []
    left = steps
    for stage in stages:
        if left > 0:
            cut.append(replace(stage, outer_steps=min(stage.outer_steps, left)))
            left -= cut[-1].outer_steps
    last = cut[-1]
    return (*cut[:-1], replace(last, outer_steps=last.outer_steps + left))


def plan_clues(plan: Adaptive, task: Task) -> Clues | None:
    """The clues that the stages of a plan guess; None for a plan that does not guess.

    SettingsError where answers of the task give no clues.
    """
    if not plan.guesses_from(0):
        return None
    found = defaults_of(task).guesses
    if found is None:
        raise SettingsError(
            "a stage may guess only where an answer says what could stand in its puzzle as a clue, "
            f"which {task.name} does not allow; leave '?' and its number out of the stages"
        )
    return found


def plan_views(plan: Adaptive, task: Task, model: RecursiveModel, device: torch.device) -> Views:
    """The symmetry under which each particle of each stage sees a puzzle; () if the plan has none.

    The first particle of the first stage sees the puzzle unchanged. All puzzles share the views, so
    a result depends on neither batch nor order. A task with few symmetries has them repeated:
    particles under the same one differ by their noise.
    """
    return StageViews(plan, task, model, device) if plan.symmetric_views else ()


class StageViews(Sequence[Symmetry]):
    """The views of every stage of a plan, drawn when they are first asked for.

    Few puzzles come to the last stages of a long plan, and drawing those would delay all others.
    """

    def __init__(
        self, plan: Adaptive, task: Task, model: RecursiveModel, device: torch.device
    ) -> None:
        self._plan, self._task, self._device = plan, task, device
        self._vocabulary = model.vocabulary
        self._drawn: dict[int, Symmetry] = {}
        self[0]  # a task without symmetries is refused before the search

    def __len__(self) -> int:
        return len(self._plan.stages)

    @overload
    def __getitem__(self, number: int) -> Symmetry: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[Symmetry, ...]: ...
    def __getitem__(self, number: int | slice) -> Symmetry | tuple[Symmetry, ...]:
        if isinstance(number, slice):
            return tuple(self[place] for place in range(len(self))[number])
        place = range(len(self))[number]
        if place not in self._drawn:
            count = self._plan.stages[place].particles
            drawn = views(self._task, count + 1, seed=place, again=True)  # the identity first
            own = drawn.part(slice(1, None) if place else slice(-1))
            self._drawn[place] = own.on(self._device, self._vocabulary)
        return self._drawn[place]
