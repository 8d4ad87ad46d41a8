"""Quality of scores and probabilities: AUROC, in-cloud pairs, calibration error, bounds."""

import math

import numpy as np
import torch
from torch import Tensor


def auroc(score: Tensor, positive: Tensor) -> float:
    """Probability that a random positive outscores a random negative, ties counted half.

    NaN if all are positive, or none is. Proved by tests/test_statistics.py.
    """
    positives = int(positive.sum())
    negatives = positive.numel() - positives
    if positives == 0 or negatives == 0:
        return math.nan
    _, inverse, counts = score.double().unique(return_inverse=True, return_counts=True)
    upper = counts.cumsum(0).double()
    rank = upper - (counts.double() - 1) / 2  # mean rank of each tied group, from 1
    total = float(rank[inverse][positive].sum())
    return (total - positives * (positives + 1) / 2) / (positives * negatives)


def won_pairs(score: Tensor, success: Tensor) -> tuple[Tensor, Tensor]:
    """Pairs (right, wrong) of one cloud in which the right one scores higher, and all: (...) x 2.

    A tie is half a win; their quotient is the in-cloud AUROC of the guide. Dead particles, whose
    score is -inf, are in no pair. Proved by tests/diagnose/test_alignment.py.
    """
    alive = torch.isfinite(score)
    pairs = (success & alive)[..., :, None] & (~success & alive)[..., None, :]
    right, wrong = score[..., :, None], score[..., None, :]
    won = (right > wrong).double() + 0.5 * (right == wrong).double()
    return torch.where(pairs, won, 0.0).sum((-2, -1)), pairs.sum((-2, -1)).double()


def calibration_error(probability: Tensor, positive: Tensor, bins: int = 10) -> float:
    """Mean over equal-width bins of |mean probability - share of positives|, weighted by size.

    A bin includes its lower edge; the last bin also includes its upper edge.
    Proved by tests/test_statistics.py.
    """
    probability = probability.double()
    which = (probability * bins).long().clamp(0, bins - 1)
    gap = probability.new_zeros(bins)
    gap.index_add_(0, which, probability - positive.double())
    return float(gap.abs().sum()) / max(1, positive.numel())


def at_most(cases: int, of: int, share: float) -> float:
    """Probability of at most `cases` successes in `of` independent trials with this share."""
    if share >= 1.0:
        return float(cases >= of)
    count = np.arange(min(cases, of) + 1)
    rise = np.log(of - count[:-1]) - np.log(count[1:])  # of the logarithms of binomial coefficients
    ways = np.concatenate(([0.0], rise.cumsum()))
    terms = ways + count * math.log(share) + (of - count) * math.log1p(-share)
    return float(np.exp(terms).sum())


def largest_share(cases: int, of: int, confidence: float = 0.95) -> float:
    """The one-sided upper Clopper-Pearson bound of a share, from `cases` found among `of`.

    If the true share were higher, so few cases would have had a probability below
    1 - confidence. 1 where nothing was counted. Proved by tests/test_statistics.py.
    """
    if cases >= of:
        return 1.0
    low, high = cases / of, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        possible = at_most(cases, of, middle) > 1.0 - confidence
        low, high = (middle, high) if possible else (low, middle)
    return high


def trials_needed(share: float, confidence: float = 0.95) -> int:
    """The fewest trials without a single case that bound a share by `share`."""
    return math.ceil(math.log(1.0 - confidence) / math.log1p(-share))
