"""The sum that a refinement begins with, in one pass: torch takes two, and is slow to broadcast."""
# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def,untyped-decorator"

import torch
import triton
import triton.language as tl
from torch import Tensor

from tiltrm.kernels.common import LAUNCHES, Launch


@triton.jit
def _sum(a, b, inputs, out, elements, sharing, COLUMNS: tl.constexpr):
    """out = a + (b + inputs), rounded twice as torch does; `sharing` rows have the same inputs."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < elements
    place = row * elements + column
    inner = tl.load(b + place, mask=inside, other=0.0).to(tl.float32)
    shared = inputs + row // sharing * elements + column
    inner += tl.load(shared, mask=inside, other=0.0).to(tl.float32)
    rounded = inner.to(out.dtype.element_ty).to(tl.float32)
    rounded += tl.load(a + place, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + place, rounded.to(out.dtype.element_ty), mask=inside)


def add_inputs(a: Tensor, b: Tensor, inputs: Tensor, launch: Launch | None = None) -> Tensor:
    """a + (b + inputs): a and b (puzzle, particle, ...), inputs the same or with one particle."""
    launch = launch or LAUNCHES["sum"]
    rows, elements = a.shape[0] * a.shape[1], a[0, 0].numel()
    out = torch.empty_like(a)
    grid = (rows, triton.cdiv(elements, launch.columns))
    sharing = a.shape[1] // inputs.shape[1]
    _sum[grid](a, b, inputs, out, elements, sharing, launch.columns, num_warps=launch.warps)
    return out
