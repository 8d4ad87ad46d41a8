"""`fuse` changes the path, not the model: names, values and slopes stay."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tiltrm import kernels
from tiltrm.diagnose.lipschitz import local_norm
from tiltrm.errors import DeviceError
from tiltrm.kernels import fuse, fused, mix_channels, mix_tokens, unfuse
from tiltrm.model import checkpoint, load, save
from tiltrm.model.layers import Block, rotary_table
from tiltrm.model.trm import TRM, Network, TRMConfig
from tiltrm.model.unfused import unfused_copy


def small(**changes: object) -> TRMConfig:
    return TRMConfig(
        **{"cells": 16, "vocabulary": 6, "width": 32, "heads": 2, "prefix": 0} | changes
    )


@pytest.mark.parametrize("token_mixing", [True, False])
def test_fallback_is_the_model_bit_for_bit(token_mixing: bool) -> None:
    model = TRM(small(token_mixing=token_mixing, rotary=not token_mixing))
    inputs = model.embed(torch.randint(0, 6, (3, 16)))
    state = model.start(inputs)
    before, names = model.step(inputs, state), list(model.state_dict())
    assert fuse(model) is model
    after = model.step(inputs, state)
    assert torch.equal(before.answer, after.answer)
    assert torch.equal(before.latent, after.latent)
    assert list(model.state_dict()) == names
    assert all(type(layer) is not Block for layer in model.network.layers)
    assert all(type(layer) is Block for layer in unfuse(model).network.layers)


@pytest.mark.parametrize("token_mixing", [True, False])
def test_fused_block_equals_block(
    device: str, dtype: torch.dtype, draw: Callable[..., Tensor], close: Callable[..., bool],
    token_mixing: bool,
) -> None:  # fmt: skip
    torch.manual_seed(0)
    block = Block(88, 64, 2, 2.0, token_mixing=token_mixing).to(device, dtype)
    wide = Block(88, 64, 2, 2.0, token_mixing=token_mixing).to(device, torch.float64)
    wide.load_state_dict(block.state_dict())
    cos, sin = (t.to(device) for t in rotary_table(88, 32, 10000.0))
    x, slope = draw(1, 88, 64), draw(1, 88, 64)
    found = fuse(block)(x, (cos, sin))
    truth = wide(x.double(), (cos.double(), sin.double()))
    assert close(found.detach(), truth.detach())
    slopes = torch.autograd.grad(found, list(block.parameters()), slope)
    truths = torch.autograd.grad(truth, list(wide.parameters()), slope.double())
    assert all(close(a, b) for a, b in zip(slopes, truths, strict=True))


@pytest.mark.parametrize("token_mixing", [True, False])
def test_the_unfused_copy_of_a_block_can_be_differentiated_twice(
    device: str, dtype: torch.dtype, draw: Callable[..., Tensor],
    close: Callable[[Tensor, Tensor], bool], token_mixing: bool,
) -> None:  # fmt: skip
    """Power iteration on it finds what it finds on the plain block, whose values it has."""
    torch.manual_seed(0)
    block = Block(88, 64, 2, 2.0, token_mixing=token_mixing).to(device, dtype)
    points, key = draw(2, 88, 64), torch.tensor(3)
    assert close(unfused_copy(block)(points), block(points).double())
    plain = local_norm(unfused_copy(block), points, key, iterations=2)
    assert torch.equal(local_norm(unfused_copy(fuse(block)), points, key, iterations=2), plain)


def test_the_unfused_copy_shares_the_weights_and_changes_nothing() -> None:
    """No switch: whoever else runs the model, in another thread, keeps the fast path."""
    model = fuse(TRM(small(token_mixing=False, rotary=True)))
    before = [type(module) for module in model.modules()]
    copy = unfused_copy(model)
    assert [type(module) for module in model.modules()] == before
    assert all(a is b for a, b in zip(copy.parameters(), model.parameters(), strict=True))
    assert {type(module) for module in copy.modules()} >= {Block, Network}
    assert not fused(copy)
    assert unfused_copy("no module") == "no module"


def test_compiled_without_a_break(device: str, draw: Callable[..., Tensor]) -> None:
    """One graph, forward and backward, and the same numbers as without the compiler."""
    x = draw(1, 81, 64).requires_grad_()
    tokens = draw(256, 81, scale=9), draw(81, 128, scale=12)
    channels = draw(256, 64, scale=8), draw(64, 128, scale=12)

    def network(x: Tensor) -> Tensor:
        return mix_channels(mix_tokens(x, *tokens, 1e-5), *channels, 1e-5)

    compiled = torch.compile(network, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(x), network(x))
    (slope,) = torch.autograd.grad(compiled(x).square().mean(), x)
    (truth,) = torch.autograd.grad(network(x).square().mean(), x)
    assert torch.allclose(slope, truth)


@pytest.mark.parametrize(
    ("device", "available", "wanted", "expected"),
    [
        ("cuda", True, None, True),
        ("cuda", True, False, False),
        ("cuda", True, True, True),
        ("cuda", False, None, False),
        ("cpu", True, None, False),
        ("cpu", True, True, True),  # in Triton's interpreter
    ],
)
def test_load_fuses_where_the_kernels_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    device: str, available: bool, wanted: bool | None, expected: bool,
) -> None:  # fmt: skip
    """There need not be a GPU: the weights stay on the CPU, and `load` is told otherwise."""
    folder = save(TRM(small()), tmp_path / "model")
    monkeypatch.setattr(checkpoint, "_device", torch.device)
    real = checkpoint.load_folder
    cpu = torch.device("cpu")
    monkeypatch.setattr(
        checkpoint,
        "load_folder",
        lambda path, _, dtype, puzzle_id: real(path, cpu, dtype, puzzle_id),
    )
    monkeypatch.setattr(kernels, "available", lambda: available)
    monkeypatch.setattr(kernels, "interpreted", lambda: True)
    assert fused(load(folder, device=device, fuse=wanted)) is expected


def test_fused_layers_that_cannot_run_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = save(TRM(small()), tmp_path / "model")
    monkeypatch.setattr(kernels, "interpreted", lambda: False)
    with pytest.raises(DeviceError, match=r"fuse=True needs .* got cpu"):
        load(folder, fuse=True)
