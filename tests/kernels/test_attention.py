"""Attention on the kernels is the plain function: values, slopes, any number of positions."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tiltrm.kernels import attend, reference
from tiltrm.kernels.reference import Rotary
from tiltrm.model.layers import rotary_table

Draw = Callable[..., Tensor]
Close = Callable[[Tensor, Tensor], bool]
EPS = 1e-5


def problem(draw: Draw, batch: int, positions: int, width: int) -> list[Tensor]:
    return [
        draw(batch, positions, width),
        draw(3 * width, width, scale=width**0.5),
        draw(width, width, scale=width**0.5),
    ]


def table(positions: int, head_width: int, device: str) -> Rotary:
    """Fast angles (theta 100), so that a wrong position is seen in few of them."""
    cos, sin = rotary_table(positions, head_width, 100.0)
    return cos.to(device), sin.to(device)


def wide(rotary: Rotary | None) -> Rotary | None:
    return None if rotary is None else (rotary[0].double(), rotary[1].double())


@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize(
    ("batch", "positions", "width", "heads"),
    [(2, 16, 128, 4), (3, 13, 64, 2), (1, 1, 64, 1), (2, 7, 192, 6), (2, 9, 192, 4)],
)
def test_kernel_equals_plain(
    draw: Draw, close: Close, device: str,
    turned: bool, batch: int, positions: int, width: int, heads: int,
) -> None:  # fmt: skip
    inputs = problem(draw, batch, positions, width)
    rotary = table(positions, width // heads, device) if turned else None
    truth = reference.attend(*(t.double() for t in inputs), EPS, heads, wide(rotary))
    assert close(attend(*inputs, EPS, heads, rotary), truth)  # in place
    leaves = [t.requires_grad_() for t in inputs]
    assert close(attend(*leaves, EPS, heads, rotary).detach(), truth)  # kept for a slope


@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize(("positions", "width", "heads"), [(16, 128, 2), (13, 64, 4)])
def test_slopes_equal_plain(
    draw: Draw, close: Close, device: str, turned: bool, positions: int, width: int, heads: int
) -> None:
    inputs = problem(draw, 3, positions, width)
    rotary = table(positions, width // heads, device) if turned else None
    slope = draw(3, positions, width)
    doubles = [t.double().requires_grad_() for t in inputs]
    mixed = reference.attend(*doubles, EPS, heads, wide(rotary))
    truth = torch.autograd.grad(mixed, doubles, slope.double())
    leaves = [t.requires_grad_() for t in inputs]
    found = torch.autograd.grad(attend(*leaves, EPS, heads, rotary), leaves, slope)
    assert [t.dtype for t in found] == [t.dtype for t in inputs]
    assert all(close(a, b) for a, b in zip(found, truth, strict=True))


def test_turning_back_undoes_turning(draw: Draw, close: Close, device: str) -> None:
    """The slope of a rotation is its inverse; the value passes through as it is."""
    from tiltrm.kernels import rotary

    qkv, angles = draw(2 * 11, 3 * 64), table(11, 32, device)
    parts = rotary.split(qkv, *angles)
    assert torch.equal(parts[2], qkv[:, 128:])
    assert not close(torch.cat(parts, 1), qkv.double())
    assert close(rotary.split_backward(parts, *angles), qkv.double())
    rotary.rotate_(qkv, *angles)
    assert close(qkv, torch.cat(parts, 1).double())


def test_leading_sizes_and_turned_memory_do_not_matter(draw: Draw, device: str) -> None:
    x, *weights = problem(draw, 4, 9, 64)
    rest = (*weights, EPS, 2, table(9, 32, device))
    flat = attend(x, *rest)
    assert torch.equal(attend(x.view(2, 2, 9, 64), *rest).view_as(flat), flat)
    assert torch.equal(attend(x.transpose(1, 2).contiguous().transpose(1, 2), *rest), flat)
    assert torch.equal(attend(x[0], *rest), attend(x[:1], *rest)[0])


def test_tables_of_another_length_are_refused(draw: Draw, device: str) -> None:
    """As by plain torch; the second trajectory would take its angles from past the first's end."""
    x, *weights = problem(draw, 2, 9, 64)
    with pytest.raises(RuntimeError, match="size of tensor"):
        attend(x, *weights, EPS, 2, table(18, 32, device))


def test_autocast_changes_nothing(
    draw: Draw, close: Close, device: str, dtype: torch.dtype
) -> None:
    """Weights are cast to the precision of x, whatever autocast would choose."""
    x, *weights = problem(draw, 2, 9, 64)
    leaves = [w.float().requires_grad_() for w in weights]
    arguments, slope = (*leaves, EPS, 2, table(9, 32, device)), draw(2, 9, 64)

    without = attend(x, *arguments)
    with torch.autocast(device, torch.float16):
        within = attend(x, *arguments)
    assert without.dtype == dtype
    assert torch.equal(within, without)
    slopes = (torch.autograd.grad(y, leaves, slope) for y in (without, within))
    assert all(close(a, b.double()) for a, b in zip(*slopes, strict=True))


def test_compiled_without_a_break(draw: Draw, close: Close, device: str) -> None:
    x, *weights = problem(draw, 1, 9, 64)
    rest = (*weights, EPS, 2, table(9, 32, device))
    compiled = torch.compile(lambda x: attend(x, *rest), backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(x), attend(x, *rest))
    leaf, slope = x.clone().requires_grad_(), draw(1, 9, 64)
    (found,) = torch.autograd.grad(compiled(leaf), leaf, slope)
    (truth,) = torch.autograd.grad(attend(leaf, *rest), leaf, slope)
    assert close(found, truth.double())


def test_operators_keep_their_promises(draw: Draw, device: str) -> None:
    from tiltrm.kernels import ops

    checks = ("test_schema", "test_autograd_registration", "test_faketensor")
    angles = table(9, 32, device)
    qkv = draw(2 * 9, 3 * 64)
    slopes = tuple(draw(2 * 9, 64) for _ in range(3))
    torch.library.opcheck(ops.rotate_, (qkv.clone(), *angles), test_utils=checks[::2])
    torch.library.opcheck(ops.split_heads, (qkv.requires_grad_(), *angles), test_utils=checks)
    torch.library.opcheck(ops.split_heads_backward, (*slopes, *angles), test_utils=checks[::2])
    rows = draw(18, 64).requires_grad_(), draw(18, 64).requires_grad_()
    torch.library.opcheck(ops.residual_norm, (*rows, EPS), test_utils=checks)
