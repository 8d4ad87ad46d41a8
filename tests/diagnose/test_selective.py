"""Selective answering: curves by enumerated tie-breaks, and the conformal promise by simulation."""

import math
from itertools import permutations

import pytest
import torch

from tiltrm.diagnose.ranking import Ranking, ValueCounts
from tiltrm.diagnose.selective import abstain_top, accuracy_at, calibrate, curve, keep_up_to
from tiltrm.errors import SettingsError


def table(value: torch.Tensor, right: torch.Tensor) -> ValueCounts:
    ranking = Ranking()
    ranking.add(value, right)
    return ranking.table()


def test_accuracy_at_a_coverage_is_the_mean_over_all_tie_breaks() -> None:
    value, right = [0.1, 0.2, 0.2, 0.2, 0.7, 0.7], [True, True, False, True, False, True]
    ranked = table(torch.tensor(value), torch.tensor(right))
    orders = [o for o in permutations(range(6)) if [value[i] for i in o] == sorted(value)]
    for kept in range(1, 7):
        expected = sum(sum(right[i] for i in o[:kept]) / kept for o in orders) / len(orders)
        assert accuracy_at(ranked, kept / 6) == pytest.approx(expected)
    assert dict(curve(ranked))[1.0] == pytest.approx(4 / 6)


def test_abstaining_on_the_top_drops_the_highest() -> None:
    value = torch.arange(20) / 20
    right = torch.arange(20) < 18  # the two most uncertain are wrong
    cut = abstain_top(table(value, right), 0.1)
    assert (cut.coverage, cut.accuracy) == (0.9, 1.0)
    assert cut.threshold == pytest.approx(17 / 20)
    assert keep_up_to(table(value, right), cut.threshold)[1:] == (0.9, 1.0)
    assert abstain_top(table(value, right), 0.0).accuracy == pytest.approx(0.9)
    odd = torch.arange(15.0)
    assert abstain_top(table(odd, odd < 14), 0.1).threshold == 13  # of 1.5 puzzles one is left out
    with pytest.raises(SettingsError, match="share"):
        abstain_top(table(value, right), 1.0)


def test_calibration_by_trying_every_threshold() -> None:
    draw = torch.Generator().manual_seed(0)
    value = torch.randint(0, 30, (100,), generator=draw).float()
    right = torch.rand(100, generator=draw) > value / 40
    got = calibrate(table(value, right), 0.1)
    allowed = [
        v for v in value.unique().tolist() if (int((~right & (value <= v)).sum()) + 1) / 101 <= 0.1
    ]
    assert got.threshold == max(allowed)
    assert got.coverage == pytest.approx(float((value <= got.threshold).double().mean()))
    assert calibrate(table(value, right), 0.009).threshold == -math.inf  # 1/101 is more than that
    assert "at most 0.1" in got.statement
    for count, threshold in ((18, -math.inf), (19, 18.0)):  # (0 + 1) / 20 is 0.05, and enough
        faultless = torch.arange(float(count))
        assert calibrate(table(faultless, faultless >= 0), 0.05).threshold == threshold


@pytest.mark.parametrize("risk", [0.05, 0.2])
def test_the_promise_holds_for_a_new_puzzle(risk: float) -> None:
    """Mean loss of a fresh puzzle over many calibration sets of 40: at most `risk`, and near it."""
    draw = torch.Generator().manual_seed(1)
    losses = []
    for _ in range(1500):
        value = torch.rand(41, generator=draw)
        right = torch.rand(41, generator=draw) > 0.8 * value
        got = calibrate(table(value[:40], right[:40]), risk)
        losses.append(float(value[40] <= got.threshold and not right[40]))
    mean = sum(losses) / len(losses)
    error = math.sqrt(risk * (1 - risk) / len(losses))
    assert mean <= risk + 3 * error
    assert mean >= risk - 1 / 41 - 4 * error  # not so careful as to be of no use
