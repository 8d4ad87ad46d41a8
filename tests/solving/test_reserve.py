"""What follows a tuned plan: its reserve or stages that guess; thresholds in many orders."""

from typing import Any

import numpy as np
import pytest
from tests.diagnose.wells import Wells

from tiltrm.explore.plan import Adaptive, parse_stages
from tiltrm.solving import plan_search
from tiltrm.solving.methods import Stopping
from tiltrm.solving.plan_search import PRICE, PlanSearch, within
from tiltrm.solving.plans import TunedPlan
from tiltrm.solving.playing import PlanRecording, Played
from tiltrm.solving.reserve import (
    LARGEST,
    PARTICLES,
    End,
    Kind,
    beginning,
    best_end,
    best_kind,
    ends,
    with_reserve,
)
from tiltrm.solving.trajectories import TrajectoryRecord

MODEL: Any = Wells()
STOPPING = Stopping(5.0, settled=False)
START = Adaptive(parse_stages("1x20"), noise=0.3, symmetric_views=True)


def trajectories(
    rates: list[float], *, at: int = 3, wrong: float = 0.0, count: int = 512, steps: int = 32
) -> TrajectoryRecord:
    """Every puzzle's share of right stops, spread evenly, from step `at` on; others may be wrong.

    A wrong stop has a halt logit of 6, a right one of 9.
    """
    number = np.arange(count)
    right = np.zeros((len(rates), count, steps), bool)
    false = np.zeros_like(right)
    for puzzle, rate in enumerate(rates):
        hit = np.floor((number + 1) * rate + 1e-9) > np.floor(number * rate + 1e-9)
        right[puzzle, hit, at:] = True
        miss = np.floor((number + 1) * wrong + 1e-9) > np.floor(number * wrong + 1e-9)
        false[puzzle, miss & ~hit, at:] = True
    logits = np.where(right, 9.0, np.where(false, 6.0, -9.0)).astype(np.float32)
    return TrajectoryRecord(logits, right + 2 * false.astype(np.int64), right, right)


def recording(noisy: dict[float, TrajectoryRecord]) -> PlanRecording:
    count, trajectory_count, steps = next(iter(noisy.values())).logits.shape
    nothing = np.zeros((count, 1, steps), bool)
    quiet = TrajectoryRecord(
        np.full(nothing.shape, -9.0, np.float32), nothing.astype(np.int64), nothing, nothing
    )
    counts = {noise: np.full(count, trajectory_count) for noise in noisy}
    return PlanRecording(quiet, noisy, counts, np.arange(count), np.ones(count), 3, True)


RARE = [1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]


def kind(noisy: dict[float, TrajectoryRecord]) -> Kind:
    found = recording(noisy)
    return best_kind(found, STOPPING, np.arange(len(found.quiet.logits)))


def test_the_noise_that_solves_most_hard_puzzles_is_taken() -> None:
    assert kind({0.1: trajectories([0.0] * 5), 0.5: trajectories(RARE)}).noises == (0.5,)
    assert kind({0.1: trajectories(RARE), 0.5: trajectories([0.0] * 5)}).noises == (0.1,)


def test_two_noises_that_solve_different_puzzles_alternate() -> None:
    first, second = [1 / 64, 1 / 64, 0.0, 0.0], [0.0, 0.0, 1 / 64, 1 / 64]
    noisy = {0.1: trajectories(first), 0.5: trajectories(second)}
    assert kind(noisy).noises == (0.1, 0.5)
    stages = with_reserve(START, recording(noisy), STOPPING, PRICE).stages[1:]
    assert [stage.noise for stage in stages[:12]] == [0.1] * 4 + [0.5] * 4 + [0.1] * 4


def test_a_noise_with_wrong_stops_is_avoided() -> None:
    noisy = {0.5: trajectories(RARE), 1.0: trajectories(RARE, wrong=0.2)}
    assert kind(noisy).noises == (0.5,)


@pytest.mark.parametrize(("at", "steps"), [(3, 12), (14, 16), (20, 24), (30, 32)])
def test_trajectories_are_as_long_as_they_need(at: int, steps: int) -> None:
    assert kind({0.3: trajectories(RARE, at=at)}).outer_steps == steps


