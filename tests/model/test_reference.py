"""The torch modules against the same formulas in float64 NumPy."""

import numpy as np
import pytest
import torch
from numpy_model import NumpyModel
from torch.utils.flop_counter import FlopCounterMode

from tiltrm.errors import SettingsError
from tiltrm.model import HRM, TRM, HRMConfig, State, TRMConfig
from tiltrm.model.layers import Block, lookup, rotary_table
from tiltrm.model.trm import evaluation_flops
from tiltrm.model.unfused import MathAttention

SMALL = {"cells": 12, "vocabulary": 7, "width": 32, "heads": 2, "inner_steps": 2, "cycles": 2}
VARIANTS = {
    "token mixing": TRMConfig(**SMALL, prefix=3),
    "attention": TRMConfig(**SMALL, prefix=0, token_mixing=False),
    "rotary": TRMConfig(**SMALL, prefix=2, token_mixing=False, rotary=True),
    "learned": TRMConfig(**SMALL, prefix=2, token_mixing=False, learned_positions=True),
    "hrm": HRMConfig(**SMALL, prefix=1, layers=2, answer_layers=1),
}


def make(config):
    """A model with nothing left at a value that could hide a term."""
    torch.manual_seed(1)
    model = HRM(config) if isinstance(config, HRMConfig) else TRM(config)
    for parameter in (model.prefix, model.halt_head.weight, model.halt_head.bias):
        torch.nn.init.normal_(parameter)
    return model.eval().requires_grad_(False)


def tokens(config, puzzles=3):
    generator = torch.Generator().manual_seed(2)
    return torch.randint(config.vocabulary, (puzzles, config.cells), generator=generator)


# Float32 against float64 over one outer step; how much is left depends on the number of threads.
ROUNDING = {"rtol": 1e-5, "atol": 2e-5}


@pytest.mark.parametrize("name", VARIANTS)
def test_two_outer_steps(name):
    config = VARIANTS[name]
    model, plain = make(config), NumpyModel(config, make(config).state_dict())
    given = tokens(config)
    inputs, expected = model.embed(given), plain.embed(given)
    np.testing.assert_allclose(inputs, expected, atol=1e-5)
    state = model.start(inputs)
    np.testing.assert_allclose(state.answer, plain.start(expected)[0], atol=1e-5)
    np.testing.assert_allclose(state.latent, plain.start(expected)[1], atol=1e-5)
    for _ in range(2):
        pair = plain.step(expected, *(part.double().numpy() for part in state))
        state = model.step(inputs, state)
        np.testing.assert_allclose(state.answer, pair[0], **ROUNDING)
        np.testing.assert_allclose(state.latent, pair[1], **ROUNDING)
    np.testing.assert_allclose(model.decode(state.answer), plain.decode(pair[0]), **ROUNDING)
    np.testing.assert_allclose(model.halt_logit(state.answer), plain.halt(pair[0]), **ROUNDING)


def test_attention_block_with_rotary_positions():
    config = VARIANTS["rotary"]
    torch.manual_seed(3)
    block = Block(14, 32, 2, 4.0, token_mixing=False)
    plain = NumpyModel(config, {f"b.{n}": t for n, t in block.state_dict().items()})
    x = torch.randn(2, 14, 32)
    with torch.no_grad():
        got = block(x, rotary_table(14, 16, config.rotary_theta))
    np.testing.assert_allclose(got, plain.block("b.", x.double().numpy()), atol=1e-5)


def test_hrm_step():
    """z_L = L(z_L + z_H + x) twice, then z_H = H(z_H + z_L), each network its own."""
    config = VARIANTS["hrm"]
    model = make(config)
    inputs = model.embed(tokens(config))
    high, low = model.start(inputs)
    for _ in range(config.inner_steps):
        low = model.latent_network(low, high + inputs, model.rotary)
    high = model.answer_network(high, low, model.rotary)
    got = model.step(inputs, model.start(inputs))
    assert torch.equal(got.answer, high)
    assert torch.equal(got.latent, low)


def test_halt_logit_of_hrm_is_its_first_output():
    model = make(VARIANTS["hrm"])
    answer = torch.randn(4, 13, 32)
    both = model.halt_head(answer[:, 0])
    assert both.shape == (4, 2)
    assert torch.equal(model.halt_logit(answer), both[:, 0])


