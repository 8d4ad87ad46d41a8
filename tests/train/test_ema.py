"""The average of the weights: its warm-up, its value, and that it is put on and off exactly."""

from contextlib import suppress

import pytest
import torch

from tiltrm.train.ema import EMA


def test_the_decay_warms_up() -> None:
    ema = EMA([], 0.99)
    assert ema.decay_at(0) == 0.1
    assert ema.decay_at(8) == 0.5
    assert ema.decay_at(889) == pytest.approx(890 / 899)
    assert ema.decay_at(891) == 0.99
    assert ema.decay_at(10**9) == 0.99


def test_the_average_is_the_recursion() -> None:
    weight = torch.zeros(3, dtype=torch.float64)
    ema = EMA([weight], 0.6)
    average = torch.zeros(3, dtype=torch.float64)
    for step in range(12):
        weight += torch.tensor([1.0, -2.0, 0.5])
        ema.update(step)
        decay = min(0.6, (1 + step) / (10 + step))
        average = decay * average + (1 - decay) * weight
        torch.testing.assert_close(ema.average[0], average)


def test_applied_swaps_and_gives_back_bit_for_bit() -> None:
    weights = [torch.randn(50, requires_grad=True), torch.randn(3, 4, requires_grad=True)]
    ema = EMA(weights, 0.9)
    with torch.no_grad():
        for weight in weights:
            weight += torch.randn_like(weight) * 1e-3
    ema.update(0)
    before = [w.detach().clone() for w in weights]
    averages = [a.clone() for a in ema.average]
    with suppress(KeyError), ema.applied():
        for weight, average in zip(weights, averages, strict=True):
            assert torch.equal(weight, average)
        raise KeyError  # even then
    for weight, kept, average, old in zip(weights, before, ema.average, averages, strict=True):
        assert torch.equal(weight, kept)
        assert torch.equal(average, old)
        assert not torch.equal(weight, average)
