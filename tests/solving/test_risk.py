"""The promise of a risk: how often it is broken, and what it refuses."""

import numpy
import pytest
import torch
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.solving.risk import ALL, SHARES, Rung, ladder, rung_for, trust
from tiltrm.statistics import largest_share

DRAWS = 1000


def wrong_above(limit: float, power: float) -> float:
    """True share of wrong answers above a trust, where trust is uniform in [0, 1].

    An answer with trust t is wrong with probability 0.2 (1 - t) ^ power.
    """
    limit = max(0.0, limit)
    return 0.2 * (1 - limit) ** power / (power + 1)


@pytest.mark.parametrize(("risk", "puzzles", "power"), [(0.02, 2000, 3.0), (0.01, 1000, 4.0)])
def test_the_promise_is_broken_in_at_most_one_draw_of_twenty(
    risk: float, puzzles: int, power: float
) -> None:
    """Thousands of calibration sets from a known model; each promise is compared with the truth.

    A refused risk breaks no promise, but most draws must be able to answer something.
    """
    draw = numpy.random.default_rng(0)
    broken = refused = 0
    for _ in range(DRAWS):
        trusted = torch.from_numpy(draw.random(puzzles))
        right = torch.from_numpy(draw.random(puzzles)) >= 0.2 * (1 - trusted) ** power
        try:
            rung = rung_for(ladder(trusted, right), risk)
        except SettingsError:
            refused += 1
            continue
        broken += wrong_above(rung.above, power) > risk
    sampling = 3 * (0.05 * 0.95 / DRAWS) ** 0.5
    assert broken / DRAWS <= 0.05 + sampling
    assert refused / DRAWS < 0.6


def test_new_puzzles_keep_the_promise_too() -> None:
    """Wrong answers among those given, counted on test sets: their mean is below the risk."""
    draw = numpy.random.default_rng(1)

    def puzzles(count: int) -> tuple[Tensor, Tensor]:
        trusted = torch.from_numpy(draw.random(count))
        return trusted, torch.from_numpy(draw.random(count)) >= 0.2 * (1 - trusted) ** 3

    shares = []
    for _ in range(300):
        rung = rung_for(ladder(*puzzles(2000)), 0.02)
        trusted, right = puzzles(2000)
        given = trusted > rung.above
        shares.append(float((given & ~right).sum() / given.sum()))
    assert sum(share > 0.02 for share in shares) / len(shares) < 0.1  # the test sets are finite
    assert 0.005 < numpy.mean(shares) < 0.02  # not by abstaining from everything


def test_answers_that_break_a_rule_are_never_given() -> None:
    decided, halt = torch.tensor([True, True, False]), torch.tensor([0.9, 0.99, 0.5])
    order = trust(decided, halt, torch.tensor([True, False, True]))
    assert order.tolist() == pytest.approx([1.9, -1.0, 0.5])
    rungs = ladder(order, torch.tensor([True, False, True]))
    assert rungs[-1] == Rung(ALL, 2, 0)


def test_the_ladder_counts_what_is_strictly_above_a_rank() -> None:
    trusted = torch.arange(100).double() / 100
    right = trusted >= 0.3
    rungs = ladder(trusted, right)
    assert len(rungs) == len(SHARES) + 1
    assert rungs[0] == Rung(0.74, 25, 0)
    assert rungs[-1] == Rung(ALL, 100, 30)
    assert [rung.answered for rung in rungs] == sorted(rung.answered for rung in rungs)


def test_a_risk_that_the_puzzles_cannot_support_is_refused_in_a_sentence() -> None:
    few = ladder(torch.rand(200).double(), torch.ones(200, dtype=torch.bool))
    with pytest.raises(SettingsError, match="needs at least 2,995 calibration puzzles") as refused:
        rung_for(few, 0.001)
    assert f"a risk of {0.015:.2g}" in str(refused.value)  # 200 right answers bound it by 0.0149
    assert largest_share(0, 200) < 0.015
    assert rung_for(few, 0.015).answered == 200
    bad = (Rung(1.5, 5000, 40), Rung(ALL, 6000, 41))
    with pytest.raises(SettingsError, match=r"of the 5,000 most trusted answers .* 40 are wrong"):
        rung_for(bad, 0.001)
    for wrong in (0.0, 1.0, -0.1, float("nan")):
        with pytest.raises(SettingsError, match="between 0 and 1"):
            rung_for(few, wrong)


def test_the_sequence_stops_at_its_first_failure() -> None:
    """A later set that passes by luck does not count."""
    rungs = (Rung(1.9, 400, 0), Rung(1.5, 500, 9), Rung(ALL, 5000, 10))
    assert rung_for(rungs, 0.01) == rungs[0]
