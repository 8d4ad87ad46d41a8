"""Particle weights in log space, their effective number, and the potentials that change them."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from tiltrm.errors import DegenerateError, SettingsError


def normalise(log_weights: Tensor) -> tuple[Tensor, Tensor]:
    """Log-weights that sum to one, and the log of the sum they had: (puzzle, particle), (puzzle,).

    NaN and +inf count as weight zero. Where nothing is left, all weights stay -inf and so does the
    sum: such a cloud is seen by `degenerate`, and never becomes NaN.
    Proved by tests/theory/test_weights.py::test_dead_clouds_are_visible.
    """
    clean = torch.where(log_weights < torch.inf, log_weights, -torch.inf)
    total = torch.logsumexp(clean, -1, keepdim=True)
    return torch.where(total > -torch.inf, clean - total, -torch.inf), total.squeeze(-1)


def degenerate(log_weights: Tensor) -> Tensor:
    """Which clouds have no weight left: (puzzle, particle) -> (puzzle,) bool."""
    return (log_weights == -torch.inf).all(-1)


def ess(log_weights: Tensor) -> Tensor:
    """Effective sample size 1 / sum(w^2), in [1, particles], 0 for a dead cloud (eq. 12).

    Proved by tests/theory/test_weights.py::test_ess_extremes.
    """
    size = torch.exp(-torch.logsumexp(2.0 * log_weights, -1)).clamp(1.0, log_weights.shape[-1])
    return torch.where(degenerate(log_weights), 0.0, size)


def require_weight(log_weights: Tensor) -> None:
    """Raise DegenerateError, naming the puzzles whose every particle is dead."""
    dead = degenerate(log_weights).nonzero().flatten().tolist()
    if dead:
        shown = ", ".join(map(str, dead[:8])) + (", ..." if len(dead) > 8 else "")
        raise DegenerateError(
            f"every puzzle needs a particle with finite state and score, got none for {len(dead)} "
            f"(puzzle {shown}); check the model, or set on_degenerate='abstain'"
        )


class Potential(NamedTuple):
    """When the guide is asked, and what log G / beta is then."""

    asks: Callable[[int, int], bool]  # (step, steps) -> is the guide asked at this step?
    tilt: Callable[[Tensor, Tensor], Tensor]  # (score, previous score) -> (puzzle, particle)


def _every(every: int) -> Callable[[int, int], bool]:
    if every < 1:
        raise SettingsError(f"score_every must be at least 1, got {every}")
    return lambda step, steps: step % every == 0 or step == steps


def every_step(every: int = 1) -> Potential:
    """G = exp(beta q_n) at every step (eq. 11), or at every so many and the last."""
    return Potential(_every(every), lambda score, previous: score)


def difference(every: int = 1) -> Potential:
    """G = exp(beta (q_n - q_(n-1))): a path's weight telescopes to exp(beta q_N).

    Proved by tests/theory/test_weights.py::test_difference_telescopes.
    """
    return Potential(_every(every), lambda score, previous: score - previous)


def terminal() -> Potential:
    """G = exp(beta q_N) at the last step, 1 before."""
    return Potential(lambda step, steps: step == steps, lambda score, previous: score)
