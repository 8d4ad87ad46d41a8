"""Recorded trajectories: the halt logit and whether the answer is right, after every outer step.

`follow` records them, `left_open` finds the puzzles for which a plan is not enough, and
benchmarks.restarts plays plans on what was recorded.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import torch

from tiltrm.data import Puzzles
from tiltrm.explore import Exploration
from tiltrm.explore.cloud import Clock, initial_cloud, make_problem
from tiltrm.explore.plan import Adaptive, Stage
from tiltrm.explore.running import solve_adaptively as solve
from tiltrm.explore.search import UNDECIDED, step_functions
from tiltrm.explore.step import step
from tiltrm.model.build import Model
from tiltrm.solving import plan_views, stopping_rules
from tiltrm.tasks.base import views

CHUNK = 8192  # trajectories at once
QUIET = 96  # outer steps of the quiet trajectory
Array = numpy.ndarray[Any, Any]
Plan = tuple[tuple[int, int], ...]  # (fresh trajectories, outer steps) of every stage


@dataclass(frozen=True)
class Trajectories:
    """Halt logits and right answers after every outer step."""

    logits: Array  # (puzzle, trajectory, step)
    right: Array  # the same, bool

    def shuffled(self, draw: numpy.random.Generator) -> "Trajectories":
        """The trajectories of every puzzle in another order."""
        order = draw.permuted(numpy.broadcast_to(self._numbers(), self.logits.shape[:2]), axis=1)
        return Trajectories(*(numpy.take_along_axis(part, order[..., None], 1)
                        for part in (self.logits, self.right)))  # fmt: skip

    def _numbers(self) -> Array:
        return numpy.arange(self.logits.shape[1])


def follow(model: Model, puzzles: Puzzles, count: int, steps: int, noise: float) -> Trajectories:
    """`count` trajectories of every puzzle, each under a symmetry of its own; one is left as is."""
    device = model.embedding.device
    settings = Exploration(particles=count, noise=noise, beta=0.0, trigger="never")
    functions = step_functions(model, settings)
    seen = views(puzzles.task, count, seed=1).on(device, model.vocabulary)
    logits, right = [], []
    size = max(1, CHUNK // count)
    for first in range(0, len(puzzles), size):
        part = puzzles.take(slice(first, first + size))
        labels = part.labels().to(device)[:, None]
        problem = make_problem(model, part.questions.to(device), count)
        if count > 1:
            problem = problem.with_views(model, seen)
        cloud, found = initial_cloud(model, problem), []
        for n in range(1, steps + 1):
            cloud, info = step(cloud, problem, Clock(n, steps), model, **functions._asdict())
            halt = info.context.halt_logit()
            found.append((halt, (info.context.answers == labels).all(-1)))
        logits.append(torch.stack([halt for halt, _ in found], -1).half().cpu().numpy())
        right.append(torch.stack([good for _, good in found], -1).cpu().numpy())
    return Trajectories(numpy.concatenate(logits), numpy.concatenate(right))


def left_open(model: Model, puzzles: Puzzles, plan: Plan, above: float, noise: float) -> Puzzles:
    """The puzzles that restarts by this plan leave undecided; says how it did on all of them."""
    own = Adaptive(tuple(Stage(*stage) for stage in plan), noise, symmetric_views=True)
    device = model.embedding.device
    seen = plan_views(own, puzzles.task, model, device)
    found = solve(
        model, puzzles.questions, stopping_rules(model, halt_above=above), own, views=seen
    )
    right = (found.answers == puzzles.labels()).all(-1)
    open_ = torch.tensor([why == UNDECIDED for why in found.decided_by])
    print(
        f"{len(puzzles)} puzzles: {100 * right.float().mean():.2f} % right at "
        f"{found.evaluations.float().mean():.1f} evaluations, {int((~open_ & ~right).sum())} "
        f"decided wrongly, {int(open_.sum())} left open"
    )
    return puzzles.take(open_.nonzero()[:, 0])


def save(path: Path, quiet: Trajectories | None, fresh: Trajectories) -> None:
    """Write both; `quiet` is None where the trajectories follow a plan."""
    parts = {"logits": fresh.logits, "right": fresh.right}
    if quiet is not None:
        parts |= {"quiet_logits": quiet.logits, "quiet_right": quiet.right}
    numpy.savez_compressed(path, **parts)  # type: ignore[arg-type]


def load(path: Path) -> tuple[Trajectories | None, Trajectories]:
    """The inverse of `save`."""
    saved = numpy.load(path)
    quiet = None
    if "quiet_logits" in saved:
        quiet = Trajectories(saved["quiet_logits"], saved["quiet_right"])
    return quiet, Trajectories(saved["logits"], saved["right"])
