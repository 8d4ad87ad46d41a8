"""Channel mixing on the kernels is the plain function: values and slopes."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tiltrm.kernels import mix_channels, reference

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
    truth = reference.mix_channels(*(t.double() for t in inputs), EPS)
    assert close(mix_channels(*inputs, EPS), truth)


def test_gated_tiles_cover_rows_that_fill_no_tile(draw: Draw, close: Close) -> None:
    from tiltrm.kernels import channels
    from tiltrm.kernels.launch import Launch

    x, gate_up, _ = problem(draw, 3, 81, 128, 256)
    gate, up = (x.double().flatten(0, 1) @ gate_up.double().T).chunk(2, dim=-1)
    launch = Launch(rows=128, columns=64, persistent=1)
    hidden = channels.gated(x.flatten(0, 1), gate_up, launch)
    assert close(hidden, torch.nn.functional.silu(gate) * up)


def test_slopes_equal_plain(draw: Draw, close: Close) -> None:
    inputs = problem(draw, 2, 81, 128, 256)
    slope = draw(2, 81, 128)
    wide = [t.double().requires_grad_() for t in inputs]
    truth = torch.autograd.grad(reference.mix_channels(*wide, EPS), wide, slope.double())
    leaves = [t.requires_grad_() for t in inputs]
    found = torch.autograd.grad(mix_channels(*leaves, EPS), leaves, slope)
    assert all(close(a, b) for a, b in zip(found, truth, strict=True))


def test_operator_keeps_its_promises(draw: Draw) -> None:
    from tiltrm.kernels import ops

    inputs = [t.requires_grad_() for t in problem(draw, 1, 16, 64, 128)]
    rows = (inputs[0].detach().flatten(0, 1).requires_grad_(), *inputs[1:], EPS)
    checks = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(ops.mix_channels, rows, test_utils=checks)
