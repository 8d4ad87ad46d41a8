"""Is one method better than another? Both on the same puzzles, each puzzle its own control."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from tiltrm.errors import DataError
from tiltrm.evaluate.shards import Shard
from tiltrm.evaluate.summary import Array

NORMAL = 1.959963984540054  # 97.5 % of a standard normal lies below


class Paired(NamedTuple):
    """The first method less the second; shares of puzzles, not percent."""

    puzzles: int
    difference: float
    low: float  # 95 % interval
    high: float
    wins: int  # puzzles on which the first is right more often
    losses: int
    p_value: float  # exact two-sided sign test; McNemar's where each has one seed

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return self._asdict()


def paired(first: Sequence[Shard], second: Sequence[Shard], among: Array | None = None) -> Paired:
    """Exactness of two methods on the same puzzles, seeds averaged; `among` are puzzles to keep.

    The interval is Wald's for the mean difference after adding two puzzles, on which each method
    wins and loses by half (Agresti and Min, 2005), so that it has a width even where none differs.
    Proved by tests/evaluate/test_paired.py.
    """
    one, other = by_puzzle(first), by_puzzle(second)
    if one.keys() != other.keys():
        raise DataError(
            f"expected both methods on the same puzzles, got {len(one)} and {len(other)} puzzles "
            f"with {len(one.keys() & other.keys())} in common; compute what is missing first"
        )
    kept = sorted(one if among is None else one.keys() & set(among.tolist()))
    if not kept:
        raise DataError("expected at least one puzzle to compare on, got none")
    gaps = np.array([one[puzzle] - other[puzzle] for puzzle in kept])
    wins, losses = int((gaps > 0).sum()), int((gaps < 0).sum())
    low, high = interval(gaps)
    return Paired(len(kept), float(gaps.mean()), low, high, wins, losses, sign_test(wins, losses))


def by_puzzle(shards: Sequence[Shard]) -> dict[int, float]:
    """How often each puzzle was right, over the seeds."""
    puzzles = np.concatenate([shard["puzzle"] for shard in shards])
    exact = np.concatenate([shard["exact"] for shard in shards])
    names, where = np.unique(puzzles, return_inverse=True)
    right = np.bincount(where, exact) / np.bincount(where)
    return dict(zip(names.tolist(), right.tolist(), strict=True))


def interval(gaps: Array) -> tuple[float, float]:
    """95 % for the mean of differences in [-1, 1]."""
    count = len(gaps) + 2
    mean = float(gaps.sum()) / count
    variance = (float(np.square(gaps).sum()) + 1.0) / count - mean**2
    reach = NORMAL * math.sqrt(variance / count)
    return max(-1.0, mean - reach), min(1.0, mean + reach)


def sign_test(wins: int, losses: int) -> float:
    """Twice the probability of at most min(wins, losses) heads in wins + losses fair tosses."""
    tosses, term, total = wins + losses, 1, 0
    for heads in range(min(wins, losses) + 1):
        total += term
        term = term * (tosses - heads) // (heads + 1)
    return min(1.0, float(Fraction(2 * total, 2**tosses)))
