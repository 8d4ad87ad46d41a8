"""Recorded trajectories: many of every puzzle, each with its own noise.

After every outer step: the halt logit, a number that stands for the answer, whether the answer
keeps the rules, and whether it is right. Any plan of fresh restarts can be played on recordings
without calling the network again (`tiltrm.solving.playing`).
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tiltrm.explore import Exploration
from tiltrm.explore.batching import chunk_size, in_chunks, single_threaded
from tiltrm.explore.cloud import Clock, initial_cloud, make_problem
from tiltrm.explore.inputs import device_of
from tiltrm.explore.search import step_functions
from tiltrm.explore.step import step
from tiltrm.model.base import RecursiveModel
from tiltrm.tasks import Task
from tiltrm.tasks.base import exactly_right, views
from tiltrm.tasks.published import keeps_rules

MOST = 128  # trajectories of a puzzle that have symmetries of their own
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
        return np.concatenate((np.zeros((*same.shape[:-1], 1), bool), same), -1)


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