@pytest.mark.parametrize(
    ("rates", "trajectory_count"),
    [
        ([0.0] * 20, 0),  # more of the same decides nothing
        ([1.0] * 20, 0),  # none is hard
        ([0.0] * 19 + [1 / 128], 64),  # a little: s = 0.012, so 58 at a price of 0.0002 each
        (RARE, LARGEST // 32),
    ],
)
def test_a_reserve_is_as_long_as_more_trajectories_pay(
    rates: list[float], trajectory_count: int
) -> None:
    found = recording({0.3: trajectories(rates, at=30)})
    stages = with_reserve(START, found, STOPPING, PRICE).stages[1:]
    assert all((stage.particles, stage.outer_steps) == (PARTICLES, 32) for stage in stages)
    assert sum(stage.particles for stage in stages) == trajectory_count
    enough = Adaptive(parse_stages(f"1x20 32x16*{LARGEST // 32 // 32}"), noise=0.3)
    assert with_reserve(enough, found, STOPPING, PRICE) == enough


def test_a_threshold_is_compared_in_many_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong stops at a logit of 6 come late in one order, and early in most others."""
    noisy = trajectories([1 / 16] * 10, count=64)
    noisy.logits[..., :8][noisy.right[..., :8]] = 7.0  # a high threshold costs steps
    noisy.logits[:, 32:48, 8:] = np.maximum(noisy.logits[:, 32:48, 8:], 6.0)  # of wrong answers
    search = PlanSearch(recording({0.3: noisy}), MODEL, rules=False)
    search.thresholds = [5.0, 8.0]
    plan = Adaptive(parse_stages("1x4 4x12*16"), noise=0.3, symmetric_views=True)
    low, high = (
        search.player.play(plan, Stopping(above, settled=False))[-1] for above in search.thresholds
    )
    assert low.right == high.right == pytest.approx(1.0)
    assert low.evaluations < high.evaluations
    assert search.with_checked_threshold(TunedPlan(plan, 5.0)).halt_above == 8.0
    monkeypatch.setattr(plan_search, "ORDERS", 1)
    assert search.with_checked_threshold(TunedPlan(plan, 5.0)).halt_above == 5.0


@pytest.mark.parametrize(("halts", "longer"), [(False, False), (True, True)])
def test_a_plan_that_votes_has_no_further_stages(halts: bool, longer: bool) -> None:
    """Further stages would replace a vote that is right, at their own noise and price."""
    noisy = trajectories([0.9] * 30 + [1 / 64] * 10, count=64)
    if not halts:
        noisy = noisy._replace(logits=np.full_like(noisy.logits, -9.0))
    search = PlanSearch(recording({0.3: noisy}), MODEL, rules=False)
    usual = Adaptive(parse_stages("1x20 2x16*4 64x24@0.6*16"), noise=0.3, symmetric_views=True)
    found, outcome = search.chosen(usual)
    assert outcome.right >= 0.7
    assert (found.plan.particle_steps >= usual.particle_steps) == longer
    assert (outcome.voted > 0.5) == (not halts)
    assert search.needs_no_end() == (not halts)


@pytest.mark.parametrize(
    ("steps", "stages"),
    [(1e9, "1x20 2x16*2 4x32"), (211, "1x20 2x16*2"), (83, "1x20 2x16"), (5, "1x20")],
)
def test_a_plan_ends_within_the_steps_that_it_may_take(steps: float, stages: str) -> None:
    """20, then 32, 32 and 128 outer steps of all particles; the first stage always stays."""
    plan = Adaptive(parse_stages("1x20 2x16*2 4x32"), noise=0.3)
    assert within(plan, steps).stages == parse_stages(stages)


def test_the_reserve_ends_where_a_puzzle_may_cost_no_more() -> None:
    found = recording({0.3: trajectories(RARE), 0.6: trajectories([0.0] * 5)})
    free, bounded = (
        PlanSearch(found, MODEL, rules=False, per_puzzle=most).chosen(START)[0].plan
        for most in (float("inf"), 3 * 2000.0)
    )
    assert bounded.particle_steps <= 2000 < free.particle_steps


GUESSING = Adaptive(
    parse_stages("1x20 2x16@0.6*4 4x16*4 8x24?1*4 16x24?1*4"), noise=0.3, symmetric_views=True
)
END = End(parse_stages("8x24?1*2"), right=0.5, evaluations=60.0, puzzles=10)


def test_an_end_begins_with_the_first_stage_that_guesses_and_may_repeat_its_last_group() -> None:
    """It has 768 + 1536 outer steps of all particles, then 1536 more and 3072 more."""
    wanted = [f"8x24@0.3?1*4 16x24@0.3?1*{times}" for times in (4, 8, 16)]
    assert ends(GUESSING, float("inf")) == [parse_stages(text) for text in wanted]
    assert ends(GUESSING, 3840) == [parse_stages(text) for text in wanted[:2]]
    assert ends(GUESSING, 800)[-1] == parse_stages("8x24@0.3?1*4")
    assert ends(GUESSING, 100) == ends(START, float("inf")) == []
    assert beginning(GUESSING) == parse_stages("1x20 2x16*4")
    assert beginning(Adaptive(parse_stages("1x20 8x24?1"), symmetric_views=True)) == (
        parse_stages("1x20"))  # fmt: skip


@pytest.mark.parametrize(
    ("price", "times", "share", "evaluations"),
    [
        (0.010, 4, 4 / 7, 111.0),
        (0.011, 2, 3 / 7, 69.0),  # twice as long is 42 evaluations more, 14 steps, for 1/7
        (0.017, 2, 3 / 7, 69.0),
        (0.018, 1, 2 / 7, 44.4),  # 24.6 more, 8.2 steps
    ],
)
def test_an_end_is_as_long_as_it_pays(
    price: float, times: int, share: float, evaluations: float
) -> None:
    """20 outer steps of 3 evaluations, 40 or 80: one of five puzzles more is right each time."""
    choices = ends(Adaptive(parse_stages("1x4 2x10@0.5?1"), symmetric_views=True), float("inf"))
    right = np.array([True, True, True, False, False])
    spent = np.array([15, 63, 210, 240, 27])
    found = best_end(choices, right, spent, 3, price)
    assert found.stages == parse_stages(f"2x10@0.5?1*{times}")
    assert found[1:] == pytest.approx((share, evaluations, 5))


def test_an_end_that_no_puzzle_came_to_is_taken_to_solve_half_at_half_its_length() -> None:
    nobody = np.zeros(0)
    found = best_end(ends(GUESSING, 1e9), nobody.astype(bool), nobody, 3, PRICE)
    assert found == End(parse_stages("8x24@0.3?1*4 16x24@0.3?1*4"), 0.5, 3 * 2304 / 2, 0)


def test_a_plan_is_worth_what_its_end_makes_of_the_undecided() -> None:
    """What it would vote is not counted: 0.7 - 0.1 + 0.4 / 2 right, 0.4 x 60 evaluations more."""
    played = Played(right=0.7, undecided=0.4, evaluations=100.0, voted=0.1)
    assert END.after(played) == pytest.approx((0.8, 0.2, 124.0, 0.0))
    ended = PlanSearch(recording({0.3: trajectories(RARE)}), MODEL, rules=False, end=END)
    assert ended._value(played) == pytest.approx(0.8 - PRICE * 124 / 3)
    ended.end = None
    assert ended._value(played) == pytest.approx(0.7 - PRICE * 100 / 3)


def test_a_good_end_makes_the_plan_before_it_short() -> None:
    """The hard puzzles come to it, instead of to restarts that rarely decide them."""
    found = recording({0.3: trajectories([0.9] * 30 + [1 / 64] * 10)})
    good, bad = (
        PlanSearch(found, MODEL, rules=False, end=END._replace(right=right)).chosen(GUESSING)
        for right in (1.0, 0.01)
    )
    assert good[0].plan.particle_steps < bad[0].plan.particle_steps
    for tuned, outcome in (good, bad):
        assert tuned.plan.stages[-2:] == END.stages
        assert not any(stage.guesses for stage in tuned.plan.stages[:-2])
        assert outcome.voted == 0.0
        assert outcome.undecided == pytest.approx(1.0 - outcome.right)
    assert good[1].right == pytest.approx(1.0)


def test_the_plan_before_an_end_leaves_it_the_steps_that_a_puzzle_may_cost() -> None:
    found = recording({0.3: trajectories(RARE)})
    bounded, _ = PlanSearch(
        found, MODEL, rules=False, per_puzzle=3 * 1000.0, end=END._replace(right=0.01)
    ).chosen(GUESSING)
    assert bounded.plan.stages[-2:] == END.stages
    assert 384 < bounded.plan.particle_steps <= 1000
