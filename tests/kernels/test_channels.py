"""Channel mixing on the kernels is the plain function: values, slopes, noise in the last pass."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.kernels import Noise, keyed_normal_, mix_channels, plain

Draw = Callable[..., Tensor]
Close = Callable[[Tensor, Tensor], bool]
EPS = 1e-5


def problem(draw: Draw, batch: int, positions: int, width: int, hidden: int) -> list[Tensor]:
    return [
        draw(batch, positions, width),
        draw(2 * hidden, width, scale=width**0.5),
        draw(width, hidden, scale=hidden**0.5),
    ]


@pytest.mark.parametrize(
    ("batch", "positions", "width", "hidden"),
    [(2, 88, 128, 128), (1, 81, 64, 256), (1, 7, 192, 128)],
)
def test_kernel_equals_plain(
    draw: Draw, close: Close, batch: int, positions: int, width: int, hidden: int
) -> None:
    inputs = problem(draw, batch, positions, width, hidden)
    truth = plain.mix_channels(*(t.double() for t in inputs), EPS)
    assert close(mix_channels(*inputs, EPS), truth)


@pytest.mark.parametrize("persistent", [0, 1])
def test_gated_tiles_cover_rows_that_fill_no_tile(
    draw: Draw, close: Close, persistent: int
) -> None:
    from tiltrm.kernels import channels
    from tiltrm.kernels.common import Launch

    x, gate_up, _ = problem(draw, 3, 81, 128, 256)
    gate, up = (x.double().flatten(0, 1) @ gate_up.double().T).chunk(2, dim=-1)
    launch = Launch(rows=128, columns=64, persistent=persistent)
    hidden = channels.gated(x.flatten(0, 1), gate_up, launch)
    assert close(hidden, torch.nn.functional.silu(gate) * up)


@pytest.mark.parametrize("library", [False, True])
def test_slopes_equal_plain(draw: Draw, close: Close, library: bool) -> None:
    from tiltrm.kernels.common import LAUNCHES

    inputs = problem(draw, 2, 81, 128, 256)
    slope = draw(2, 81, 128)
    wide = [t.double().requires_grad_() for t in inputs]
    truth = torch.autograd.grad(plain.mix_channels(*wide, EPS), wide, slope.double())
    leaves = [t.requires_grad_() for t in inputs]
    kept = LAUNCHES["gated backward"]
    LAUNCHES["gated backward"] = kept._replace(library=library)
    found = torch.autograd.grad(mix_channels(*leaves, EPS), leaves, slope)
    LAUNCHES["gated backward"] = kept
    assert all(close(a, b) for a, b in zip(found, truth, strict=True))


def test_noise_in_the_last_pass_is_noise_added_after(draw: Draw, close: Close) -> None:
    inputs = problem(draw, 3, 81, 64, 128)
    noise = Noise(torch.tensor([7, -5, 2**40], device=inputs[0].device), site=11, sigma=0.3)
    clean = mix_channels(*inputs, EPS)
    truth = keyed_normal_(clean.double(), *noise)
    assert close(mix_channels(*inputs, EPS, noise), truth)
    inputs[0].requires_grad_()
    assert close(mix_channels(*inputs, EPS, noise).detach(), truth)


def test_keys_must_be_one_integer_per_trajectory(draw: Draw) -> None:
    inputs = problem(draw, 2, 81, 64, 128)
    with pytest.raises(SettingsError, match="one int64 key for each of 2 trajectories"):
        mix_channels(*inputs, EPS, Noise(torch.zeros(3, dtype=torch.int64), 0, 0.3))


def test_operator_keeps_its_promises(draw: Draw) -> None:
    from tiltrm.kernels import ops

    inputs = [t.requires_grad_() for t in problem(draw, 1, 16, 64, 128)]
    rows = (inputs[0].detach().flatten(0, 1).requires_grad_(), *inputs[1:], EPS)
    checks = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(ops.mix_channels, rows, test_utils=checks)
