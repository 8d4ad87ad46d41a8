"""Plans of adaptive solving, played on recorded trajectories.

Which puzzles stop when, what it costs, and how many answers are right, for any plan of fresh
restarts, without calling the network. When a trajectory stops first does not depend on the plan,
so it is looked up once for every stopping rule. Proved by tests/solving/test_tune.py against real
runs.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tiltrm.explore.plan import Adaptive, Stage
from tiltrm.solving.methods import Stopping
from tiltrm.solving.trajectories import Array, TrajectoryRecord

STRIDE = 37  # trajectories between two orders; prime, so that orders of a few differ too
NEVER = np.iinfo(np.int16).max  # the step of a stop that does not come


@dataclass(frozen=True)
class PlanRecording:
    """Everything that was recorded of the puzzles that a plan is chosen on."""

    quiet: TrajectoryRecord  # one trajectory without noise of every puzzle
    noisy: dict[float, TrajectoryRecord]  # by noise: of the puzzles at `rows`, padded
    counts: dict[float, Array]  # by noise: (row,) trajectories that were recorded
    rows: Array  # (puzzle,) the row in `noisy`; -1 for a puzzle that was recorded without noise
    weight: Array  # (puzzle,) how many puzzles it stands for
    per_step: int  # evaluations of one outer step of one particle
    symmetric: bool  # whether the noisy ones see symmetric views


class Played(NamedTuple):
    """The outcome of a plan: shares of the puzzles, and mean evaluations."""

    right: float
    undecided: float
    evaluations: float
    voted: float = 0.0  # undecided and right: the vote after the last step found the answer


class _Stops(NamedTuple):
    """The first stop of each of many trajectories: (puzzle, trajectory) each."""

    step: Array  # int16; NEVER where there is none
    logit: Array  # float32
    right: Array  # bool

    @classmethod
    def of(cls, seen: TrajectoryRecord, stopping: Stopping) -> "_Stops":
        stops = hits(seen, stopping)
        first = stops.argmax(-1)
        step = np.where(stops.any(-1), first, NEVER).astype(np.int16)
        logit, right = (
            np.take_along_axis(values, first[..., None], -1)[..., 0]
            for values in (seen.logits, seen.right)
        )
        return cls(step, logit, right)

    def before(self, steps: int) -> "_Stops":
        """Those of trajectories that end after so many steps."""
        return self._replace(step=np.where(self.step < steps, self.step, NEVER))


class _Particles(NamedTuple):
    """The particles of one stage: the trajectories that are theirs."""

    puzzles: Array  # (open puzzle,)
    kept: Array | None  # steps of the quiet trajectory that the first particle takes; None: fresh
    noise: float
    which: Array  # (open puzzle, fresh particle) numbers of noisy trajectories
    steps: int

    def part(self, rows: Array) -> "_Particles":
        """Of some of the puzzles."""
        return self._replace(puzzles=self.puzzles[rows], which=self.which[rows])


class _Voters(NamedTuple):
    """Particles as the weighted vote sees them: (puzzle, particle, ...) each."""

    logit: Array
    answer: Array
    right: Array
    total: Array  # the log halt probabilities of all steps so far, summed


class _Outcome(NamedTuple):
    decided: Array  # (puzzle,) bool
    steps: Array  # (puzzle,) taken
    right: Array  # (puzzle,) bool


class Player:
    """Plays plans on one recording."""

    def __init__(self, recording: PlanRecording) -> None:
        self.recording = recording
        self._stops: dict[tuple[float | None, Stopping], _Stops] = {}
        self._scores: dict[float | None, Array] = {}

    def play(self, plan: Adaptive, stopping: Stopping, order: int = 0) -> list[Played]:
        """The outcome after every stage, had it been the last.

        order: the noisy trajectories of every puzzle are taken from another one on, and around.
        """
        recording = self.recording
        count = len(recording.quiet.logits)
        right, spent = np.zeros(count, bool), np.zeros(count)
        open_, used, done = np.arange(count), dict.fromkeys(recording.noisy, order * STRIDE), 0
        weight = recording.weight / recording.weight.sum()
        found = []
        for number, (stage, noise) in enumerate(zip(plan.stages, plan.noises, strict=True)):
            particles = self._particles(open_, number, stage, noise, used, done)
            outcome = self._outcome(particles, stopping, plan.beta)
            spent[open_] += recording.per_step * stage.particles * outcome.steps
            right[open_] = outcome.right
            open_ = open_[~outcome.decided]
            done += stage.outer_steps
            found.append(
                Played(
                    float(weight @ right), float(weight[open_].sum()), float(weight @ spent),
                    float(weight[open_] @ right[open_]),
                )
            )  # fmt: skip
        return found

    def _particles(
        self, open_: Array, number: int, stage: Stage, noise: float, used: dict[float, int],
        done: int,
    ) -> _Particles:  # fmt: skip
        """Those of a stage; `used` counts the noisy trajectories that stages before have taken.

        Without symmetric views the first particle is the quiet one, which continues.
        """
        recording, kept = self.recording, None
        if number == 0 or not recording.symmetric:
            last = recording.quiet.logits.shape[2] - 1
            kept = np.minimum(done + np.arange(stage.outer_steps), last)
        fresh = stage.particles - (kept is not None)
        which = np.zeros((len(open_), 0), int)
        if fresh:
            counts = recording.counts[noise][recording.rows[open_]][:, None]
            which = (used[noise] + np.arange(fresh)[None]) % counts
            used[noise] += fresh
        return _Particles(open_, kept, noise, which, stage.outer_steps)

    def _outcome(self, particles: _Particles, stopping: Stopping, beta: float) -> _Outcome:
        """The first stop of any particle, or the vote after the last step."""
        stops = self._first_stops(particles, stopping)
        own = stops.step.min(1)
        agreed = np.full_like(own, NEVER)
        if not stopping.rules and stops.step.shape[1] >= stopping.agree_among:
            agreed = self._agreement(particles, stopping.agree_share, own)
        last = np.minimum(own, agreed)
        decided = last < NEVER
        last = np.where(decided, last, particles.steps - 1)
        best = np.where(stops.step == own[:, None], stops.logit, -np.inf).argmax(1)
        right = stops.right[np.arange(len(best)), best]
        voted = np.flatnonzero((own > agreed) | ~decided)
        right[voted] = self._vote(particles.part(voted), last[voted], beta)
        return _Outcome(decided, last + 1, right)

    def _first_stops(self, particles: _Particles, stopping: Stopping) -> _Stops:
        parts = []
        if particles.kept is not None:
            seen = self.recording.quiet.part(particles.puzzles[:, None, None], 0, particles.kept)
            parts.append(_Stops.of(seen, stopping))
        if particles.which.shape[1]:
            noisy, quiet = (self._stops_of(n, stopping) for n in (particles.noise, None))
            found = [self._fresh(particles, *both) for both in zip(noisy, quiet, strict=True)]
            parts.append(_Stops(*found).before(particles.steps))
        return _Stops(*(np.concatenate(column, 1) for column in zip(*parts, strict=True)))

    def _stops_of(self, noise: float | None, stopping: Stopping) -> _Stops:
        """Of all trajectories of a noise, or of the quiet ones; looked up once."""
        key = noise, stopping
        if key not in self._stops:
            self._stops[key] = _Stops.of(self._record(noise), stopping)
        return self._stops[key]

    def _score(self, noise: float | None) -> Array:
        """The log halt probabilities of all trajectories, summed up to each step."""
        if noise not in self._scores:
            self._scores[noise] = _log_halt(self._record(noise).logits).cumsum(-1)
        return self._scores[noise]

    def _record(self, noise: float | None) -> TrajectoryRecord:
        return self.recording.quiet if noise is None else self.recording.noisy[noise]

    def _fresh(self, particles: _Particles, noisy: Array, quiet: Array, *step: Array) -> Array:
        """The values of the fresh particles: (puzzle, particle, ...), at a step of each puzzle.

        A puzzle that needs no noise was recorded without: its quiet trajectory stands for all.
        """
        rows = self.recording.rows[particles.puzzles]
        found: Array = noisy[(rows[:, None], particles.which, *(at[:, None] for at in step))]
        quick = np.flatnonzero(rows < 0)
        own = quiet[(particles.puzzles[quick], 0, *(at[quick] for at in step))]
        found[quick] = own[:, None]
        return found

    def _agreement(self, particles: _Particles, share: float, until: Array) -> Array:
        """The first step at which this share of the particles has one answer: (puzzle,).

        Stops of particles at `until` come before those after it, so these are not looked at.
        """
        found = np.full(len(until), NEVER, np.int16)
        rows = np.flatnonzero(until > 0)
        answers = self._answers(particles.part(rows))
        agreed = _largest_share(answers) >= share
        found[rows] = np.where(agreed.any(1), agreed.argmax(1), NEVER)
        return found

    def _answers(self, particles: _Particles) -> Array:
        """(puzzle, particle, step)"""
        quiet, parts = self.recording.quiet.answers, []
        if particles.kept is not None:
            parts.append(quiet[particles.puzzles[:, None, None], 0, particles.kept])
        if particles.which.shape[1]:
            cut = slice(0, particles.steps)
            noisy = self._record(particles.noise).answers
            parts.append(self._fresh(particles, noisy[..., cut], quiet[..., cut]))
        return np.concatenate(parts, 1)

    def _vote(self, particles: _Particles, last: Array, beta: float) -> Array:
        """Whether the answer that the weighted vote chooses at the step `last` is right."""
        parts = []
        if particles.kept is not None:
            parts.append(self._kept_voters(particles, last))
        if particles.which.shape[1]:
            pairs = zip(self._voters(particles.noise), self._voters(None), strict=True)
            parts.append(_Voters(*(self._fresh(particles, *pair, last) for pair in pairs)))
        voters = _Voters(*(np.concatenate(column, 1) for column in zip(*parts, strict=True)))
        weight = np.exp(beta * (voters.total - voters.total.max(1, keepdims=True)))
        same = voters.answer[:, :, None] == voters.answer[:, None]
        mass = (same * weight[:, None]).sum(-1)
        tie = mass >= mass.max(1, keepdims=True) * (1 - 1e-6)
        chosen = np.where(tie, _log_halt(voters.logit), -np.inf).argmax(1)
        found: Array = voters.right[np.arange(len(chosen)), chosen]
        return found

    def _voters(self, noise: float | None) -> _Voters:
        """All trajectories of a noise, or the quiet ones, after every step."""
        record = self._record(noise)
        return _Voters(record.logits, record.answers, record.right, self._score(noise))

    def _kept_voters(self, particles: _Particles, last: Array) -> _Voters:
        """The first particles, after the step `last` of this stage."""
        assert particles.kept is not None
        own = self.recording.quiet.part(particles.puzzles[:, None], 0, particles.kept)
        total = _log_halt(own.logits).cumsum(-1)
        now = np.arange(len(last))[:, None], last[:, None]
        return _Voters(own.logits[now], own.answers[now], own.right[now], total[now])


def hits(seen: TrajectoryRecord, stopping: Stopping) -> Array:
    """Whether a particle may stop the puzzle: (puzzle, particle, step)."""
    if stopping.rules:
        return seen.valid
    hit: Array = seen.logits > stopping.halt_above
    return hit & seen.settled if stopping.settled else hit


def _log_halt(logits: Array) -> Array:
    found: Array = -np.logaddexp(0.0, -logits.astype(np.float64))
    return found


def _largest_share(answers: Array) -> Array:
    """Share of the particles with the most frequent answer: (puzzle, step)."""
    ordered = np.sort(answers, 1)
    size, best = ordered.shape[1], np.ones(ordered[:, 0].shape, int)
    run = np.ones_like(best)
    for place in range(1, size):
        run = np.where(ordered[:, place] == ordered[:, place - 1], run + 1, 1)
        best = np.maximum(best, run)
    shares: Array = best / size
    return shares
