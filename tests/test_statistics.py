"""AUROC and calibration against counting every pair and every bin."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tiltrm.statistics import auroc, calibration_error, largest_share, trials_needed

SCORES = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=30)
CHANCES = st.lists(
    st.tuples(st.integers(0, 40).map(lambda k: k / 40), st.booleans()), min_size=1, max_size=30
)


@settings(deadline=None)
@given(SCORES)
def test_auroc_counts_pairs(rows: list[tuple[int, bool]]) -> None:
    positive = [score for score, right in rows if right]
    negative = [score for score, right in rows if not right]
    pairs = [(p > n) + 0.5 * (p == n) for p in positive for n in negative]
    score, right = (torch.tensor(column) for column in zip(*rows, strict=True))
    got = auroc(score.float(), right)
    assert got == pytest.approx(sum(pairs) / len(pairs)) if pairs else math.isnan(got)


def test_auroc_of_infinite_scores() -> None:
    score = torch.tensor([-math.inf, -math.inf, 0.0, math.inf])
    assert auroc(score, torch.tensor([False, True, True, True])) == pytest.approx(2.5 / 3)


@settings(deadline=None)
@given(CHANCES, st.integers(1, 12))
def test_calibration_by_bins(rows: list[tuple[float, bool]], bins: int) -> None:
    error = 0.0
    for index in range(bins):
        low, high = index / bins, (index + 1) / bins
        inside = [
            (p, right)
            for p, right in rows
            if math.floor(p * bins) == index or (p == 1.0 and index == bins - 1)
        ]
        assert all(low - 1e-9 <= p <= high + 1e-9 for p, _ in inside)
        if inside:
            mean = sum(p for p, _ in inside) / len(inside)
            share = sum(right for _, right in inside) / len(inside)
            error += len(inside) / len(rows) * abs(mean - share)
    chance = torch.tensor([p for p, _ in rows], dtype=torch.float64)
    right = torch.tensor([right for _, right in rows])
    assert calibration_error(chance, right, bins) == pytest.approx(error, abs=1e-12)


def test_calibration_of_a_sure_and_a_wrong_judge() -> None:
    right = torch.tensor([True, False, True, False])
    assert calibration_error(right.float(), right) == 0
    assert calibration_error(1 - right.float(), right) == 1


def test_the_bound_on_a_share_is_that_of_clopper_and_pearson() -> None:
    """Against the closed form without cases, tables, and its own definition."""
    assert largest_share(0, 500) == pytest.approx(1 - 0.05 ** (1 / 500))
    assert largest_share(2, 20) == pytest.approx(0.2826, abs=1e-4)  # scipy.stats.beta.ppf
    assert largest_share(0, 0) == largest_share(7, 7) == 1.0
    bound = largest_share(3, 200)
    few = sum(math.comb(200, k) * bound**k * (1 - bound) ** (200 - k) for k in range(4))
    assert few == pytest.approx(0.05)


def test_trials_needed_are_just_enough() -> None:
    for risk in (0.01, 0.001, 0.0005):
        needed = trials_needed(risk)
        assert largest_share(0, needed) <= risk < largest_share(0, needed - 1)
    assert [trials_needed(risk) for risk in (0.01, 0.001, 0.0005)] == [299, 2995, 5990]
