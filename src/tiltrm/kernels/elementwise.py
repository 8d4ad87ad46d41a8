"""Elementwise passes: exploration noise, and the sum that a refinement begins with.

`perturbed` adds the noise of `tiltrm.explore.keys`: a value depends on its key and its place in the
row, and on nothing else. `add_inputs` is one pass where torch takes two and broadcasts slowly.
"""
# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def,untyped-decorator"

import torch
import triton
import triton.language as tl
from torch import Tensor

from tiltrm.kernels.launch import LAUNCHES, Launch


@triton.jit
def _polar(uniform, angle, FAST: tl.constexpr):
    """A number in (0, 1] and an angle -> two independent normals."""
    radius = tl.sqrt(-2.0 * tl.log(uniform))
    if FAST:
        cos = tl.inline_asm_elementwise(
            "cos.approx.f32 $0, $1;", "=f,f", [angle], tl.float32, True, 1
        )
        sin = tl.inline_asm_elementwise(
            "sin.approx.f32 $0, $1;", "=f,f", [angle], tl.float32, True, 1
        )
    else:
        cos = tl.cos(angle)
        sin = tl.sin(angle)
    return radius * cos, radius * sin


@triton.jit
def _mix(x):
    """`tiltrm.explore.keys.mix`: a logical shift is an arithmetic one with a mask."""
    x = (x ^ ((x >> 30) & 0x3FFFFFFFF)) * -0x40A7B892E31B1A47
    x = (x ^ ((x >> 27) & 0x1FFFFFFFFF)) * -0x6B2FB644ECCEEE15
    return x ^ ((x >> 31) & 0x1FFFFFFFF)


@triton.jit
def _perturb(
    x, y, keys, scales, counters, elements, pairs, COLUMNS: tl.constexpr, FAST: tl.constexpr
):
    """y = x + scale xi: pair i of a row's normals belongs to its elements i and pairs + i."""
    row = tl.program_id(0)
    pair = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    counter = tl.load(counters + pair, mask=pair < pairs, other=0)
    bits = _mix(tl.load(keys + row) ^ counter)
    uniform = (
        ((bits >> 33) & 0x7FFFFFFF).to(tl.int32).to(tl.float32) + 1.0
    ) * 4.656612873077393e-10
    angle = bits.to(tl.uint32).to(tl.float32) * 1.4629180792671596e-09
    left, right = _polar(uniform, angle, FAST)
    scale = tl.load(scales + row)
    first = row.to(tl.int64) * elements + pair
    value = tl.load(x + first, mask=pair < pairs, other=0.0).to(tl.float32) + scale * left
    tl.store(y + first, value.to(y.dtype.element_ty), mask=pair < pairs)
    second, inside = first + pairs, pair < elements - pairs
    value = tl.load(x + second, mask=inside, other=0.0).to(tl.float32) + scale * right
    tl.store(y + second, value.to(y.dtype.element_ty), mask=inside)


def perturbed(
    x: Tensor, keys: Tensor, scales: Tensor, counters: Tensor, launch: Launch | None = None
) -> Tensor:
    """x + scales * box_muller(keys, counters) of `tiltrm.explore.keys`: (trajectory, element)."""
    launch = launch or LAUNCHES["noise"]
    x = x.contiguous()
    rows, elements = x.shape
    y = torch.empty_like(x)
    grid = (rows, triton.cdiv(len(counters), launch.columns))
    _perturb[grid](
        x, y, keys, scales, counters, elements, len(counters), launch.columns, launch.gate,
        num_warps=launch.warps,
    )  # fmt: skip
    return y


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
