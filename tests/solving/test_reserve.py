"""The reserve of a tuned plan: its noises, length and number, and thresholds in many orders."""

from typing import Any

import numpy as np
import pytest
from tests.diagnose.wells import Wells

from tiltrm.explore.plan import Adaptive, parse_stages
from tiltrm.solving import plan_search
from tiltrm.solving.methods import Stopping
from tiltrm.solving.plan_search import PRICE, PlanSearch, within
from tiltrm.solving.plans import TunedPlan
from tiltrm.solving.playing import PlanRecording
from tiltrm.solving.reserve import LARGEST, PARTICLES, Kind, best_kind, with_reserve
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
