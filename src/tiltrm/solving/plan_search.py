"""The plan that is worth most on recorded trajectories, by coordinate descent.

A plan is worth its share of right answers less PRICE for every 48 outer steps that it costs.
Proved by tests/solving/test_tune.py.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tiltrm.explore.plan import Adaptive, Stage, format_stages, parse_stages
from tiltrm.model.base import RecursiveModel
from tiltrm.settings import HALT_ABOVE
from tiltrm.solving.methods import Stopping
from tiltrm.solving.plans import TunedPlan
from tiltrm.solving.trajectories import (
    PlanRecording,
    Played,
    TrajectoryRecord,
    hits,
    play,
)

PRICE = 0.0003  # of 48 outer steps, in right answers
BETAS = (0.0, 0.25, 1.0)
RESERVE = Stage(32, 32)  # the stage that a reserve repeats
LARGEST_RESERVE = 512  # trajectories


class PlanPoint(NamedTuple):
    """A plan that no other beats, played on the recordings."""

    evaluations: float
    right: float
    stages: str
    halt_above: float


class Shape(NamedTuple):
    """The numbers that the search changes one at a time."""

    first: int = 20
    particles: tuple[int, int, int] = (2, 4, 8)
    steps: tuple[int, int, int] = (16, 16, 24)
    times: tuple[int, int, int] = (4, 4, 4)
    loud: int = 2  # the stages from this group on have the second noise
    above: int = 2  # index among the thresholds
    beta: int = 1  # index among BETAS


class PlanSearch:
    """Coordinate descent over plans, each played on the recordings; deterministic."""

    def __init__(self, recording: PlanRecording, model: RecursiveModel, *, rules: bool) -> None:
        self.recording, self.model, self.rules = recording, model, rules
        self.noises = list(recording.noisy) or [0.0]
        self.unit = 48 * recording.per_step
        self.thresholds = [0.0] if rules else _thresholds(recording.quiet, model)
        self.tried: dict[tuple[str, float, float, float], list[Played]] = {}

    def best(self) -> tuple[TunedPlan, Played]:
        """The plan that is worth most, and its outcome on the recordings."""
        starts = [
            Shape(above=min(2, len(self.thresholds) - 1)),
            Shape(12, (1, 2, 4), (12, 16, 16), (2, 4, 8), 1, len(self.thresholds) - 1),
            Shape(20, (2, 4, 32), (16, 16, 32), (8, 16, 8), 1, min(2, len(self.thresholds) - 1)),
        ]
        found = max((self._climb(start) for start in starts), key=self._worth)
        return self._plan(found), self._played(found)[-1]

    def frontier(self) -> tuple[PlanPoint, ...]:
        """The plans that no other beats, the cheapest first; beginnings of plans count too."""
        points = sorted(
            (outcome.evaluations, -outcome.right, stages, above, number)
            for (stages, _, _, above), outcomes in self.tried.items()
            for number, outcome in enumerate(outcomes, 1)
        )
        found: list[PlanPoint] = []
        for evaluations, lost, stages, above, number in points:
            if not found or -lost > found[-1].right:
                begun = _beginning(stages, number)
                found.append(PlanPoint(evaluations, -lost, begun, above))
        return tuple(found)

    def with_reserve(self, tuned: TunedPlan) -> TunedPlan:
        """The plan with as many further trajectories as pay for puzzles harder than these.

        If the share of undecided puzzles falls like n^-s with the number n of trajectories, then
        twice as many decide a share 1 - 2^-s of those left, at a price that grows with n.
        """
        stopping = Stopping.of(self.model, halt_above=tuned.halt_above, rules=self.rules)
        noise = self.noises[-1]
        slope = self._slope(noise, stopping)
        per_trajectory = PRICE * RESERVE.outer_steps / 48
        wanted = min((1.0 - 2.0**-slope) / per_trajectory, LARGEST_RESERVE)
        present = sum(stage.particles for stage in tuned.plan.stages[1:])
        times = math.ceil(max(0.0, wanted - present) / RESERVE.particles)
        stages = (*tuned.plan.stages, *[replace(RESERVE, noise=noise)] * times)
        return tuned._replace(plan=replace(tuned.plan, stages=stages))

    def _slope(self, noise: float, stopping: Stopping) -> float:
        """s, from the open puzzles that 8 and that all recorded trajectories leave undecided."""
        if noise not in self.recording.noisy:
            return 0.0
        found, counts = self.recording.noisy[noise], self.recording.counts[noise]
        success = (hits(found, stopping) & found.right).any(-1)  # (puzzle, trajectory)
        recorded = np.arange(success.shape[1]) < counts[:, None]
        success &= recorded
        first = np.where(success.any(1), success.argmax(1), success.shape[1])
        most = int(counts.max(initial=1))
        few = min(8, most)
        left = [float((first >= n).sum()) + 0.5 for n in (few, most)]
        return math.log(left[0] / left[1]) / math.log(most / few) if most > few else 0.0

    def _climb(self, shape: Shape) -> Shape:
        """Change one number at a time for as long as that pays."""
        while True:
            better = max(self._neighbours(shape), key=self._worth, default=shape)
            if self._worth(better) <= self._worth(shape) + 1e-12:
                return shape
            shape = better

    def _neighbours(self, shape: Shape) -> Iterator[Shape]:
        for first in (4, 8, 12, 16, 20, 24, 32, 48):
            yield shape._replace(first=first)
        for name, values in (
            ("particles", (1, 2, 4, 8, 16, 32)), ("steps", (8, 12, 16, 24, 32)),
            ("times", (0, 1, 2, 4, 8, 16)),
        ):  # fmt: skip
            for group in range(3):
                for value in values:
                    changed = list(getattr(shape, name))
                    changed[group] = value
                    yield shape._replace(**{name: tuple(changed)})  # type: ignore[arg-type]
        for loud in range(4) if len(self.noises) > 1 else ():
            yield shape._replace(loud=loud)
        for above in range(len(self.thresholds)):
            yield shape._replace(above=above)
        for beta in range(len(BETAS)):
            yield shape._replace(beta=beta)

    def _plan(self, shape: Shape) -> TunedPlan:
        stages = [Stage(1, shape.first)]
        for group in range(3):
            own = self.noises[-1] if group >= shape.loud and len(self.noises) > 1 else None
            stage = Stage(shape.particles[group], shape.steps[group], noise=own)
            stages += [stage] * shape.times[group]
        plan = Adaptive(
            tuple(stages), self.noises[0], BETAS[shape.beta],
            symmetric_views=self.recording.symmetric,
        )  # fmt: skip
        above = None if self.rules else self.thresholds[shape.above]
        return TunedPlan(plan, above, self.rules)

    def _played(self, shape: Shape) -> list[Played]:
        tuned = self._plan(shape)
        plan = tuned.plan
        if not self.recording.noisy:
            plan = replace(plan, stages=plan.stages[:1])
        name = tuned.as_mapping()
        key = name["stages"], plan.noise, plan.beta, tuned.halt_above or 0.0
        if key not in self.tried:
            stopping = Stopping.of(self.model, halt_above=tuned.halt_above, rules=self.rules)
            self.tried[key] = play(self.recording, plan, stopping)
        return self.tried[key]

    def _worth(self, shape: Shape) -> float:
        outcome = self._played(shape)[-1]
        return outcome.right - PRICE * outcome.evaluations / self.unit


def with_usual_end(plan: Adaptive, usual: Adaptive) -> Adaptive:
    """The plan, followed by the last stages of the usual one where that searches for longer.

    Only puzzles that the plan leaves undecided come to these stages.
    """
    missing = usual.particle_steps - plan.particle_steps
    reserve: list[Stage] = []
    for stage, noise in zip(reversed(usual.stages), reversed(usual.noises), strict=True):
        if missing <= 0:
            break
        reserve.insert(0, replace(stage, noise=noise))
        missing -= stage.particles * stage.outer_steps
    return replace(plan, stages=(*plan.stages, *reserve))


def _beginning(stages: str, number: int) -> str:
    return format_stages(parse_stages(stages)[:number])


def _thresholds(quiet: TrajectoryRecord, model: RecursiveModel) -> list[float]:
    """Halt logits to choose among: low quantiles of those of right answers, and the usual one."""
    right = quiet.logits[..., -1][quiet.right[..., -1]]
    usual = Stopping.of(model).halt_above
    found = [usual, HALT_ABOVE]
    if len(right):
        found += [float(np.quantile(right, q)) for q in (0.01, 0.05, 0.1, 0.25, 0.5)]
    return sorted({round(value, 2) for value in found})
