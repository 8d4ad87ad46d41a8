"""The reserve of a tuned plan: further stages for puzzles that the plan leaves undecided.

Puzzles that no recording decides say nothing about what would; so the reserve has the noises, the
length and the number of trajectories that pay on the hard ones that are decided now and then.
Where the usual plan ends in stages that guess, these come instead. No recording can say what they
do, so they are measured by real runs. Proved by tests/solving/test_reserve.py.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, dropwhile, groupby, islice, takewhile
from typing import NamedTuple

import numpy as np

from tiltrm.explore.plan import Adaptive, Stage
from tiltrm.solving.methods import Stopping
from tiltrm.solving.playing import PlanRecording, Played, hits
from tiltrm.solving.trajectories import Array

PARTICLES = 32  # of every stage
IN_TURN = 4  # stages at one noise before the other
LENGTHS = (32, 24, 16, 12)  # outer steps to choose among
LARGEST = 1024 * 32  # outer steps of all particles together
FEW = 8  # trajectories; how many more are worth is seen from here on
HARD = 1 / 8  # a puzzle is hard if a smaller share of its trajectories stops at a right answer
TIMES = (1, 2, 4)  # how often the last group of stages that guess may come

Stages = tuple[Stage, ...]


class Kind(NamedTuple):
    """The trajectories of a reserve: stages at these noises in turn, all of one length."""

    noises: tuple[float, ...]
    outer_steps: int


class StopShares(NamedTuple):
    """Shares of the trajectories of every hard puzzle: (puzzle,) each."""

    right: Array  # that stop at a right answer first
    wrong: Array


class End(NamedTuple):
    """The stages that guess, and what they do with a puzzle that comes to them."""

    stages: Stages
    right: float  # the share that they decide rightly
    evaluations: float  # spent in them, in the mean
    puzzles: int  # that came to them when they were measured

    def after(self, played: Played) -> Played:
        """The outcome of a plan with this end. What the plan alone would vote no longer counts."""
        return Played(
            played.right - played.voted + played.undecided * self.right,
            played.undecided * (1.0 - self.right),
            played.evaluations + played.undecided * self.evaluations,
        )


def beginning(plan: Adaptive) -> Stages:
    """The first stage and the first group of restarts, all at the plan's noise; none guesses."""
    before = takewhile(lambda stage: not stage.guesses, plan.stages)
    groups = islice(groupby(before), 2)
    return tuple(replace(stage, noise=None) for _, same in groups for stage in same)


def ends(plan: Adaptive, most: float) -> list[Stages]:
    """The stages from the first one that guesses on, the last group as often as TIMES says.

    The shortest comes first. They keep the plan's noise: guesses make the trajectories differ, so
    less depends on it than in restarts.

    most: outer steps of all particles together. [] where no stage guesses.
    """
    guessing = dropwhile(
        lambda pair: not pair[0].guesses, zip(plan.stages, plan.noises, strict=True)
    )
    once = stages_within(tuple(replace(stage, noise=noise) for stage, noise in guessing), most)
    if not once:
        return []
    *_, last = (tuple(same) for _, same in groupby(once))
    found = [once + last * (times - 1) for times in TIMES]
    return [stages for stages in found if particle_steps(stages) <= most]


def best_end(
    choices: Sequence[Stages], right: Array, spent: Array, per_step: int, price: float
) -> End:
    """The end that is worth most, from a real run of the longest one.

    All choices are beginnings of the longest. A share of n puzzles is (right + 1) / (n + 2); an
    end that no puzzle came to is taken to spend half of its length.

    Args:
        choices: The ends, the shortest first.
        right: (puzzle,) bool, whether a puzzle that came to the end was decided rightly.
        spent: (puzzle,) evaluations in the end.
        per_step: Evaluations of one outer step of one particle.
        price: Of such a step, in right answers.
    """

    def measured(stages: Stages) -> End:
        length = particle_steps(stages) * per_step
        share = (int((right & (spent <= length)).sum()) + 1) / (len(spent) + 2)
        mean = float(np.minimum(spent, length).mean()) if len(spent) else length / 2
        return End(stages, share, mean, len(spent))

    return max(map(measured, choices), key=lambda e: e.right - price * e.evaluations / per_step)


def particle_steps(stages: Stages) -> int:
    """Outer steps of all particles together, for a puzzle that is never decided."""
    return sum(stage.particles * stage.outer_steps for stage in stages)


