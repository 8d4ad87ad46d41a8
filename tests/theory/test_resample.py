"""Resamplers: exact offspring, no bias, and triggers that leave the others alone."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.explore.keys import derive
from tiltrm.explore.resample import (
    Resampler,
    always,
    multinomial,
    never,
    residual,
    stratified,
    systematic,
    when_ess_below,
)

ALL = [systematic, stratified, multinomial, residual]
WEIGHTS = torch.tensor([0.02, 0.31, 0.0, 0.125, 0.25, 0.2, 0.095, 0.0])


def offspring(ancestors: Tensor) -> Tensor:
    """How many slots continue each particle: (puzzle, particle)."""
    counts = torch.zeros_like(ancestors)
    return counts.scatter_add_(1, ancestors, torch.ones_like(ancestors))


def keys(count: int, seed: int = 0) -> Tensor:
    return derive(torch.arange(count), seed)


@settings(deadline=None, max_examples=80)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=40).filter(any), st.integers(0, 2**60))
def test_systematic_gives_floor_or_ceil(parts: list[int], seed: int) -> None:
    """Small whole parts make many S w exact integers, where rounding would show."""
    weights = torch.tensor(parts, dtype=torch.float64)
    expected = len(parts) * weights / weights.sum()
    log_weights = (weights / weights.sum()).log().float().expand(50, -1)
    counts = offspring(systematic(log_weights, keys(50, seed)))
    assert (counts >= torch.floor(expected - 1e-5)).all()
    assert (counts <= torch.ceil(expected + 1e-5)).all()
    assert (counts.sum(-1) == len(parts)).all()


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=40).filter(any), st.integers(0, 2**60))
def test_residual_gives_at_least_floor(parts: list[int], seed: int) -> None:
    weights = torch.tensor(parts, dtype=torch.float64)
    expected = len(parts) * weights / weights.sum()
    log_weights = (weights / weights.sum()).log().float().expand(50, -1)
    assert (offspring(residual(log_weights, keys(50, seed))) >= torch.floor(expected - 1e-5)).all()


@pytest.mark.parametrize("resampler", ALL)
def test_mean_offspring_is_particles_times_weight(resampler: Resampler) -> None:
    draws = 20_000
    counts = offspring(resampler(WEIGHTS.log().expand(draws, -1), keys(draws))).double()
    error = counts.std(0) / draws**0.5
    expected = 8 * WEIGHTS.double() / WEIGHTS.sum()
    assert ((counts.mean(0) - expected).abs() <= 4 * error + 1e-6).all()
    assert (counts[:, WEIGHTS == 0] == 0).all()


def test_variances_are_those_of_the_schemes() -> None:
    """Multinomial has S w (1 - w); the others have less."""
    draws = 20_000
    variance = {
        resampler.__name__: offspring(resampler(WEIGHTS.log().expand(draws, -1), keys(draws)))
        .double()
        .var(0)
        for resampler in ALL
    }
    share = (WEIGHTS / WEIGHTS.sum()).double()
    expected = 8 * share * (1 - share)
    assert torch.allclose(variance["multinomial"], expected, rtol=0.06)
    for name in ("systematic", "stratified", "residual"):
        assert variance[name].sum() < 0.7 * expected.sum()


@pytest.mark.parametrize("resampler", ALL)
def test_a_single_survivor_takes_every_slot(resampler: Resampler) -> None:
    for survivor in range(5):
        log_weights = torch.full((1, 5), -torch.inf)
        log_weights[0, survivor] = 0.0
        assert (resampler(log_weights, keys(1)) == survivor).all()


@pytest.mark.parametrize("particles", [1, 3, 7, 16, 49])  # 49 x (1 / 49) falls short of 1
@pytest.mark.parametrize("resampler", [systematic, stratified, residual])
def test_even_weights_keep_everybody(resampler: Resampler, particles: int) -> None:
    log_weights = torch.log_softmax(torch.zeros(500, particles), -1)
    counts = offspring(resampler(log_weights, keys(500)))
    if resampler is not stratified:
        assert (counts == 1).all()
    else:
        assert (counts <= 1).all()


def test_triggers_touch_only_whom_they_should() -> None:
    even, skewed = torch.full((8,), 1 / 8), torch.tensor([0.93] + [0.01] * 7)
    dead = torch.zeros(8)
    log_weights = torch.stack((even, skewed, dead)).log()
    stay, uniform = torch.arange(8), even.log()
    ancestors, after = when_ess_below(0.3, systematic)(log_weights, keys(3))
    assert torch.equal(ancestors[[0, 2]], stay.expand(2, -1))
    assert torch.equal(after[[0, 2]], log_weights[[0, 2]])
    assert offspring(ancestors[1:2])[0, 0] >= 7
    assert torch.allclose(after[1], uniform)
    ancestors, after = always(multinomial)(log_weights, keys(3))
    assert not torch.equal(ancestors[0], stay)
    assert torch.equal(after[2], log_weights[2])
    for nobody in (never, when_ess_below(0.0, systematic)):
        ancestors, after = nobody(log_weights, keys(3))
        assert torch.equal(ancestors, stay.expand(3, -1))
        assert torch.equal(after, log_weights)
    with pytest.raises(SettingsError, match="ESS fraction"):
        when_ess_below(1.5, systematic)


def test_the_trigger_is_strict() -> None:
    """Algorithm 1, line 16: ESS / S < tau. Two of four even survivors have ESS / S = 1/2."""
    log_weights = torch.tensor([[0.5, 0.5, 0.0, 0.0]]).log()
    for fraction, moved in ((0.5, False), (0.51, True)):
        ancestors, _ = when_ess_below(fraction, systematic)(log_weights, keys(1))
        assert (not torch.equal(ancestors[0], torch.arange(4))) is moved
