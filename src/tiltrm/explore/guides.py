"""Guides: a score for every particle, higher is better. They add, scale and follow schedules.

guide = halting(model) + 2.0 * from_step(rules(task.violations), 12)
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from tiltrm.explore.bank import path_costs
from tiltrm.explore.batching import in_groups
from tiltrm.explore.cloud import Context
from tiltrm.model.base import RecursiveModel, State

Score = Callable[[State, Context], Tensor]  # -> (puzzle, particle) float32


@dataclass(frozen=True)
class Guide:
    """q(h) of the paper, or any other score; any function of the same form may stand in for it."""

    score: Score

    def __call__(self, state: State, context: Context) -> Tensor:
        return self.score(state, context)

    def __add__(self, other: Score) -> "Guide":
        return Guide(lambda state, context: self(state, context) + other(state, context))

    def __mul__(self, factor: float) -> "Guide":
        return Guide(lambda state, context: factor * self(state, context))

    __rmul__ = __mul__


def halting(model: RecursiveModel) -> Guide:
    """log sigmoid of the Q-head's logit (eq. 7)."""

    def score(state: State, context: Context) -> Tensor:
        if state is context.state:
            return F.logsigmoid(context.halt_logit(model))
        return F.logsigmoid(in_groups(model.halt_logit, state.answer))

    return Guide(score)


def confidence(model: RecursiveModel) -> Guide:
    """Mean over cells of the log-probability of the most likely token."""

    def head(answer: Tensor) -> Tensor:
        return torch.log_softmax(model.decode(answer), -1).amax(-1).mean(-1)

    return Guide(lambda state, context: in_groups(head, state.answer))


def residual() -> Guide:
    """-|h_n - h_(n-1)|, the root mean square of what the last outer step changed."""

    def square(new: Tensor, old: Tensor) -> Tensor:
        return (new.float() - old.float()).square_().flatten(2).mean(-1)

    def score(state: State, context: Context) -> Tensor:
        moved = square(state.answer, context.previous.answer)
        return -torch.sqrt((moved + square(state.latent, context.previous.latent)) / 2.0)

    return Guide(score)


def rules(violations: Callable[[Tensor, Tensor], Tensor]) -> Guide:
    """-(number of broken rules) of the decoded answer; `violations(puzzle, answer)` counts them."""

    def score(state: State, context: Context) -> Tensor:
        return -violations(context.problem.tokens[:, None], context.answers).float()

    return Guide(score)


def shortest(
    violations: Callable[[Tensor, Tensor], Tensor], length: Callable[[Tensor, Tensor], Tensor]
) -> Guide:
    """For paths: as `rules` where a rule is broken; else -1/10 for every cell more than the
    shortest faultless path of the cloud has, -1 at most. Needs no solution, only other paths.
    """

    def score(state: State, context: Context) -> Tensor:
        puzzles, answers = context.problem.tokens[:, None], context.answers
        return -path_costs(violations(puzzles, answers), length(puzzles, answers))

    return Guide(score)


def _while(active: Callable[[int], bool], guide: Score) -> Guide:
    def score(state: State, context: Context) -> Tensor:
        if active(context.clock.step):
            return guide(state, context)
        return torch.zeros(state.answer.shape[:2], device=state.answer.device)

    return Guide(score)


def from_step(guide: Score, first: int) -> Guide:
    """The guide from outer step `first` on; 0, without asking it, before."""
    return _while(lambda step: step >= first, guide)


def until_step(guide: Score, last: int) -> Guide:
    """The guide up to outer step `last`; 0, without asking it, after."""
    return _while(lambda step: step <= last, guide)
