"""Channel mixing: the gated product in one kernel, the second product by the vendor's library, then
residual and norm in one pass over the rows; and its slopes.

The gate's inputs are never written: of the hidden side only silu(gate) * up reaches memory. The
backward pass computes them again, and fuses the steps between the library's large products.
"""
# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def,untyped-decorator"

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from tiltrm.kernels.launch import (
    LAUNCHES,
    Launch,
    gate_backward,
    multiprocessors,
    paired,
    paired_rows,
    silu_of_half,
    unpair,
)


@triton.jit
def _gated(
    x, gate_up, hidden, rows,
    D: tl.constexpr, H: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """silu(x gate) * (x up), by tensor descriptors; gate_up's rows are halved and paired before.

    Each program takes many tiles in one flat loop, so that the next tile's loads run during this
    tile's gate.
    """
    blocks: tl.constexpr = H // COLUMNS
    tiles = tl.cdiv(rows, ROWS) * blocks
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        row, column = tile // blocks * ROWS, tile % blocks * COLUMNS
        both = tl.zeros((ROWS, 2 * COLUMNS), tl.float32)
        for k in range(0, D, DEPTH):
            both = tl.dot(x.load([row, k]), gate_up.load([2 * column, k]).T, both)
        gate, up = unpair(both, ROWS, COLUMNS)
        hidden.store([row, column], (silu_of_half(gate, FAST) * up).to(hidden.dtype))


@triton.jit
def _norm(x, out, y, scale, rows, eps, D: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr):
    """y = (x + out) / rms(x + out), row by row, and 1 / rms."""
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    column = tl.arange(0, WIDE)[None, :]
    inside = (row < rows) & (column < D)
    wide = tl.load(x + row * D + column, mask=inside, other=0.0).to(tl.float32)
    wide += tl.load(out + row * D + column, mask=inside, other=0.0).to(tl.float32)
    inverse = tl.rsqrt(tl.sum(wide * wide, 1, keep_dims=True) / D + eps)
    tl.store(scale + row, inverse, mask=row < rows)
    tl.store(y + row * D + column, (wide * inverse).to(y.dtype.element_ty), mask=inside)


@triton.jit
def _norm_backward(dy, y, scale, dz, rows, D: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr):
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
def _hidden_backward(
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


def gated(x: Tensor, gate_up: Tensor, launch: Launch | None = None) -> Tensor:
    """silu(x gate) * (x up): (row, channel) -> (row, hidden)."""
    launch = launch or LAUNCHES["gated"]
    (rows, width), hidden = x.shape, gate_up.shape[0] // 2
    out = torch.empty(rows, hidden, device=x.device, dtype=x.dtype)
    tiles = triton.cdiv(rows, launch.rows) * (hidden // launch.columns)
    left = TensorDescriptor.from_tensor(x, [launch.rows, launch.depth])
    right = TensorDescriptor.from_tensor(
        paired(gate_up, gate=0.5), [2 * launch.columns, launch.depth]
    )
    store = TensorDescriptor.from_tensor(out, [launch.rows, launch.columns])
    _gated[(min(tiles, launch.persistent * multiprocessors(x)),)](
        left, right, store, rows, width, hidden,
        launch.rows, launch.columns, launch.depth, launch.gate,
        num_warps=launch.warps, num_stages=launch.stages,
    )  # fmt: skip
    return out


def residual_norm(
    x: Tensor, out: Tensor, eps: float, launch: Launch | None = None
) -> tuple[Tensor, Tensor]:
    """rms_norm(x + out) and 1 / rms, row by row."""
    launch = launch or LAUNCHES["norm"]
    rows, width = x.shape
    y = torch.empty_like(x)
    scale = torch.empty(rows, device=x.device, dtype=torch.float32)
    _norm[(triton.cdiv(rows, launch.rows),)](
        x, out, y, scale, rows, eps, width, launch.rows, triton.next_power_of_2(width),
        num_warps=launch.warps,
    )  # fmt: skip
    return y, scale


def forward(x: Tensor, gate_up: Tensor, down: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """The mixed channels (row, channel) and 1 / rms (row,), float32."""
    return residual_norm(x, gated(x, gate_up) @ down.T, eps)


def norm_backward(dy: Tensor, y: Tensor, scale: Tensor) -> Tensor:
    """The slope of x in y = x / rms(x), given y and 1 / rms."""
    launch = LAUNCHES["norm"]
    rows, width = y.shape
    dz = torch.empty_like(y)
    _norm_backward[(triton.cdiv(rows, launch.rows),)](
        dy, y, scale, dz, rows, width, launch.rows, triton.next_power_of_2(width),
        num_warps=launch.warps,
    )  # fmt: skip
    return dz


def hidden_backward(
    x: Tensor, gate_up: Tensor, down: Tensor, dz: Tensor, launch: Launch | None = None
) -> tuple[Tensor, Tensor]:
    """The slope of (gate | up), and hidden."""
    launch = launch or LAUNCHES["gated backward"]
    (rows, width), hidden = x.shape, down.shape[1]
    both = torch.empty(rows, 2 * hidden, device=x.device, dtype=x.dtype)
    slope = torch.empty(rows, hidden, device=x.device, dtype=x.dtype)
    tiles = triton.cdiv(rows, launch.rows) * (hidden // launch.columns)
    _hidden_backward[(tiles,)](
        x, gate_up, down, dz, both, slope, rows, width, hidden,
        launch.rows, launch.columns, launch.depth, launch.gate,
        num_warps=launch.warps, num_stages=launch.stages,
    )  # fmt: skip
    return both, slope


def backward(
    dy: Tensor, x: Tensor, gate_up: Tensor, down: Tensor, y: Tensor, scale: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The slopes of x, gate_up and down, from the outputs of `forward`."""
    dz = norm_backward(dy, y, scale)
    both, hidden = hidden_backward(x, gate_up, down, dz)
    dgate_up, ddown = both.T @ x, dz.T @ hidden
    return dz.addmm_(both, gate_up), dgate_up, ddown
