"""The plan that is worth most on recorded trajectories, by coordinate descent.

A plan is worth its share of right answers less PRICE for every outer step that it costs. Where the
usual plan ends in stages that guess, every plan is taken to end in them.
Proved by tests/solving/test_tune.py and test_reserve.py.
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
from tiltrm.solving.playing import PlanRecording, Played, Player
from tiltrm.solving.reserve import End, particle_steps, stages_within, with_reserve
from tiltrm.solving.trajectories import TrajectoryRecord

PRICE = 0.0003 / 48  # of an outer step of one particle, in right answers
BETAS = (0.0, 0.25, 1.0)
ORDERS = 16  # of the recorded trajectories, where thresholds are compared


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

    def __init__(
        self, recording: PlanRecording, model: RecursiveModel, *, rules: bool,
        per_puzzle: float = math.inf, end: End | None = None,
    ) -> None:  # fmt: skip
        """per_puzzle: evaluations that the chosen plan may spend on one puzzle.

        end: the stages that guess, which come after the chosen plan; None where there are none.
        """
        self.recording, self.model, self.rules, self.end = recording, model, rules, end
        self.player = Player(recording)
        self.most_steps = per_puzzle / recording.per_step  # of all particles together
        self.noises = list(recording.noisy) or [0.0]
        self.per_step = recording.per_step
        self.thresholds = [0.0] if rules else _thresholds(recording.quiet, model)
        self.tried: dict[tuple[str, float, float, float], list[Played]] = {}

    def ending_in(self, end: End) -> "PlanSearch":
        """The same search for plans with this end."""
        bound = self.most_steps * self.per_step
        return PlanSearch(self.recording, self.model, rules=self.rules, per_puzzle=bound, end=end)

    def best(self) -> TunedPlan:
        """The plan that is worth most on the recordings, without a reserve."""
        starts = [
            Shape(above=min(2, len(self.thresholds) - 1)),
            Shape(12, (1, 2, 4), (12, 16, 16), (2, 4, 8), 1, len(self.thresholds) - 1),
            Shape(20, (2, 4, 32), (16, 16, 32), (8, 16, 8), 1, min(2, len(self.thresholds) - 1)),
        ]
        found = max((self._climb(start) for start in starts), key=self._worth)
        return self._plan(found)

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

    def chosen(self, usual: Adaptive) -> tuple[TunedPlan, Played]:
        """The best plan with its reserve and a checked threshold, and its outcome.

        It searches for no less long than the usual plan. Where most of the undecided answers are
        right, the vote after the last step finds them, and further stages would only replace it.
        Stages that guess, where there are any, come instead of the reserve and the usual end.
        """
        found = self.best()
        if self.end is not None:
            return self._ended(found, self.end)
        found = found._replace(plan=within(found.plan, self.most_steps))
        by_vote = _is_voted_well(self._play(found)[-1])
        if not by_vote:
            stopping = self._stopping(found)
            reserved = with_reserve(found.plan, self.recording, stopping, PRICE)
            found = found._replace(plan=within(reserved, self.most_steps))
        found = self.with_checked_threshold(found)
        outcome = self._play(found)[-1]  # the usual plan's noises are not among the recorded ones
        if not by_vote:
            ended = with_usual_end(found.plan, usual)
            found = found._replace(plan=within(ended, self.most_steps))
        return found, outcome

    def needs_no_end(self) -> bool:
        """Whether the vote finds most answers that the best plan leaves undecided."""
        found = self.best()
        plan = within(found.plan, self.most_steps)
        return _is_voted_well(self._play(found._replace(plan=plan))[-1])

    def _ended(self, found: TunedPlan, end: End) -> tuple[TunedPlan, Played]:
        """The plan with a checked threshold, followed by the stages that guess; and its outcome."""
        left = self.most_steps - particle_steps(end.stages)
        found = self.with_checked_threshold(found._replace(plan=within(found.plan, left)))
        outcome = end.after(self._play(found)[-1])
        plan = replace(found.plan, stages=(*found.plan.stages, *end.stages))
        return found._replace(plan=plan), outcome

    def with_checked_threshold(self, tuned: TunedPlan) -> TunedPlan:
        """The plan with the threshold that is worth most over many orders of the trajectories.

        One order has few wrong stops, so it makes a threshold that is too low look good.
        """
        if tuned.halt_above is None or not self.recording.noisy:
            return tuned

        def worth(above: float) -> tuple[float, float]:
            stopping = self._stopping(tuned._replace(halt_above=above))
            outcomes = [
                self.player.play(tuned.plan, stopping, order)[-1] for order in range(ORDERS)
            ]
            return round(sum(map(self._value, outcomes)), 9), above

        return tuned._replace(halt_above=max(self.thresholds, key=worth))

    def _stopping(self, tuned: TunedPlan) -> Stopping:
        return Stopping.of(self.model, halt_above=tuned.halt_above, rules=self.rules)

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

    def _play(self, tuned: TunedPlan) -> list[Played]:
        """The outcome after every stage; each plan is played once."""
        plan = tuned.plan
        if not self.recording.noisy:
            plan = replace(plan, stages=plan.stages[:1])
        name = tuned.as_mapping()
        key = name["stages"], plan.noise, plan.beta, tuned.halt_above or 0.0
        if key not in self.tried:
            self.tried[key] = self.player.play(plan, self._stopping(tuned))
        return self.tried[key]

    def _worth(self, shape: Shape) -> float:
        return self._value(self._play(self._plan(shape))[-1])

    def _value(self, outcome: Played) -> float:
        ended = outcome if self.end is None else self.end.after(outcome)
        return ended.right - PRICE * ended.evaluations / self.per_step


def _is_voted_well(outcome: Played) -> bool:
    return outcome.voted > outcome.undecided / 2


def within(plan: Adaptive, steps: float) -> Adaptive:
    """The first stages, at least one, that take at most so many outer steps of all particles."""
    return replace(plan, stages=stages_within(plan.stages, steps) or plan.stages[:1])


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
