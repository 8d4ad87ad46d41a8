"""Tracks: what every puzzle with the same model and settings walks along, one step at a time."""

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import NamedTuple

import torch

from tiltrm.explore.batching import chunk_size
from tiltrm.explore.cloud import Clock, begin
from tiltrm.explore.plan import Adaptive, Stage
from tiltrm.explore.result import Recorder, SearchResult
from tiltrm.explore.search import Cohort, Leaving, Taken, Walk, step_functions
from tiltrm.explore.step import step
from tiltrm.model.base import RecursiveModel, evaluations_per_step
from tiltrm.settings import Exploration
from tiltrm.solving import Recipe, as_solution, judges, plan_views, prepare, task_of
from tiltrm.tasks import Task

BASELINE = Adaptive(stages=(Stage(1, 48),))  # the model as it was published, stopped when decided
COLUMNS = tuple(field.name for field in fields(SearchResult) if field.name != "decided_by")
Settings = tuple[tuple[str, object], ...]  # of `tiltrm.recipe.prepare`, sorted by name


class Fixed(NamedTuple):
    """A cloud of one size that runs to its end: a `Walk` for the methods without judges.

    Its results are those of `explore`, whose pieces it is made of.
    """

    model: RecursiveModel
    settings: Exploration
    kit: Kit

    def particles(self, cohort: Cohort) -> int:
        """Trajectories of each puzzle in the cohort's next step."""
        return self.settings.particles

    def advance(self, cohort: Cohort) -> Taken:
        """One outer step; after the last one everybody leaves."""
        settings = self.settings
        slots = torch.arange(settings.particles, device=cohort.places.device)
        question = cohort.question._replace(particles=slots)
        cloud = begin(self.model, question) if cohort.cloud is None else cohort.cloud
        clock = Clock(cohort.steps + 1, settings.outer_steps)
        cloud, info = step(cloud, question, clock, self.model.decode, **self.kit._asdict())
        spent = cohort.evaluations + settings.particles * evaluations_per_step(self.model)
        after = cohort._replace(
            question=question, cloud=cloud, stage_step=clock.step, steps=clock.step,
            evaluations=spent,
        )  # fmt: skip
        if clock.step < clock.steps:
            return Taken(after, [], info)
        record = Recorder(self.model.vocabulary, settings.entropy_every, trace=False)
        record.add(cloud, info)
        found = as_solution(finish(self.model, settings, cloud, info, record), settings)
        columns = {name: getattr(found, name) for name in COLUMNS}
        return Taken(None, [Leaving(cohort.places.cpu(), found.decided_by[0], columns)], info)


class Staged(NamedTuple):
    """A `Walk` that says how large its clouds are."""

    walk: Walk

    def particles(self, cohort: Cohort) -> int:
        """Trajectories of each puzzle in the cohort's next step."""
        return self.walk.stage(cohort).particles

    def advance(self, cohort: Cohort) -> Taken:
        """One outer step."""
        return self.walk.advance(cohort)


@dataclass(frozen=True, eq=False)
class Host:
    """A loaded model and what it can carry."""

    name: str
    model: RecursiveModel
    task: Task
    device: torch.device
    threads: int | None  # workers on a CPU
    rows: int  # trajectories worth stepping at once
    size: int  # bytes of one trajectory at most


@dataclass(frozen=True, eq=False)
class Track:
    """One model with one combination of settings."""

    host: Host
    task: Task
    walk: Staged | Fixed
    plan: Adaptive | None  # None for a fixed cloud


def host(
    name: str, model: RecursiveModel, task: Task, device: torch.device, threads: int
) -> Host:  # fmt: skip
    """Measure a model."""
    with torch.inference_mode():
        inputs = model.embed(torch.ones(1, task.cells, dtype=torch.uint8, device=device))
    size = 3 * inputs[0].numel() * inputs.element_size()  # answer, latent, and its own view
    workers = threads if device.type == "cpu" else None
    return Host(name, model, task, device, workers, chunk_size(inputs, 1, threads), size)


@lru_cache(maxsize=64)
def track(host: Host, task: str | None, settings: Settings) -> Track:
    """The track of these settings; the same object for the same ones, so that puzzles meet on it.

    Raises SettingsError.
    """
    own = task_of(host.model, task or host.task)
    return _lay(host, own, prepare(host.model, own, **dict(settings)))  # type: ignore[arg-type]


@lru_cache(maxsize=16)
def baseline(host: Host) -> Track:
    """The deterministic run beside which others are shown."""
    recipe = prepare(host.model, host.task)
    return _lay(host, host.task, Recipe(recipe.guide, BASELINE, judges(host.model, None, None)))


def _lay(host: Host, task: Task, recipe: Recipe) -> Track:
    if recipe.fixed is not None:
        kit = step_functions(host.model, recipe.fixed, recipe.guide, host.threads)
        return Track(host, task, Fixed(host.model, recipe.fixed, kit), None)
    plan = recipe.plan or Adaptive()
    kit = step_functions(host.model, plan.exploration(), recipe.guide, host.threads)
    views = plan_views(plan, task, host.model, host.device)
    walk = Walk(host.model, plan, recipe.judges or {}, kit, views)
    return Track(host, task, Staged(walk), plan)
