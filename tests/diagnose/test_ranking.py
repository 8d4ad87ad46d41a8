"""Rankings: exact while small, ordered bins beyond; AUROC and bins against counting."""

import pytest
import torch

from tiltrm.diagnose.ranking import Ranking, _bin, _lower_edge, binned, table_auroc, wilson
from tiltrm.statistics import auroc

DRAW = torch.Generator().manual_seed(0)


def test_small_rankings_are_exact_in_any_chunks() -> None:
    value = torch.randint(0, 12, (300,), generator=DRAW) / 11
    positive = torch.rand(300, generator=DRAW) < 0.3 + 0.4 * value
    whole, parts = Ranking(), Ranking()
    whole.add(value, positive)
    for first in range(0, 300, 7):
        parts.add(value[first : first + 7], positive[first : first + 7])
    for left, right in zip(whole.table(), parts.table(), strict=True):
        assert torch.equal(left, right)
    assert table_auroc(whole.table()) == pytest.approx(auroc(value, positive))
    assert whole.table().total == 300


def test_large_rankings_keep_the_order_and_no_values() -> None:
    value = torch.randn(5000, generator=DRAW) * 10 ** torch.randint(-3, 3, (5000,), generator=DRAW)
    positive = torch.rand(5000, generator=DRAW) < torch.sigmoid(value)
    ranking = Ranking(keep=1000)
    for first in range(0, 5000, 500):
        ranking.add(value[first : first + 500], positive[first : first + 500])
    assert not ranking.held
    table = ranking.table()
    assert (table.value.diff() > 0).all()
    assert int(table.positive.sum()) == int(positive.sum())
    assert table_auroc(table) == pytest.approx(auroc(value, positive), abs=1e-3)


def test_bins_rise_with_their_values() -> None:
    inf = torch.tensor([-torch.inf, -2.0, -1e-30, -0.0, 0.0, 1e-30, 0.5, 1.0, 3e38, torch.inf])
    bins = _bin(inf)
    assert (bins.diff() >= 0).all()
    assert bins[3] == bins[4]
    near = torch.rand(1000, generator=DRAW) * 4 - 2
    edge = _lower_edge(_bin(near))
    assert ((near - edge).abs() <= near.abs() / 256 + 1e-38).all()


def test_binned_shares_by_counting() -> None:
    value = torch.cat((torch.rand(200, generator=DRAW), torch.tensor([0.0, 1.0])))
    positive = torch.rand(202, generator=DRAW) < 0.5
    ranking = Ranking()
    ranking.add(value, positive)
    found = binned(ranking.table(), 5)
    assert sum(b.cases for b in found) == 202
    for one in found:
        inside = [
            yes
            for v, yes in zip(value.tolist(), positive.tolist(), strict=True)
            if one.low <= v < one.high or (v == 1.0 == one.high)
        ]
        assert one.cases == len(inside)
        assert one.share == pytest.approx(sum(inside) / len(inside))
        assert one.interval[0] < one.share < one.interval[1]


def test_wilson_interval_solves_its_own_equation() -> None:
    for yes, count in ((0, 10), (3, 10), (99, 100), (5, 5)):
        for end in wilson(yes, count):
            error = abs(yes / count - end)
            at_edge = end in (0.0, 1.0)
            assert at_edge or error == pytest.approx(1.959964 * (end * (1 - end) / count) ** 0.5)
    assert wilson(0, 0) == (0.0, 1.0)
