"""The slopes of channel mixing: the gate's inputs are recomputed, the large products are the
vendor library's, and what lies between them is fused.
"""
# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def,untyped-decorator"

import torch
import triton
import triton.language as tl
from torch import Tensor

from tiltrm.kernels.common import LAUNCHES, Launch, gate_backward, paired_rows, unpair


@triton.jit
def _norm(dy, y, scale, dz, rows, D: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr):
    """dz = (dy - y mean(dy y)) / rms, row by row."""
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    column = tl.arange(0, WIDE)[None, :]
    inside = (row < rows) & (column < D)
    slope = tl.load(dy + row * D + column, mask=inside, other=0.0).to(tl.float32)
    value = tl.load(y + row * D + column, mask=inside, other=0.0).to(tl.float32)
    along = tl.sum(slope * value, 1, keep_dims=True) / D
    inverse = tl.load(scale + row, mask=row < rows, other=0.0)
    out = inverse * (slope - value * along)
    tl.store(dz + row * D + column, out.to(dz.dtype.element_ty), mask=inside)


@triton.jit
def _gate(both, slope, H: tl.constexpr, COLUMNS: tl.constexpr, FAST: tl.constexpr):
    """In place: (gate | up) becomes its slope, the slope of hidden becomes hidden."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < H
    left, middle = both + row * (2 * H) + column, slope + row * H + column
    gate = tl.load(left, mask=inside).to(tl.float32)
    up = tl.load(left + H, mask=inside).to(tl.float32)
    dhidden = tl.load(middle, mask=inside).to(tl.float32)
    hidden, dgate, dup = gate_backward(gate, up, dhidden, FAST)
    tl.store(middle, hidden.to(slope.dtype.element_ty), mask=inside)
    tl.store(left, dgate.to(both.dtype.element_ty), mask=inside)
    tl.store(left + H, dup.to(both.dtype.element_ty), mask=inside)


@triton.jit
def _fused(
    x, gate_up, down, dz, both, hidden, rows,
    D: tl.constexpr, H: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """Both products and the gate for one tile: hidden and the slope of (gate | up)."""
    tile = tl.program_id(0)
    blocks: tl.constexpr = H // COLUMNS
    row = (tile // blocks * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    first = tile % blocks * COLUMNS
    column = first + tl.arange(0, COLUMNS)[None, :]
    depth = tl.arange(0, DEPTH)
    pairs = gate_up + paired_rows(first, H, COLUMNS)[None, :] * D + depth[:, None]
    slope = tl.zeros((ROWS, COLUMNS), tl.float32)
    for k in range(0, D, DEPTH):
        a = tl.load(dz + row * D + k + depth[None, :], mask=row < rows, other=0.0)
        slope = tl.dot(a, tl.load(down + (k + depth)[:, None] * H + column), slope)
    product = tl.zeros((ROWS, 2 * COLUMNS), tl.float32)
    for k in range(0, D, DEPTH):
        a = tl.load(x + row * D + k + depth[None, :], mask=row < rows, other=0.0)
        product = tl.dot(a, tl.load(pairs + k), product)
    gate, up = unpair(product, ROWS, COLUMNS)
    value, dgate, dup = gate_backward(gate, up, slope, FAST)
    tl.store(hidden + row * H + column, value.to(hidden.dtype.element_ty), mask=row < rows)
    left = both + row * (2 * H) + column
    tl.store(left, dgate.to(both.dtype.element_ty), mask=row < rows)
    tl.store(left + H, dup.to(both.dtype.element_ty), mask=row < rows)


def norm_backward(dy: Tensor, y: Tensor, scale: Tensor) -> Tensor:
    """The slope of x in y = x / rms(x), given y and 1 / rms."""
    launch = LAUNCHES["norm"]
    rows, width = y.shape
    dz = torch.empty_like(y)
    _norm[(triton.cdiv(rows, launch.rows),)](
        dy, y, scale, dz, rows, width, launch.rows, triton.next_power_of_2(width),
        num_warps=launch.warps,
    )  # fmt: skip
    return dz


def gate_backward_(both: Tensor, slope: Tensor) -> None:
    """Put the slope of (gate | up) into both, and hidden into slope."""
    rows, hidden = slope.shape
    columns = 512
    _gate[(rows, triton.cdiv(hidden, columns))](
        both, slope, hidden, columns, LAUNCHES["gated backward"].gate, num_warps=4
    )


def hidden_backward(
    x: Tensor, gate_up: Tensor, down: Tensor, dz: Tensor, launch: Launch | None = None
) -> tuple[Tensor, Tensor]:
    """The slope of (gate | up), and hidden."""
    launch = launch or LAUNCHES["gated backward"]
    if launch.library:
        both, slope = x @ gate_up.T, dz @ down
        gate_backward_(both, slope)
        return both, slope
    (rows, width), hidden = x.shape, down.shape[1]
    both = torch.empty(rows, 2 * hidden, device=x.device, dtype=x.dtype)
    slope = torch.empty(rows, hidden, device=x.device, dtype=x.dtype)
    tiles = triton.cdiv(rows, launch.rows) * (hidden // launch.columns)
    _fused[(tiles,)](
        x, gate_up, down, dz, both, slope, rows, width, hidden,
        launch.rows, launch.columns, launch.depth, launch.gate,
        num_warps=launch.warps, num_stages=launch.stages,
    )  # fmt: skip
    return both, slope


def backward(
    dy: Tensor, x: Tensor, gate_up: Tensor, down: Tensor, y: Tensor, scale: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The slopes of x, gate_up and down, given what `channels.forward` returned."""
    dz = norm_backward(dy, y, scale)
    both, hidden = hidden_backward(x, gate_up, down, dz)
    dgate_up, ddown = both.T @ x, dz.T @ hidden
    return dz.addmm_(both, gate_up), dgate_up, ddown
