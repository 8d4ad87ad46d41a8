"""Channel mixing in int8 on a CPU: near the exact product, every row by itself, never saved."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tiltrm.errors import CheckpointError, DeviceError, SettingsError
from tiltrm.model import load, save
from tiltrm.model.base import State, step
from tiltrm.model.build import Model
from tiltrm.model.int8 import Int8Linear, is_int8, with_int8
from tiltrm.model.layers import Block
from tiltrm.model.trm import TRM, TRMConfig
from tiltrm.model.unfused import unfused_copy

PRODUCT = 0.012  # relative error of a product: both operands are rounded to 1/254 of their largest
OUTER_STEP = 0.03  # relative error of an outer step of the bundled model, which is 0.02


@pytest.fixture(scope="module", autouse=True)
def runs() -> None:
    """Skip where the CPU ends programs that multiply in int8."""
    code = "import torch; x = torch.ones(64, 64, dtype=torch.int8); torch._int_mm(x, x)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    if done.returncode < 0:
        pytest.skip(f"this CPU ends programs that multiply in int8 ({done.returncode})")


def relative(found: Tensor, truth: Tensor) -> float:
    return float((found.double() - truth.double()).norm() / truth.double().norm())


def block(width: int = 128, positions: int = 17, expansion: float = 1.5) -> Block:
    torch.manual_seed(0)
    return Block(positions, width, 2, expansion, token_mixing=True).requires_grad_(False)


def layer(width: int = 128) -> Int8Linear:
    made = with_int8(block(width)).mlp.gate_up_proj
    assert isinstance(made, Int8Linear)
    return made


def middle(model: Model, batch: int = 2) -> tuple[Tensor, State]:
    """Inputs, and a state in the middle of a search."""
    torch.manual_seed(0)
    inputs = model.embed(torch.randint(1, 11, (batch, 81)))
    return inputs, step(model, inputs, model.start(inputs))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", [1, 2, 3, 17, 64, 97, 512])
def test_a_product_is_near_the_exact_one(rows: int, dtype: torch.dtype) -> None:
    """Rows and channels of very different sizes: one scale for all would lose the small ones."""
    plain = block().mlp.gate_up_proj
    plain.weight *= torch.logspace(-3, 1, len(plain.weight))[:, None]
    x = torch.randn(rows, 128) * torch.logspace(-4, 4, rows)[:, None]
    truth = x.to(dtype).double() @ plain.weight.double().t()
    own = with_int8(block())
    own.mlp.gate_up_proj.weight.copy_(plain.weight)
    found = with_int8(own).mlp.gate_up_proj(x.to(dtype)).double()
    assert found.shape == truth.shape
    assert float(((found - truth).norm(dim=1) / truth.norm(dim=1)).max()) < 2 * PRODUCT
    for part in (slice(0, 64), slice(-64, None)):  # the small channels, and the large ones
        assert 1e-3 < relative(found[:, part], truth[:, part]) < PRODUCT


def test_integers_are_those_of_the_formula() -> None:
    made, x = layer(), torch.randn(5, 128)
    step_of_row = x.abs().amax(1, keepdim=True) / 127
    step_of_channel = made.weight.abs().amax(1, keepdim=True) / 127
    rounded = (made.weight / step_of_channel).round() * step_of_channel
    truth = ((x / step_of_row).round() * step_of_row).double() @ rounded.double().t()
    assert relative(made(x), truth) < 1e-6


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_row_does_not_depend_on_its_batch(dtype: torch.dtype) -> None:
    made, x = layer(), torch.randn(97, 128).to(dtype)
    x[3] *= 1e6  # a scale for all rows would be this one's
    together = made(x)
    for rows in (slice(0, 1), slice(3, 4), slice(5, 22), slice(96, 97)):
        assert torch.equal(made(x[rows]), together[rows])
    assert torch.equal(made(x.flip(0)), together.flip(0))
    assert torch.equal(made(x.view(1, 97, 128))[0], together)


def test_rows_of_any_layout() -> None:
    made, x = layer(), torch.randn(40, 128)
    truth = made(x)
    assert torch.equal(made(x.t().contiguous().t()), truth)
    assert torch.equal(made(torch.cat((x, x), 1)[:, :128]), truth)
    assert torch.equal(made(x[:1].as_strided((1, 128), (0, 1))), truth[:1])
    assert torch.equal(made(x[:1].expand(3, -1)), truth[:1].expand(3, -1))
    assert made(x[:0].view(0, 5, 128)).shape == (0, 5, 512)


def test_zeros_and_huge_values_are_no_nan() -> None:
    made = layer()
    assert torch.equal(made(torch.zeros(3, 128)), torch.zeros(3, 512))
    x = torch.randn(4, 128)
    for factor in (1e-37, 1e30, 1e37):
        found = made(x * factor)
        assert found.isfinite().all()
        if factor > 1:
            assert relative(found / factor, made(x)) < 1e-6
    idle = with_int8(block())
    idle.mlp.gate_up_proj.weight.zero_()
    assert torch.equal(with_int8(idle).mlp(x), torch.zeros(4, 128))
    assert made(torch.full((1, 128), torch.nan)).isnan().all()  # and a lost state is not hidden


@pytest.mark.parametrize("width", [32, 96, 100])
def test_sizes_that_are_no_multiple_of_64_take_the_plain_product(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, x = layer(width), torch.randn(7, width)
    monkeypatch.delattr(torch, "_int_mm")
    assert torch.equal(made(x), nn.functional.linear(x, made.weight))


def test_slopes_are_those_of_the_plain_product() -> None:
    made, x = layer(), torch.randn(7, 128, requires_grad=True)
    (slope,) = torch.autograd.grad(made(x).sum(), x)
    assert torch.allclose(slope, made.weight.sum(0).expand(7, -1), atol=1e-5)
    with torch.no_grad():
        assert not torch.equal(made(x), nn.functional.linear(x, made.weight))
    plain = unfused_copy(with_int8(block()))
    assert not is_int8(plain)


@pytest.mark.parametrize("compact", [False, True])
def test_an_outer_step_of_a_bundled_model(compact: bool) -> None:
    """From a state in the middle of a search; bfloat16 is 8e-3 away."""
    exact = load("sudoku-extreme")
    eight = load("sudoku-extreme", int8=True, compact=compact)
    with torch.inference_mode():
        inputs, state = middle(exact)
        truth, found = step(exact, inputs, state), step(eight, inputs, state)
        alone = step(eight, inputs[1:], State(state.answer[1:], state.latent[1:]))
    assert 1e-3 < relative(found.answer, truth.answer) < OUTER_STEP
    assert relative(alone.answer, found.answer[1:]) < 1e-4  # float32 products may depend on threads
    layers = [type(module) for module in eight.modules() if isinstance(module, nn.Linear)]
    assert layers.count(Int8Linear) == 4


def test_a_model_with_int8_is_not_saved(tmp_path: Path) -> None:
    model = TRM(TRMConfig(cells=16, vocabulary=6, width=64, heads=2, prefix=0))
    save(model, tmp_path / "whole")
    with pytest.raises(CheckpointError, match="without int8=True"):
        save(load(tmp_path / "whole", int8=True), tmp_path / "eight")
    assert not (tmp_path / "eight").exists()


def test_int8_that_cannot_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("fp8", "fuse"):
        with pytest.raises(SettingsError, match=rf"int8=True .* got {name}=True .*; leave one out"):
            load("sudoku-extreme", int8=True, **{name: True})  # type: ignore[arg-type]
    with pytest.raises(DeviceError, match=r"int8=True computes on a CPU, got meta; leave int8 out"):
        load("sudoku-extreme", int8=True, device="meta")
    monkeypatch.delattr(torch, "_int_mm")
    with pytest.raises(DeviceError, match=r"needs torch._int_mm, got torch .*; leave int8 out"):
        load("sudoku-extreme", int8=True)
