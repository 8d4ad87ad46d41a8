"""Exploration alone, watched: every guide scores the same untilted clouds.

The first particle of each cloud is free of noise, so it is the deterministic trajectory; the
others are independent draws of the proposal. Nothing is resampled, so that a particle has one
outcome, and any guide at any beta can be judged on the same run.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from tiltrm.explore import Exploration, NoiseFreeFirst, everywhere, explore
from tiltrm.explore.cloud import StepInfo
from tiltrm.explore.guides import Score
from tiltrm.explore.search import Progress
from tiltrm.model.base import RecursiveModel


class Watched(NamedTuple):
    """What happened to a few puzzles, on the CPU."""

    scores: dict[str, Tensor]  # by guide: (puzzle, step, particle); -inf for a dead particle
    answers: Tensor  # (puzzle, step, particle, cell) uint8
    keys: Tensor  # (puzzle,): the root of each puzzle's randomness


class _Recorder:
    """Gathers the steps of one chunk, and hands it on after the last one."""

    def __init__(self, guides: Mapping[str, Score], hand_on: Callable[[Watched], None]) -> None:
        self.guides, self.hand_on = guides, hand_on
        self.steps: list[tuple[dict[str, Tensor], Tensor]] = []

    def __call__(self, info: StepInfo) -> None:
        context = info.context
        if context.clock.step == 1:
            self.steps = []  # a chunk that ran out of memory begins again, smaller
        scores = {n: g(context.state, context).float().cpu() for n, g in self.guides.items()}
        scores = {n: torch.where(torch.isfinite(s), s, -torch.inf) for n, s in scores.items()}
        self.steps.append((scores, context.answers.cpu()))
        if context.clock.step == context.clock.steps:
            by_guide = {n: torch.stack([s[n] for s, _ in self.steps], 1) for n in self.guides}
            answers = torch.stack([a for _, a in self.steps], 1)
            self.hand_on(Watched(by_guide, answers, context.problem.keys.cpu()))


def watch(
    model: RecursiveModel, tokens: Tensor, settings: Exploration, guides: Mapping[str, Score],
    hand_on: Callable[[Watched], None], *, seed: int, progress: Progress | None = None,
) -> None:  # fmt: skip
    """Explore without a tilt; `hand_on` gets the puzzles chunk by chunk, in their order."""
    quiet = Exploration(
        particles=settings.particles, noise=settings.noise, outer_steps=settings.outer_steps,
        beta=0.0, trigger="never", potential="terminal", entropy_every=0, on_degenerate="abstain",
        placement=NoiseFreeFirst(everywhere),
    )  # fmt: skip
    record = _Recorder(guides, hand_on)
    explore(model, tokens, quiet, guide=next(iter(guides.values())), seed=seed, watch=record,
            progress=progress)  # fmt: skip
