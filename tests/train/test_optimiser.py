"""Groups, decay by group, the schedule at its key points, and the average of the weights."""

import math
from contextlib import suppress

import pytest
import torch
from torch import nn

from tiltrm.model.trm import TRM, TRMConfig
from tiltrm.train import optimiser
from tiltrm.train.optimiser import EMA
from tiltrm.train.settings import Schedule

from . import toys

MIXING = TRMConfig(cells=16, vocabulary=6, width=16, heads=1, layers=2, prefix=1)
ATTENTION = TRMConfig(
    cells=16, vocabulary=6, width=16, heads=2, prefix=2, token_mixing=False, rotary=True,
    learned_positions=True,
)  # fmt: skip


@pytest.mark.parametrize("config", [MIXING, ATTENTION])
@pytest.mark.parametrize("kind", ["muon", "normuon", "adamw"])
def test_every_parameter_is_in_exactly_one_group(config: TRMConfig, kind: str) -> None:
    model = TRM(config)
    built = optimiser.build_optimisers(model, toys.settings(optimiser=kind))
    held = [id(p) for each in built for group in each.param_groups for p in group["params"]]
    assert sorted(held) == sorted(id(p) for p in model.parameters())


def test_groups_hold_what_they_say() -> None:
    model = TRM(MIXING)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    matrices, mixing, rest = (
        {names[id(p)] for p in group} for group in optimiser.parameter_groups(model)
    )
    assert mixing == {n for n in names.values() if "mlp_t" in n}
    assert matrices == {n for n in names.values() if ".mlp." in n}
    heads = {"token_head.weight", "halt_head.weight", "halt_head.bias"}
    assert rest == {"embedding", "prefix", *heads}


@pytest.mark.parametrize("kind", ["muon", "normuon", "adamw"])
@pytest.mark.parametrize("mixing_decay", [-1.0, 0.0, 0.5])
def test_decay_is_decoupled_and_by_group(kind: str, mixing_decay: float) -> None:
    """Without a gradient a weight shrinks by 1 - rate x decay of its own group."""
    settings = toys.settings(
        optimiser=kind, rate=0.1, weight_decay=0.3, mixing_weight_decay=mixing_decay,
        head_rate=0.2, head_weight_decay=0.4,
    )  # fmt: skip
    model = TRM(MIXING)
    nn.init.ones_(model.prefix)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    built = optimiser.build_optimisers(model, settings)
    optimiser.set_rates(built, 0.5)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    for each in built:
        each.step()
    mixing = 0.3 if mixing_decay < 0 else mixing_decay
    for name, parameter in model.named_parameters():
        shrink = 0.05 * (mixing if "mlp_t" in name else 0.3) if "layers" in name else 0.1 * 0.4
        torch.testing.assert_close(parameter.detach(), before[name] * (1 - shrink))


def test_rates_are_always_a_share_of_the_full_one() -> None:
    built = optimiser.build_optimisers(TRM(MIXING), toys.settings(rate=0.1, head_rate=0.2))
    for factor in (0.5, 0.25, 1.0):
        optimiser.set_rates(built, factor)
        rates = {group["lr"] for each in built for group in each.param_groups}
        assert rates == {0.1 * factor, 0.2 * factor}


def test_muon_steps_by_the_rate_in_every_direction_and_looks_ahead() -> None:
    """All singular values of a wide step are near the rate; Nesterov turns before plain momentum.

    After G, a gradient of -0.4 G: the momentum 0.6 x 0.4 G - 0.4 x 0.4 G still points along G, its
    look ahead does not.
    """
    settings = toys.settings(rate=0.1, weight_decay=0.0, momentum=0.6, newton_schulz=5)
    model = TRM(MIXING)
    muon, _ = optimiser.build_optimisers(model, settings)
    weight = next(p for p in optimiser.parameter_groups(model).matrices if p.shape[0] < p.shape[1])
    assert weight.shape[1] > 2 * weight.shape[0]

    def moved(gradient: torch.Tensor) -> torch.Tensor:
        before, weight.grad = weight.detach().clone(), gradient
        muon.step()
        return weight.detach() - before

    steps = torch.linalg.svdvals(moved(torch.randn_like(weight))) / settings.rate
    assert ((steps > 0.5) & (steps < 1.3)).all()
    muon.state.clear()
    gradient = torch.outer(torch.ones(weight.shape[0]), torch.ones(weight.shape[1]))
    assert (moved(gradient) < 0).all()
    assert (moved(-0.4 * gradient) > 0).all()


def factor(progress: float, step: int = 10**6, **values: object) -> float:
    return optimiser.rate_factor(Schedule(**values), step, progress)  # type: ignore[arg-type]


def test_schedule_at_key_points() -> None:
    assert [factor(p, shape="constant", final=0.1) for p in (0, 0.5, 1, 2)] == [1, 1, 1, 1]
    linear = {"shape": "linear", "hold": 0.2, "final": 0.1}
    points = [factor(p, **linear) for p in (0, 0.2, 0.6, 1, 1.5)]
    assert points == pytest.approx([1, 1, 0.55, 0.1, 0.1])
    cosine = {"shape": "cosine", "hold": 0.5, "final": 0.2}
    quarter = 0.2 + 0.8 * 0.5 * (1 + math.cos(math.pi / 4))
    points = [factor(p, **cosine) for p in (0.5, 0.625, 0.75, 1, 7)]
    assert points == pytest.approx([1, quarter, 0.6, 0.2, 0.2])
    assert factor(1.2, shape="cosine", hold=1.0) == 1  # held to the end and past it


def test_warm_up_counts_steps_from_the_first() -> None:
    warm = {"shape": "constant", "warmup_steps": 4}
    assert [factor(0.9, step, **warm) for step in range(6)] == [0.25, 0.5, 0.75, 1, 1, 1]
    half = factor(0.5, 1, shape="linear", warmup_steps=4)
    assert half == pytest.approx(0.5 * 0.5)


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
