"""Quality of scores and probabilities: AUROC and calibration error."""

import math

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
