"""Can the guide tell right trajectories from wrong ones, and can it move the cloud at all?

Lemma 5.4, eqs. (18) and (19), Fig. 3 and App. F of the paper. All functions take clouds
(..., particle): the weights before the tilt, the guide's scores, and where labels are known which
particles succeed. The tilting path is w_t = w exp(t q), t from 0 to beta.
Proved by tests/diagnose/test_alignment.py, each against loops over the particles.
"""

import math

import torch
from torch import Tensor

from tiltrm.explore.select import same_answer
from tiltrm.explore.weights import normalise

TIMES = 33  # points of the tilting path at which the supremum is taken, both ends among them


def tilt(log_weights: Tensor, score: Tensor, t: float) -> Tensor:
    """Log-weights of the tilted law pi_t (eq. 8); a dead particle stays dead."""
    return normalise(log_weights + t * score)[0]


def even(score: Tensor) -> Tensor:
    """Equal log-weights on the particles with a finite score: a cloud nobody has tilted yet."""
    return normalise(torch.where(torch.isfinite(score), 0.0, -torch.inf).to(score))[0]


def mean(log_weights: Tensor, value: Tensor) -> Tensor:
    """E[value] under the cloud; what has no weight may have any value: (...)."""
    weights = log_weights.exp()
    return torch.where(weights > 0, weights * value, 0.0).sum(-1)


def spread(log_weights: Tensor, score: Tensor) -> Tensor:
    """Standard deviation of the score under the cloud: (...); 0 where one particle has it all."""
    centre = mean(log_weights, score)[..., None]
    return mean(log_weights, (score - centre).square()).sqrt()


def times(beta: float, count: int = TIMES) -> list[float]:
    """0, ..., beta."""
    return [beta * index / (count - 1) for index in range(count)]


def widest_spread(log_weights: Tensor, score: Tensor, beta: float, count: int = TIMES) -> Tensor:
    """sup over t in [0, beta] of the spread under the tilted weights, on a grid: (...)."""
    path = [spread(tilt(log_weights, score, t), score) for t in times(beta, count)]
    return torch.stack(path).amax(0)


def spread_bound(log_weights: Tensor, score: Tensor, beta: float, count: int = TIMES) -> Tensor:
    """beta/2 sup_t std_t[q] >= |p(beta) - p(0)| for whatever set counts as success (eq. 19)."""
    return beta / 2 * widest_spread(log_weights, score, beta, count)


def moved(log_weights: Tensor, score: Tensor, beta: float) -> Tensor:
    """The most that the tilt moves onto any set of particles: half of sum |w_beta - w_0|, (...).

    The label-free sharpening of `spread_bound`: some set attains it, and none exceeds it.
    """
    change = tilt(log_weights, score, beta).exp() - log_weights.exp()
    return change.abs().sum(-1) / 2


def moved_between(answers: Tensor, log_weights: Tensor, score: Tensor, beta: float) -> Tensor:
    """The most that the tilt moves onto any set of answers: (puzzle, particle, cell) -> (puzzle,).

    At most `moved`, and less where particles agree: there is nothing to choose between them.
    """
    change = tilt(log_weights, score, beta).exp() - log_weights.exp()
    same = same_answer(answers).to(change)
    return ((same * change[:, None]).sum(-1).abs() / same.sum(-1)).sum(-1) / 2


def mass(log_weights: Tensor, success: Tensor) -> Tensor:
    """p = P(H in A) under the cloud: (...)."""
    return torch.where(success, log_weights.exp(), 0.0).sum(-1)


def gap(log_weights: Tensor, score: Tensor, success: Tensor) -> Tensor:
    """Delta = E[q | A] - E[q | not A] (eq. 18), NaN where either has no weight: (...).

    It is the derivative of log p / (1 - p) along the tilting path (App. F).
    """
    inside = torch.where(success, log_weights, -torch.inf)
    outside = torch.where(success, -torch.inf, log_weights)
    value = mean(normalise(inside)[0], score) - mean(normalise(outside)[0], score)
    both = (inside > -torch.inf).any(-1) & (outside > -torch.inf).any(-1)
    return torch.where(both, value, math.nan)


def gap_path(
    log_weights: Tensor, score: Tensor, success: Tensor, beta: float, count: int = TIMES
) -> Tensor:
    """Delta(t) for t = 0, ..., beta: (time, ...)."""
    tilted = [tilt(log_weights, score, t) for t in times(beta, count)]
    return torch.stack([gap(weights, score, success) for weights in tilted])


def won_pairs(score: Tensor, success: Tensor) -> tuple[Tensor, Tensor]:
    """Pairs (right, wrong) of one cloud in which the right one scores higher, and all: (...) x 2.

    A tie is half a win; their quotient is the in-cloud AUROC of the guide. Dead particles, whose
    score is -inf, are left out.
    """
    alive = torch.isfinite(score)
    pairs = (success & alive)[..., :, None] & (~success & alive)[..., None, :]
    right, wrong = score[..., :, None], score[..., None, :]
    won = (right > wrong).double() + 0.5 * (right == wrong).double()
    return torch.where(pairs, won, 0.0).sum((-2, -1)), pairs.sum((-2, -1)).double()
