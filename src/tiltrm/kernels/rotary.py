"""Rotary positions in one pass over the product that holds query, key and value.

The product is (row, 3 x width), its rows the positions of one trajectory after another. A rotation
by -sin undoes one by sin, so one kernel serves values and slopes.
"""
# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def,untyped-decorator"

import torch
import triton
import triton.language as tl
from torch import Tensor

from tiltrm.kernels.launch import Launch

LAUNCH = Launch(rows=4, columns=0, warps=4)  # 16 bytes a thread and load at a width of 512

Three = tuple[Tensor, Tensor, Tensor]


@triton.jit
def _load(x, inside, HALF: tl.constexpr):
    """Both members of the pairs (i, i + HALF) at x."""
    return tl.load(x, mask=inside, other=0.0), tl.load(x + HALF, mask=inside, other=0.0)


@triton.jit
def _store_rotated(out, left, right, cos, sin, inside, HALF: tl.constexpr):
    left, right = left.to(tl.float32), right.to(tl.float32)
    tl.store(out, (left * cos - right * sin).to(out.dtype.element_ty), mask=inside)
    tl.store(out + HALF, (right * cos + left * sin).to(out.dtype.element_ty), mask=inside)


@triton.jit
def _rotate(
    q, k, v, q_out, k_out, v_out, cos, sin, rows, positions, stride, stride_out,
    PAIRS: tl.constexpr, HALF: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr,
    BACK: tl.constexpr, VALUE: tl.constexpr,
):  # fmt: skip
    """Rotate some rows of q and k by the angles of their positions, and copy v if VALUE."""
    number = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None]  # the remainder in 32 bits
    row = number.to(tl.int64)
    pair = tl.arange(0, WIDE)[None, :]
    inside = (row < rows) & (pair < PAIRS)
    angle = number % positions * (2 * HALF) + pair % HALF  # the tables repeat their halves
    c = tl.load(cos + angle, mask=inside, other=0.0).to(tl.float32)
    s = tl.load(sin + angle, mask=inside, other=0.0).to(tl.float32)
    if BACK:
        s = -s
    left = pair // HALF * (2 * HALF) + pair % HALF
    place, place_out = row * stride + left, row * stride_out + left
    q_left, q_right = _load(q + place, inside, HALF)  # every load goes out before the first store
    k_left, k_right = _load(k + place, inside, HALF)
    if VALUE:
        v_left, v_right = _load(v + place, inside, HALF)
        tl.store(v_out + place_out, v_left, mask=inside)
        tl.store(v_out + place_out + HALF, v_right, mask=inside)
    _store_rotated(q_out + place_out, q_left, q_right, c, s, inside, HALF)
    _store_rotated(k_out + place_out, k_left, k_right, c, s, inside, HALF)


def _launch(
    source: Three, target: Three, cos: Tensor, sin: Tensor, launch: Launch | None,
    *, back: bool = False, value: bool = True,
) -> None:  # fmt: skip
    """Each of the three is (row, width), and those of one side have one stride."""
    launch = launch or LAUNCH
    rows, width = source[0].shape
    positions, head_width = cos.shape
    _rotate[(triton.cdiv(rows, launch.rows),)](
        *source, *target, cos, sin, rows, positions, source[0].stride(0), target[0].stride(0),
        width // 2, head_width // 2, launch.rows, triton.next_power_of_2(width // 2), back, value,
        num_warps=launch.warps,
    )  # fmt: skip


def _thirds(qkv: Tensor) -> Three:
    query, key, value = qkv.chunk(3, dim=1)
    return query, key, value


def rotate_(qkv: Tensor, cos: Tensor, sin: Tensor, launch: Launch | None = None) -> None:
    """Rotate query and key in place."""
    _launch(_thirds(qkv), _thirds(qkv), cos, sin, launch, value=False)


def split(qkv: Tensor, cos: Tensor, sin: Tensor, launch: Launch | None = None) -> Three:
    """Query and key rotated, and the value, each (row, width) in memory of its own."""
    rows, width = qkv.shape[0], qkv.shape[1] // 3
    query, key, value = (qkv.new_empty((rows, width)) for _ in range(3))
    _launch(_thirds(qkv), (query, key, value), cos, sin, launch)
    return query, key, value


def split_backward(slopes: Three, cos: Tensor, sin: Tensor, launch: Launch | None = None) -> Tensor:
    """The slope of qkv from those of the outputs of `split`, all contiguous."""
    rows, width = slopes[0].shape
    dqkv = torch.empty(rows, 3 * width, device=cos.device, dtype=slopes[0].dtype)
    _launch(slopes, _thirds(dqkv), cos, sin, launch, back=True)
    return dqkv