@pytest.mark.parametrize("name", VARIANTS)
def test_leading_dimensions_are_free(name):
    """A cloud (puzzle, particle) gives what its members give alone."""
    config = VARIANTS[name]
    model = make(config)
    inputs = model.embed(tokens(config, 2))
    torch.manual_seed(4)
    cloud = State(*(torch.randn(2, 3, config.positions, config.width) for _ in range(2)))
    together = model.step(inputs[:, None], cloud)
    for puzzle in range(2):
        for particle in range(3):
            alone = State(cloud.answer[puzzle, particle], cloud.latent[puzzle, particle])
            one = model.step(inputs[puzzle], alone)
            torch.testing.assert_close(together.answer[puzzle, particle], one.answer)
            torch.testing.assert_close(together.latent[puzzle, particle], one.latent)
    assert model.decode(together.answer).shape == (2, 3, config.cells, config.vocabulary)
    assert model.halt_logit(together.answer).shape == (2, 3)


@pytest.mark.parametrize("name", ["token mixing", "rotary", "hrm"])
def test_operations_are_in_the_published_order(name):
    """Bit for bit: z + (y + x), residual inside the norm, scale after the sum.

    Random weights double a rounding error every few calls, so only the same order of operations
    can agree with a peer's float32 outputs over many steps (see test_fixtures.py).
    """
    config = VARIANTS[name]
    model = make(config)
    inputs = model.embed(tokens(config))
    high, low = (part.clone() for part in model.start(inputs))
    networks = (
        (model.latent_network, model.answer_network)
        if isinstance(model, HRM)
        else (model.network, model.network)
    )
    for _ in range(config.inner_steps):
        low = in_order(networks[0], low + (high + inputs), model.rotary)
    high = in_order(networks[1], high + low, model.rotary)
    got = model.step(inputs, model.start(inputs))
    assert torch.equal(got.answer, high)


def in_order(network, x, rotary):
    def norm(h):
        return h * torch.rsqrt(h.square().mean(-1, keepdim=True) + 1e-5)

    for layer in network.layers:
        if layer.mlp_t is not None:
            x = x.transpose(1, 2)
            x = norm(x + layer.mlp_t(x)).transpose(1, 2)
        else:
            x = norm(x + layer.self_attn(x, rotary))
        x = norm(x + layer.mlp(x))
    return x


def test_a_fresh_model_starts_as_published():
    """Matrices of standard deviation 1 / sqrt(inputs), cut at two; a head that doubts all."""
    torch.manual_seed(0)
    model = TRM(TRMConfig(layers=1)).requires_grad_(False)
    block = model.network.layers[0]
    for weight, std in (
        (model.embedding, 512**-0.5), (model.first_answer, 1.0), (model.first_latent, 1.0),
        (block.mlp.gate_up_proj.weight, 512**-0.5), (block.mlp.down_proj.weight, 1536**-0.5),
        (block.mlp_t.gate_up_proj.weight, 88**-0.5), (model.token_head.weight, 512**-0.5),
    ):  # fmt: skip
        error = std / (2 * weight.numel()) ** 0.5
        assert abs(float(weight.std()) - std) < 4 * error
        assert float(weight.abs().max()) < 2.28 * std  # 2 / 0.88: what is cut is made up for
    assert not model.halt_head.weight.any()
    assert (model.halt_head.bias == -5).all()
    assert not model.prefix.any()


@pytest.mark.parametrize("name", VARIANTS)
def test_operations_are_counted_as_torch_counts_them(name):
    config = VARIANTS[name]
    model = make(config)
    inputs = model.embed(tokens(config, 1))
    state = model.start(inputs)
    with FlopCounterMode(display=False) as counter, MathAttention():  # torch's hides its products
        model.refine(inputs, state)
    assert counter.get_total_flops() == evaluation_flops(config)


@pytest.mark.parametrize(
    "wrong", [{"width": 30, "heads": 2}, {"width": 48, "heads": 5}, {"cells": 0}, {"prefix": -1}]
)
def test_sizes_that_cannot_be_are_refused(wrong):
    """A head of 15 has no two halves to turn."""
    with pytest.raises(SettingsError, match=rf"{next(iter(wrong))}.* (must|not)"):
        TRMConfig(**wrong)


def test_hrm_sizes_are_checked():
    with pytest.raises(SettingsError, match="answer_layers must be at least 1, got 0"):
        HRMConfig(answer_layers=0)


def test_the_slope_of_a_lookup_is_that_of_indexing() -> None:
    table = torch.randn(11, 8, dtype=torch.float64, requires_grad=True)
    tokens, slope = torch.randint(0, 11, (5, 7)), torch.randn(5, 7, 8, dtype=torch.float64)
    (ours,) = torch.autograd.grad(lookup(table, tokens), table, slope)
    (truth,) = torch.autograd.grad(table[tokens], table, slope)
    assert torch.equal(lookup(table, tokens), table[tokens])
    torch.testing.assert_close(ours, truth)
