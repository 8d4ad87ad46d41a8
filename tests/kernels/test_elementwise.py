"""Elementwise kernels: the sum of state and inputs, bit for bit, and the explorer's noise."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tiltrm.kernels import fuse, unfuse
from tiltrm.kernels.dispatch import add_inputs
from tiltrm.model.base import State
from tiltrm.model.trm import TRM, Network, TRMConfig


@pytest.mark.parametrize("particles", [1, 3])
def test_equals_two_sums(draw: Callable[..., Tensor], particles: int) -> None:
    """In float16, which rounds in the interpreter too."""
    shapes = (2, 3, 9, 64), (2, 3, 9, 64), (2, particles, 9, 64)
    a, b, inputs = (draw(*shape).half() for shape in shapes)
    assert torch.equal(add_inputs(a, b, inputs), a + (b + inputs))


@pytest.mark.parametrize("shape", [(9, 64), (2, 9, 64), (1, 3, 9, 64), (2, 1, 1, 64)])
def test_other_shapes_take_the_plain_path(
    draw: Callable[..., Tensor], shape: tuple[int, ...]
) -> None:
    a, b, inputs = draw(2, 3, 9, 64), draw(2, 3, 9, 64), draw(*shape)
    if shape == (2, 9, 64):
        inputs = inputs[:, None].expand(2, 3, 9, 64)  # no memory of its own
    assert torch.equal(add_inputs(a, b, inputs), a + (b + inputs))


def test_slopes(draw: Callable[..., Tensor]) -> None:
    a, b, inputs = (draw(2, n, 9, 64).requires_grad_() for n in (3, 3, 1))
    slopes = torch.autograd.grad(add_inputs(a, b, inputs).sum(), [a, b, inputs])
    assert [float(slope.flatten()[0]) for slope in slopes] == [1.0, 1.0, 3.0]


def test_a_fused_model_refines_as_a_plain_one(
    device: str, dtype: torch.dtype, close: Callable[..., bool]
) -> None:
    torch.manual_seed(0)
    config = TRMConfig(cells=16, vocabulary=6, width=64, heads=2, prefix=0)
    model = TRM(config).to(device, dtype)
    with torch.inference_mode():
        inputs = model.embed(torch.randint(0, 6, (2, 16), device=device))[:, None]
        state = State(*torch.randn(2, 2, 3, 16, 64, device=device).to(dtype))
        plain = model.refine(inputs, state)
        assert close(fuse(model).refine(inputs, state), plain.double())
        assert type(model.network) is not Network
        assert type(unfuse(model).network) is Network


@pytest.mark.parametrize("elements", [2 * 2048, 81 * 64, 4099])
def test_noise_equals_that_of_the_explorer(
    device: str, dtype: torch.dtype, draw: Callable[..., Tensor], close: Callable[..., bool],
    elements: int,
) -> None:  # fmt: skip
    """One pass gives what `explore.keys` gives in plain torch, for odd lengths too."""
    from tiltrm.explore.keys import normals, pair_counters
    from tiltrm.kernels.elementwise import perturbed

    keys = torch.tensor([3, 2**33 + 3, -1], device=device)
    scales = torch.tensor([0.5, 0.0, 1.0], device=device)[:, None]
    x = draw(3, elements)
    truth = x.double() + scales * normals(keys, elements).double()
    found = perturbed(x, keys, scales, pair_counters(elements, x.device))
    assert close(found, truth)
    assert torch.equal(found[1], x[1])
