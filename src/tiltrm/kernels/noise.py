"""Keyed normal noise: a value depends on (key, site, element) and on nothing else.

`add`: Philox 4x32-10 with the key of the trajectory; the counter is (element // 4, site, 0, 0) and
its four words give the normals of four neighbours. `plain.normals` gives the same on any device.
`perturbed`: the noise of `tiltrm.explore.keys`, whose hash is cheap on a CPU too.
"""
# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def,untyped-decorator"

import torch
import triton
import triton.language as tl
from torch import Tensor

from tiltrm.kernels.common import LAUNCHES, Launch
from tiltrm.kernels.plain import Noise


@triton.jit
def _uniform(word):
    """A word to [0, 1), as Triton's own `uint_to_uniform_float`."""
    signed = word.to(tl.int32, bitcast=True)
    return tl.where(signed < 0, -signed - 1, signed) * 4.6566127342e-10


@triton.jit
def _pair(left, right, FAST: tl.constexpr):
    """Box-Muller: two words -> two independent normals."""
    uniform = tl.maximum(1.0e-7, _uniform(left))
    return _polar(uniform, 6.283185307179586 * _uniform(right), FAST)


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
def normals(key, site, counter, FAST: tl.constexpr):
    """Four normals per counter, side by side: (row, n) -> (row, 4 n)."""
    zero = counter * 0
    w0, w1, w2, w3 = tl.philox(key, counter, zero + site, zero, zero)
    n0, n1 = _pair(w0, w1, FAST)
    n2, n3 = _pair(w2, w3, FAST)
    four = tl.join(tl.join(n0, n2), tl.join(n1, n3))
    return four.reshape(counter.shape[0], 4 * counter.shape[1])


@triton.jit(do_not_specialize=["site"])
def _add(x, keys, elements, sigma, site, COLUMNS: tl.constexpr, FAST: tl.constexpr):
    row = tl.program_id(0)
    first = tl.program_id(1) * COLUMNS
    element = first + tl.arange(0, COLUMNS)[None, :]
    counter = first // 4 + tl.arange(0, COLUMNS // 4)[None, :]
    place = x + row.to(tl.int64) * elements + element
    value = tl.load(place, mask=element < elements, other=0.0).to(tl.float32)
    value += sigma * normals(tl.load(keys + row), site, counter, FAST)
    tl.store(place, value.to(x.dtype.element_ty), mask=element < elements)


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


def add(x: Tensor, noise: Noise, launch: Launch | None = None) -> None:
    """x += sigma xi in place; x is (trajectory, element), contiguous."""
    launch = launch or LAUNCHES["noise"]
    rows, elements = x.shape
    grid = (rows, triton.cdiv(elements, launch.columns))
    _add[grid](
        x, noise.keys, elements, noise.sigma, noise.site, launch.columns, launch.gate,
        num_warps=launch.warps,
    )  # fmt: skip
