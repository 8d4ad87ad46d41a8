"""Selective prediction: accuracy against coverage, thresholds, and a conformal guarantee.

The tables rank a risk score, such as an entropy: lower is safer, and a positive is a right answer.
Proved by tests/diagnose/test_selective.py.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch

from tiltrm.diagnose.ranking import ValueCounts
from tiltrm.errors import SettingsError

COVERAGES = tuple(round(0.05 * step, 2) for step in range(1, 21))


def accuracy_at(table: ValueCounts, coverage: float) -> float:
    """Share of right answers among the share `coverage` of all with the lowest values.

    If a group of equal values is kept in part, its expected share counts. NaN for coverage 0.
    """
    kept = coverage * table.total
    if kept <= 0:
        return math.nan
    before = table.cases.cumsum(0) - table.cases
    part = ((kept - before) / table.cases).clamp(0.0, 1.0)  # of every group
    return float((part * table.positive).sum()) / kept


def curve(table: ValueCounts, coverages: Sequence[float] = COVERAGES) -> list[tuple[float, float]]:
    """(coverage, accuracy), the selective-prediction curve."""
    return [(coverage, accuracy_at(table, coverage)) for coverage in coverages]


class Cut(NamedTuple):
    """Abstaining above `threshold`: the share kept, and the accuracy on it."""

    threshold: float
    coverage: float
    accuracy: float


def abstain_top(table: ValueCounts, share: float) -> Cut:
    """Abstain on this share of all with the highest values (the paper's upper decile is 0.1)."""
    if not 0.0 <= share < 1.0:
        raise SettingsError(f"share to abstain on must lie in [0, 1), got {share}")
    if table.total == 0:
        return Cut(math.nan, 0.0, math.nan)
    last = int(torch.searchsorted(table.cases.cumsum(0), math.ceil((1 - share) * table.total)))
    return Cut(float(table.value[last]), 1.0 - share, accuracy_at(table, 1.0 - share))


def keep_up_to(table: ValueCounts, threshold: float) -> Cut:
    """Keep every value <= threshold."""
    kept = table.value <= threshold
    count, right = int(table.cases[kept].sum()), int(table.positive[kept].sum())
    accuracy = right / count if count else math.nan
    return Cut(threshold, count / max(1, table.total), accuracy)


class Guarantee(NamedTuple):
    """A threshold from calibration puzzles, and its guarantee for a new exchangeable puzzle."""

    threshold: float  # -inf: abstain always
    risk: float
    calibrated_on: int
    coverage: float  # on the calibration puzzles

    @property
    def statement(self) -> str:
        """The guarantee in words."""
        if self.threshold == -math.inf:
            return (
                f"from {self.calibrated_on} calibration puzzles no threshold on H promises a risk "
                f"of {self.risk:g}: more of them are needed, or fewer mistakes among them"
            )
        return (
            f"answering only at or below {self.threshold:.4g}, the probability that a new puzzle "
            f"is answered and wrong is at most {self.risk:g} (split conformal risk control, "
            f"{self.calibrated_on} calibration puzzles, exchangeable with the new one)"
        )


def calibrate(table: ValueCounts, risk: float) -> Guarantee:
    """The largest threshold with (wrong answers kept + 1) / (n + 1) <= risk.

    The loss 1(kept and wrong) is monotone in the threshold, so split conformal risk control gives
    E[loss] <= risk for a new exchangeable puzzle, averaged over draws of the calibration set.
    Proved by simulation in tests/diagnose/test_selective.py.
    """
    if not 0.0 < risk < 1.0:
        raise SettingsError(f"risk must lie strictly between 0 and 1, got {risk}")
    wrong = (table.cases - table.positive).cumsum(0)
    safe = int(((wrong + 1) <= risk * (table.total + 1)).sum())  # a prefix, since wrong rises
    threshold = float(table.value[safe - 1]) if safe else -math.inf
    coverage = float(table.cases[:safe].sum()) / max(1, table.total)
    return Guarantee(threshold, risk, table.total, coverage)
