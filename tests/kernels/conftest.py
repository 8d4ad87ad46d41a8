"""Fixtures of the kernels. Without a GPU, Triton's interpreter runs them: see tests/conftest.py."""

from collections.abc import Callable

import numpy
import pytest
import torch
from torch import Tensor


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The interpreter leans on a conversion that numpy calls deprecated."""
    quiet = pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning")
    for item in items:
        if "kernels" in item.path.parts:
            item.add_marker(quiet)


@pytest.fixture
def device() -> str:
    """Where the kernels can run; skips, saying so, where they cannot."""
    from tiltrm.kernels import available

    if not available():
        pytest.skip("the fused kernels need Triton (and a Hopper GPU, or its interpreter)")
    newer = tuple(int(part) for part in numpy.__version__.split(".")[:2]) >= (2, 4)
    if newer and not torch.cuda.is_available():
        pytest.skip("Triton's interpreter needs numpy < 2.4")
    return "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture
def dtype(device: str) -> torch.dtype:
    """bfloat16 where it counts; the interpreter's bfloat16 products are wrong, so float32 there."""
    return torch.bfloat16 if device == "cuda" else torch.float32


@pytest.fixture
def close(dtype: torch.dtype) -> Callable[[Tensor, Tensor], bool]:
    """|out - truth| / |truth| is rounding and nothing else. NaN is never close."""
    bound = 1e-2 if dtype == torch.bfloat16 else 1e-5

    def within(out: Tensor, truth: Tensor) -> bool:
        return bool((out.double() - truth).norm() <= bound * truth.norm())

    return within


@pytest.fixture
def draw(device: str, dtype: torch.dtype) -> Callable[..., Tensor]:
    """Normal numbers of a shape, divided by a scale, with a seed of their own each time."""
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int, scale: float = 1.0) -> Tensor:
        return (torch.randn(*shape, generator=generator) / scale).to(device, dtype)

    return normal
