"""Particle weights in log space, their effective number, and the potentials that change them."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from tiltrm.errors import DegenerateError, SettingsError

HALVINGS = 50  # of the interval in which an inverse temperature is sought


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


def conditional_ess(log_weights: Tensor, log_potential: Tensor) -> Tensor:
    """Conditional ESS, S (sum W G)^2 / sum W G^2, in [1, S]; 0 for a dead cloud: (puzzle,).

    It is S where the potential G does not tell particles apart, whatever their weights W
    (Zhou, Johansen and Aston, 2016), and falls as the potential is raised to a higher power.
    """
    first = torch.logsumexp(log_weights + log_potential, -1)
    second = torch.logsumexp(log_weights + 2.0 * log_potential, -1)
    size = log_weights.shape[-1] * torch.exp(2.0 * first - second)
    return torch.where(first > -torch.inf, size, 0.0)


def largest_beta(log_weights: Tensor, tilt: Tensor, beta: float, fraction: float) -> Tensor:
    """The inverse temperature in [0, beta] of every cloud: (puzzle, 1).

    The largest for which a tilt (puzzle, particle) leaves a conditional ESS of `fraction` S. A
    dead particle's tilt does not count. Proved by tests/theory/test_weights.py.
    """
    alive = (log_weights > -torch.inf) & torch.isfinite(tilt)
    weights = normalise(torch.where(alive, log_weights.double(), -torch.inf))[0]
    score = torch.where(alive, tilt.double(), 0.0)
    low = torch.zeros_like(score[:, :1])
    high = torch.full_like(low, beta)
    wanted = fraction * score.shape[-1]
    whole = conditional_ess(weights, beta * score) >= wanted
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        enough = (conditional_ess(weights, middle * score) >= wanted)[:, None]
        low, high = torch.where(enough, middle, low), torch.where(enough, high, middle)
    return torch.where(whole[:, None], beta, low).to(tilt.dtype)


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
