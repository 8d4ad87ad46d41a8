"""Products in e4m3 are those of a fake-quantised model in plain torch, and near the exact ones."""

from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tiltrm.errors import DeviceError
from tiltrm.kernels import eight_bit, fused, unfuse
from tiltrm.kernels.eight_bit import quantise
from tiltrm.model import load
from tiltrm.model.base import step
from tiltrm.model.layers import Block, rms_norm

Draw = Callable[..., Tensor]
EPS = 1e-5
ROUNDING = 0.04  # of a product in e4m3 against the exact one: 3 bits of mantissa


@pytest.fixture(autouse=True)
def rounding(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch rounds to e4m3 for Triton's interpreter, which loses the carry of a mantissa."""
    if device == "cuda":
        return
    from triton.runtime import interpreter

    own = interpreter._convert_float

    def convert(values: Any, source: Any, target: Any, mode: Any) -> Any:
        if str(source) == "fp32" and str(target) == "fp8e4nv":
            wide = torch.from_numpy(numpy.ascontiguousarray(values).view(numpy.float32))
            return wide.to(torch.float8_e4m3fn).view(torch.uint8).numpy().reshape(values.shape)
        return own(values, source, target, mode)

    monkeypatch.setattr(interpreter, "_convert_float", convert)


def relative(found: Tensor, truth: Tensor) -> float:
    return float((found.double() - truth).norm() / truth.norm())


def e4m3(x: Tensor, scale: float | Tensor) -> Tensor:
    """x rounded as the kernels round it, in float64."""
    return (x.float() * scale).to(torch.float8_e4m3fn).double() / scale


def fake_quantised(x: Tensor, gate_up: Tensor, down: Tensor, input_scale: float) -> Tensor:
    """down(silu(gate x) * up x), every operand of a product rounded to e4m3, in float64."""
    from tiltrm.kernels.quantised import hidden_scale, scale_of

    weights = e4m3(gate_up, 1 / scale_of(gate_up.abs().amax()))
    gate, up = F.linear(e4m3(x, input_scale), weights).chunk(2, dim=-1)
    hidden = e4m3(F.silu(gate) * up, hidden_scale(*gate_up.chunk(2)))
    return F.linear(hidden, e4m3(down, 1 / scale_of(down.abs().amax(1))[:, None]))


def swiglu(draw: Draw, inputs: int, hidden: int) -> tuple[Tensor, Tensor]:
    """gate_up and down; rows of very different sizes, as trained ones are."""
    spread = torch.logspace(-2, 0, 2 * hidden)[:, None].to(draw(1).device)
    weight = draw(2 * hidden, inputs, scale=inputs**0.5) * spread.to(draw(1).dtype)
    return weight, draw(inputs, hidden, scale=hidden**0.5)


@pytest.mark.parametrize(("positions", "hidden"), [(88, 256), (81, 128), (97, 512), (128, 128)])
def test_token_mixing(draw: Draw, positions: int, hidden: int) -> None:
    from tiltrm.kernels import tokens_eight_bit
    from tiltrm.kernels.quantised import ROW_SCALE, SUM_SCALE, token_weights

    x, weights = 3 * draw(2, positions, 64), swiglu(draw, positions, hidden)
    y, eight = tokens_eight_bit.forward(x, token_weights(*weights), EPS)
    turned = x.double().transpose(1, 2)
    truth = rms_norm(turned + fake_quantised(turned, *weights, SUM_SCALE), EPS).transpose(1, 2)
    exact = F.silu(F.linear(turned, weights[0].double()).chunk(2, -1)[0])
    exact = exact * F.linear(turned, weights[0].double()).chunk(2, -1)[1]
    exact = rms_norm(turned + F.linear(exact, weights[1].double()), EPS).transpose(1, 2)
    assert relative(y, truth) < 6e-3  # a last bit of e4m3 that float32 sums round the other way
    assert relative(y, exact) < ROUNDING
    assert relative(eight.float() / ROW_SCALE, y.double()) < ROUNDING


def test_channel_mixing(draw: Draw) -> None:
    from tiltrm.kernels import channels_eight_bit
    from tiltrm.kernels.quantised import EIGHT_BIT, ROW_SCALE, channel_weights

    x, weights = rms_norm(draw(150, 128), EPS), swiglu(draw, 128, 256)
    eight = (x.float() * ROW_SCALE).to(EIGHT_BIT)
    found = channels_eight_bit.forward(x, eight, channel_weights(*weights), EPS)
    truth = rms_norm(x.double() + fake_quantised(x, *weights, ROW_SCALE), EPS)
    assert relative(found, truth) < 6e-3


def test_norm_with_scales_of_columns(draw: Draw, close: Callable[[Tensor, Tensor], bool]) -> None:
    from tiltrm.kernels import channels_eight_bit
    from tiltrm.kernels.quantised import ROW_SCALE

    x, out, scale = draw(9, 192), draw(9, 192), draw(192).float().abs()
    truth = rms_norm(x.double() + out.double() * scale.double(), EPS)
    y, eight = channels_eight_bit.residual_norm(x, out, EPS, scale, eight_bit=True)
    assert close(y, truth)
    assert relative(eight.float() / ROW_SCALE, truth) < ROUNDING
    assert close(channels_eight_bit.residual_norm(x, out, EPS)[0], rms_norm(x + out, EPS).double())


def test_permutation_puts_neighbours_of_two_groups_together() -> None:
    from tiltrm.kernels.quantised import permutation

    assert permutation(16).tolist() == [0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15]


@pytest.mark.parametrize("token_mixing", [True, False])
def test_a_quantised_block_is_near_the_plain_one_and_has_its_slopes(
    device: str, dtype: torch.dtype, draw: Draw, token_mixing: bool
) -> None:
    torch.manual_seed(0)
    block = Block(88, 64, 2, 2.0, token_mixing=token_mixing).to(device, dtype)
    x = draw(2, 88, 64)
    truth = block(x).detach().double()
    names = list(block.state_dict())
    quantise(block)
    with torch.no_grad():
        error = relative(block(x), truth)
    assert 1e-3 < error < 2 * ROUNDING  # two products; below: nothing was rounded to 8 bits
    assert relative(block(x.requires_grad_()).detach(), truth) < 1e-2  # slopes: not in 8 bits
    assert fused(block)
    assert list(block.state_dict()) == names
    assert type(unfuse(block)) is Block


def test_eight_bits_that_cannot_run_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eight_bit, "available", lambda: False)
    with pytest.raises(DeviceError, match=r"8-bit products need .* got none"):
        load("sudoku-extreme", fp8=True)


def test_load_fuses_and_quantises() -> None:
    model = load("sudoku-extreme", fp8=True)
    blocks = [module for module in model.modules() if isinstance(module, Block)]
    assert [type(block) for block in blocks] == [eight_bit.EightBitBlock] * 2


@pytest.mark.cuda
def test_a_model_in_eight_bits_on_a_gpu() -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    plain, eight = load("sudoku-extreme", device="cuda"), load(
        "sudoku-extreme", device="cuda", fp8=True, compact=True
    )  # fmt: skip
    with torch.inference_mode():
        inputs = plain.embed(torch.randint(1, 11, (4, 81), device="cuda"))
        state = step(plain, inputs, plain.start(inputs))
        truth = plain.refine(inputs, state).double()
        assert 1e-3 < relative(eight.refine(inputs, state), truth) < 0.1
