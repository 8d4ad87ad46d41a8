"""Token mixing on the kernels is the plain function: values, slopes, every cut of the positions."""

import itertools
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tiltrm.kernels import mix_tokens, reference

Draw = Callable[..., Tensor]
Close = Callable[[Tensor, Tensor], bool]
EPS = 1e-5


def problem(draw: Draw, batch: int, positions: int, width: int, hidden: int) -> list[Tensor]:
    return [
        draw(batch, positions, width),
        draw(2 * hidden, positions, scale=positions**0.5),
        draw(positions, hidden, scale=hidden**0.5),
    ]


@pytest.mark.parametrize(
    ("batch", "positions", "width", "hidden"),
    [
        (2, 88, 128, 256),
        (1, 81, 64, 128),
        (1, 97, 192, 256),
        (1, 65, 64, 128),
        (1, 112, 64, 128),
        (1, 128, 64, 512),
    ],
)
def test_kernel_equals_plain(
    draw: Draw, close: Close, batch: int, positions: int, width: int, hidden: int
) -> None:
    inputs = problem(draw, batch, positions, width, hidden)
    truth = reference.mix_tokens(*(t.double() for t in inputs), EPS)
    assert close(mix_tokens(*inputs, EPS), truth)


@pytest.mark.parametrize("smallest", [16, 32])
def test_cuts_are_powers_of_two_and_hold_all_positions(device: str, smallest: int) -> None:
    from tiltrm.kernels.launch import cuts_of

    for positions in range(65, 129):
        cuts = cuts_of(positions, smallest)
        sizes = [end - first for first, end in itertools.pairwise(cuts)]
        assert cuts[0] == 0
        assert all(size >= smallest and size & (size - 1) == 0 for size in sizes)
        assert cuts[-2] < positions <= cuts[-1], (positions, cuts)


@pytest.mark.parametrize("positions", [97, 112])
def test_positions_can_be_cut_in_three(
    draw: Draw, close: Close, positions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tiltrm.kernels import launch

    monkeypatch.setattr(launch, "RESTS", [(16,), (32,), (32, 16), (64,)])
    assert launch.cuts_of(positions) == (0, 64, 96, 112)
    inputs = problem(draw, 1, positions, 64, 128)
    wide = [t.double().requires_grad_() for t in inputs]
    truth = reference.mix_tokens(*wide, EPS)
    leaves = [t.requires_grad_() for t in inputs]
    found = mix_tokens(*leaves, EPS)
    assert close(found.detach(), truth.detach())
    slope = draw(1, positions, 64)
    expected = torch.autograd.grad(truth, wide, slope.double())
    for one, other in zip(torch.autograd.grad(found, leaves, slope), expected, strict=True):
        assert close(one, other)


def test_persistent_programs_share_out_every_tile(draw: Draw, close: Close) -> None:
    from tiltrm.kernels import tokens
    from tiltrm.kernels.launch import Launch

    inputs = problem(draw, 3, 88, 128, 128)
    y, scale = tokens.forward(*inputs, EPS, Launch(rows=64, columns=64, persistent=1))
    assert close(y, reference.mix_tokens(*(t.double() for t in inputs), EPS))
    assert close(scale, tokens.forward(*inputs, EPS)[1].double())


@pytest.mark.parametrize(
    ("positions", "width", "hidden"), [(88, 128, 128), (81, 64, 256), (97, 64, 256)]
)
def test_slopes_equal_plain(
    draw: Draw, close: Close, positions: int, width: int, hidden: int
) -> None:
    inputs = problem(draw, 2, positions, width, hidden)
    slope = draw(2, positions, width)
    wide = [t.double().requires_grad_() for t in inputs]
    truth = torch.autograd.grad(reference.mix_tokens(*wide, EPS), wide, slope.double())
    leaves = [t.requires_grad_() for t in inputs]
    found = torch.autograd.grad(mix_tokens(*leaves, EPS), leaves, slope)
    assert [t.dtype for t in found] == [t.dtype for t in inputs]
    assert all(close(a, b) for a, b in zip(found, truth, strict=True))


def test_leading_sizes_and_turned_memory_do_not_matter(draw: Draw) -> None:
    x, gate_up, down = problem(draw, 4, 88, 64, 128)
    flat = mix_tokens(x, gate_up, down, EPS)
    assert torch.equal(mix_tokens(x.view(2, 2, 88, 64), gate_up, down, EPS).view_as(flat), flat)
    turned = x.transpose(1, 2).contiguous().transpose(1, 2)
    assert torch.equal(mix_tokens(turned, gate_up, down, EPS), flat)


def test_a_row_does_not_depend_on_its_batch(draw: Draw) -> None:
    x, gate_up, down = problem(draw, 3, 88, 128, 128)
    assert torch.equal(
        mix_tokens(x, gate_up, down, EPS)[1:2], mix_tokens(x[1:2], gate_up, down, EPS)
    )


def test_operator_keeps_its_promises(draw: Draw) -> None:
    from tiltrm.kernels import ops

    inputs = [t.requires_grad_() for t in problem(draw, 1, 88, 64, 128)]
    checks = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(ops.mix_tokens, (*inputs, EPS), test_utils=checks)
