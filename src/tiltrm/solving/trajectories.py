"""Recorded trajectories, and plans of adaptive solving played on them.

A trajectory is recorded once: after every outer step its halt logit, a number that stands for its
answer, whether the answer keeps the rules, and whether it is right. Any plan of fresh restarts can
then be played on the recordings without calling the network again: which puzzles stop when, what
it costs, and how many answers are right. Proved by tests/solving/test_tune.py against real runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tiltrm.explore import Exploration
from tiltrm.explore.batching import chunk_size, in_chunks, single_threaded
from tiltrm.explore.cloud import Clock, initial_cloud, make_problem
from tiltrm.explore.inputs import device_of
from tiltrm.explore.plan import Adaptive, Stage
from tiltrm.explore.search import step_functions
from tiltrm.explore.step import step
from tiltrm.model.base import RecursiveModel
from tiltrm.solving.methods import Stopping
from tiltrm.tasks import Task
from tiltrm.tasks.base import exactly_right, views
from tiltrm.tasks.published import keeps_rules

MOST = 128  # trajectories of a puzzle that have symmetries of their own
STRIDE = 37  # trajectories between two orders; prime, so that orders of a few differ too
Array = np.ndarray[Any, Any]


class TrajectoryRecord(NamedTuple):
    """Several trajectories of every puzzle: (puzzle, trajectory, step) each."""

    logits: Array  # float32 halt logits
    answers: Array  # int64: equal numbers are equal answers
    valid: Array  # bool: the answer keeps the rules
    right: Array  # bool: the answer is the label; False without labels

    def part(self, *index: Any) -> "TrajectoryRecord":
        """Indexed alike."""
        return TrajectoryRecord(*(values[index] for values in self))

    @property
    def settled(self) -> Array:
        """Whether the answer equals that of one step before."""
        same = self.answers[..., 1:] == self.answers[..., :-1]
        return np.concatenate((np.zeros_like(same[..., :1]), same), -1)


def join(parts: Sequence[TrajectoryRecord], axis: int) -> TrajectoryRecord:
    """The trajectories of several records, end to end."""
    return TrajectoryRecord(*(np.concatenate(values, axis) for values in zip(*parts, strict=True)))


def follow_many(
    model: RecursiveModel, task: Task, tokens: Tensor, labels: Tensor | None, *, which: range,
    steps: int, noise: float, symmetric: bool, seed: int,
) -> TrajectoryRecord:  # fmt: skip
    """The trajectories numbered `which` of every puzzle.

    Each has its own noise, and with `symmetric` sees the puzzle under a symmetry of its own.
    """
    device = device_of(model, tokens)
    settings = Exploration(
        particles=len(which), noise=noise, beta=0.0, trigger="never", outer_steps=steps,
        entropy_every=0,
    )  # fmt: skip
    functions = step_functions(model, settings)
    slots = torch.tensor(list(which), device=device)
    own = None
    if symmetric:
        every = views(task, MOST + 1, seed=seed, again=True)  # the identity first
        own = every.part(1 + slots.cpu() % MOST).on(device, model.vocabulary)

    def run(part: slice) -> TrajectoryRecord:
        puzzles = tokens[part].to(device)
        known = None if labels is None else labels[part].to(device)[:, None]
        problem = make_problem(model, puzzles, len(which), seed=seed)._replace(particles=slots)
        if own is not None:
            problem = problem.with_views(model, own)
        cloud, found = initial_cloud(model, problem), []
        for n in range(1, steps + 1):
            cloud, info = step(cloud, problem, Clock(n, steps), model, **functions._asdict())
            answers = info.context.answers
            valid = keeps_rules(task, puzzles[:, None], answers)
            right = torch.zeros_like(valid) if known is None else exactly_right(answers, known)
            logit = info.context.halt_logit().float()
            found.append((logit, answer_numbers(answers), valid, right))
        return TrajectoryRecord(
            *(torch.stack(column, -1).cpu().numpy() for column in zip(*found, strict=True))
        )

    with torch.inference_mode(), single_threaded(device) as threads:
        size = chunk_size(model.embed(tokens[:1].to(device))[:, None], len(which), threads)
        return join(in_chunks(len(tokens), size, run), 0)


def answer_numbers(answers: Tensor) -> Tensor:
    """A number for every answer, equal for equal answers: (..., cell) -> (...) int64.

    A sum of tokens times random odd numbers, modulo 2^64.
    """
    return (answers.long() * _odd_numbers(answers.shape[-1], answers.device)).sum(-1)


@lru_cache
def _odd_numbers(count: int, device: torch.device) -> Tensor:
    """Random odd numbers, (count,) int64; kept, since a GPU waits for every copy to it."""
    generator = torch.Generator().manual_seed(0x7469)
    numbers = torch.randint(-(2**62), 2**62, (count,), generator=generator) * 2 + 1
    return numbers.to(device)


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


def play(
    recording: PlanRecording, plan: Adaptive, stopping: Stopping, order: int = 0
) -> list[Played]:
    """The outcome after every stage, had it been the last.

    order: the noisy trajectories of every puzzle are taken from another one on, and around.
    """
    count = len(recording.quiet.logits)
    right, spent = np.zeros(count, bool), np.zeros(count)
    open_, used, done = np.arange(count), dict.fromkeys(recording.noisy, order * STRIDE), 0
    found = []
    for number, (stage, noise) in enumerate(zip(plan.stages, plan.noises, strict=True)):
        seen = _stage_view(recording, open_, number, stage, noise, used, done)
        outcome = _stop(seen, stopping, plan.beta)
        spent[open_] += recording.per_step * stage.particles * outcome.steps
        right[open_] = outcome.right
        open_ = open_[~outcome.decided]
        done += stage.outer_steps
        weight = recording.weight / recording.weight.sum()
        found.append(
            Played(
                float(weight @ right), float(weight[open_].sum()), float(weight @ spent),
                float(weight[open_] @ right[open_]),
            )
        )  # fmt: skip
    return found


def _stage_view(
    recording: PlanRecording, open_: Array, number: int, stage: Stage, noise: float,
    used: dict[float, int], done: int,
) -> TrajectoryRecord:  # fmt: skip
    """The trajectories of a stage: (open puzzle, particle, step).

    Without symmetric views the first particle is the quiet one, which continues.
    """
    steps = stage.outer_steps
    kept = 1 if number == 0 or not recording.symmetric else 0
    parts = []
    if kept:
        last = recording.quiet.logits.shape[2] - 1
        parts.append(
            recording.quiet.part(open_)
            .part(slice(None), slice(None), np.minimum(done + np.arange(steps), last))
        )  # fmt: skip
    fresh = stage.particles - kept
    if fresh:
        parts.append(_fresh(recording, open_, noise, used[noise], fresh, steps))
        used[noise] += fresh
    return join(parts, 1) if len(parts) > 1 else parts[0]


def _fresh(
    recording: PlanRecording, open_: Array, noise: float, first: int, count: int, steps: int
) -> TrajectoryRecord:
    """`count` noisy trajectories of every open puzzle, from the one numbered `first` on.

    A puzzle that needs no noise was recorded without: its quiet trajectory stands for all.
    """
    rows, counts = recording.rows[open_], recording.counts[noise]
    which = (first + np.arange(count)[None]) % counts[rows][:, None]
    found = recording.noisy[noise].part(rows[:, None], which, slice(0, steps))
    quick = np.flatnonzero(rows < 0)
    quiet = recording.quiet.part(open_[quick], slice(None), slice(0, steps))
    for values, own in zip(found, quiet, strict=True):
        values[quick] = own
    return found


class _Stop(NamedTuple):
    decided: Array  # (puzzle,) bool
    steps: Array  # (puzzle,) taken
    right: Array  # (puzzle,) bool


def hits(seen: TrajectoryRecord, stopping: Stopping) -> Array:
    """Whether a particle may stop the puzzle: (puzzle, particle, step)."""
    if stopping.rules:
        return seen.valid
    hit: Array = seen.logits > stopping.halt_above
    return hit & seen.settled if stopping.settled else hit


def _stop(seen: TrajectoryRecord, stopping: Stopping, beta: float) -> _Stop:
    """Play one stage: the first stop of any particle, or the vote after the last step."""
    stops = hits(seen, stopping)
    by_particle: Array = np.logical_or.reduce(stops, axis=1)
    agreed = np.zeros_like(by_particle)
    if not stopping.rules and seen.logits.shape[1] >= stopping.agree_among:
        agreed = _agreement(seen.answers) >= stopping.agree_share
    any_ = by_particle | agreed
    decided: Array = np.logical_or.reduce(any_, axis=1)
    last = np.where(decided, any_.argmax(1), any_.shape[1] - 1)
    rows = np.arange(len(last))
    logits = np.where(stops, seen.logits, -np.inf)[rows, :, last]
    vote = _vote(seen, last, beta)
    chosen = np.where(by_particle[rows, last], logits.argmax(1), vote)
    return _Stop(decided, last + 1, seen.right[rows, chosen, last])


def _agreement(answers: Array) -> Array:
    """Share of the particles with the most frequent answer: (puzzle, step)."""
    ordered = np.sort(answers, 1)
    size, best = ordered.shape[1], np.ones(ordered[:, 0].shape, int)
    run = np.ones_like(best)
    for place in range(1, size):
        run = np.where(ordered[:, place] == ordered[:, place - 1], run + 1, 1)
        best = np.maximum(best, run)
    shares: Array = best / size
    return shares


def _vote(seen: TrajectoryRecord, last: Array, beta: float) -> Array:
    """The particle that the weighted vote chooses at the step `last`: (puzzle,)."""
    rows = np.arange(len(last))
    score = -np.logaddexp(0.0, -seen.logits.astype(np.float64))
    total = beta * score.cumsum(-1)[rows, :, last]
    weight = np.exp(total - total.max(1, keepdims=True))
    now = seen.answers[rows, :, last]
    mass = ((now[:, :, None] == now[:, None]) * weight[:, None]).sum(-1)
    tie = mass >= mass.max(1, keepdims=True) * (1 - 1e-6)
    chosen: Array = np.where(tie, score[rows, :, last], -np.inf).argmax(1)
    return chosen
