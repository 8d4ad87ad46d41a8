"""Ranked values with a binary outcome each, collected chunk by chunk in bounded memory.

Up to KEEP values are stored, and everything computed from them is exact. Beyond that they are
counted in bins that follow the order of floating-point numbers: two values share a bin, and are
tied, only if they differ by less than 1 part in 512 (or lie within 1e-38 of zero).
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

KEEP = 1 << 20
BITS = 18  # leading bits of a float32 that are its bin: sign, exponent, 9 of the fraction


class ValueCounts(NamedTuple):
    """Distinct values in ascending order, how often each occurs, and how often as a positive."""

    value: Tensor  # (value,) float64
    cases: Tensor  # (value,) int64
    positive: Tensor  # (value,) int64

    @property
    def total(self) -> int:
        """All occurrences."""
        return int(self.cases.sum())


class Ranking:
    """Collects (value, positive or not) pairs. Proved by tests/diagnose/test_ranking.py."""

    def __init__(self, keep: int = KEEP) -> None:
        self.keep = keep
        self.held: list[tuple[Tensor, Tensor]] = []
        self.size = 0
        self.bins: Tensor | None = None  # (negative or positive, bin)

    def add(self, value: Tensor, positive: Tensor) -> None:
        """Two tensors of one shape."""
        self.held.append((value.detach().float().flatten().cpu(), positive.flatten().cpu()))
        self.size += value.numel()
        if self.bins is not None or self.size > self.keep:
            self._count()

    def _count(self) -> None:
        if self.bins is None:
            self.bins = torch.zeros(2, 1 << BITS, dtype=torch.int64)
        for value, positive in self.held:
            where = positive.long() * (1 << BITS) + _bin(value)
            self.bins.view(-1).add_(torch.bincount(where, minlength=2 << BITS))
        self.held = []

    def table(self) -> ValueCounts:
        """The counts of all values added."""
        if self.bins is None:
            if not self.held:
                return ValueCounts(torch.empty(0).double(), *torch.zeros(2, 0, dtype=torch.int64))
            value, positive = (torch.cat(part) for part in zip(*self.held, strict=True))
            distinct, inverse, count = value.double().unique(
                return_inverse=True, return_counts=True
            )
            yes = torch.zeros_like(count).index_add_(0, inverse, positive.long())
            return ValueCounts(distinct, count, yes)
        count = self.bins.sum(0)
        used = count.nonzero().flatten()
        return ValueCounts(_lower_edge(used).double(), count[used], self.bins[1, used])


def _bin(value: Tensor) -> Tensor:
    """The bin of every float32; larger values have equal or larger bins, -0 that of 0."""
    bits = (value + 0.0).view(torch.int32).long()
    ordered = torch.where(bits < 0, -(bits & 0x7FFFFFFF) - 1, bits) + (1 << 31)
    return ordered >> (32 - BITS)


def _lower_edge(bins: Tensor) -> Tensor:
    ordered = (bins << (32 - BITS)) - (1 << 31)
    bits = torch.where(ordered < 0, (-(ordered + 1)) | (1 << 31), ordered)
    return torch.where(bits >= 1 << 31, bits - (1 << 32), bits).int().view(torch.float32)


def table_auroc(table: ValueCounts) -> float:
    """Probability that a positive has a higher value than a negative, ties counted half.

    NaN unless there are both.
    """
    positive, negative = table.positive.double(), (table.cases - table.positive).double()
    pairs = float(positive.sum() * negative.sum())
    below = negative.cumsum(0) - negative
    won = float((positive * (below + negative / 2)).sum())
    return won / pairs if pairs else math.nan


class Bin(NamedTuple):
    """One interval of values: the count, the share of positives, and its 95 % interval."""

    low: float
    high: float
    cases: int
    share: float
    interval: tuple[float, float]


def binned(table: ValueCounts, bins: int = 10) -> list[Bin]:
    """The share of positives in equal intervals of [0, 1], without empty ones (Fig. 4, right)."""
    where = (table.value * bins).long().clamp(0, bins - 1)
    found = []
    for index in range(bins):
        inside = where == index
        count, yes = int(table.cases[inside].sum()), int(table.positive[inside].sum())
        if count:
            low, high = index / bins, (index + 1) / bins
            found.append(Bin(low, high, count, yes / count, wilson(yes, count)))
    return found


def wilson(yes: int, count: int, z: float = 1.959964) -> tuple[float, float]:
    """The Wilson score interval of a share, 95 % by default; (0, 1) if the count is 0."""
    if count == 0:
        return 0.0, 1.0
    share, weight = yes / count, z * z / count
    centre = (share + weight / 2) / (1 + weight)
    half = z * math.sqrt(share * (1 - share) / count + weight / (4 * count)) / (1 + weight)
    return max(0.0, centre - half), min(1.0, centre + half)