def stages_within(stages: Stages, most: float) -> Stages:
    """The first stages that take at most so many outer steps of all particles."""
    totals = accumulate(stage.particles * stage.outer_steps for stage in stages)
    return tuple(stage for stage, total in zip(stages, totals, strict=True) if total <= most)


def with_reserve(
    plan: Adaptive, recording: PlanRecording, stopping: Stopping, price: float
) -> Adaptive:
    """The plan with as many further trajectories as pay for puzzles harder than the recorded ones.

    price: of one outer step of one particle, in right answers. If the share of undecided puzzles
    falls like n^-s with the number n of trajectories, one more decides a share s / n of those left.
    So more of them pay until n is s over the price of one.
    """
    if not recording.noisy:
        return plan
    hard = _hard(recording, stopping)
    kind = best_kind(recording, stopping, hard)
    shares = _mixed(recording, stopping, kind, hard)
    most = max(int(counts.max(initial=1)) for counts in recording.counts.values())
    wanted = _slope(shares.right, most) / (price * kind.outer_steps)
    present = sum(stage.particles for stage in plan.stages[1:])
    missing = min(wanted, LARGEST / kind.outer_steps) - present
    times = math.ceil(max(0.0, missing) / PARTICLES)
    noises = [kind.noises[n // IN_TURN % len(kind.noises)] for n in range(times)]
    further = [Stage(PARTICLES, kind.outer_steps, noise=noise) for noise in noises]
    return replace(plan, stages=(*plan.stages, *further))


def best_kind(recording: PlanRecording, stopping: Stopping, hard: Array) -> Kind:
    """The kind that leaves fewest answers to hard puzzles not right; both noises where alike.

    Summed over doublings of the outer steps that are spent, so that puzzles of every difficulty
    count: a kind that is better for all of them is likely to be so for harder ones.
    """
    noises = tuple(recording.noisy)
    mixtures = dict.fromkeys((noises, *((noise,) for noise in noises)))
    kinds = [Kind(mixture, steps) for mixture in mixtures for steps in LENGTHS]
    spent = [PARTICLES << n for n in range(int(math.log2(LARGEST / PARTICLES)) + 1)]

    def not_right(kind: Kind) -> float:
        right, wrong = _mixed(recording, stopping, kind, hard)
        either = right + wrong
        share = np.divide(right, either, out=np.zeros_like(right), where=either > 0)
        stopped = [1.0 - (1.0 - either) ** (steps / kind.outer_steps) for steps in spent]
        return round(float(sum((1.0 - share * s).sum() for s in stopped)), 9)

    return min(kinds, key=not_right)


def _hard(recording: PlanRecording, stopping: Stopping) -> Array:
    """The rows of the puzzles that few trajectories solve, at either noise."""
    shares = [
        _stop_shares(recording, stopping, noise, max(LENGTHS)).right for noise in recording.noisy
    ]
    rows: Array = np.flatnonzero(np.max(shares, 0) < HARD)
    return rows


def _mixed(recording: PlanRecording, stopping: Stopping, kind: Kind, hard: Array) -> StopShares:
    """The shares of hard puzzles' trajectories that stop, of the kind's noises together."""
    found = [_stop_shares(recording, stopping, n, kind.outer_steps) for n in kind.noises]
    return StopShares(*(np.mean(column, 0)[hard] for column in zip(*found, strict=True)))


def _stop_shares(
    recording: PlanRecording, stopping: Stopping, noise: float, steps: int
) -> StopShares:
    """Of all recorded puzzles."""
    found, counts = recording.noisy[noise].part(..., slice(0, steps)), recording.counts[noise]
    stops = hits(found, stopping)
    recorded = np.arange(stops.shape[1]) < counts[:, None]
    stopped = stops.any(-1) & recorded
    right = np.take_along_axis(found.right, stops.argmax(-1)[..., None], -1)[..., 0] & stopped
    wrong = stopped & ~right
    return StopShares(*(column.sum(1) / np.maximum(counts, 1) for column in (right, wrong)))


def _slope(share: Array, most: int) -> float:
    """s, from the puzzles that few and that `most` trajectories leave undecided."""
    if most <= FEW:
        return 0.0
    left = [float(((1.0 - share) ** n).sum()) + 0.5 for n in (FEW, most)]
    return math.log(left[0] / left[1]) / math.log(most / FEW)
