"""Channel mixing with products in e4m3, forward only: `channels` with 8-bit operands.

The gated product writes its result in e4m3. The second product is the vendor's library's, and the
scales of its outputs are applied in the pass that adds the residual and normalises.
"""
# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def,untyped-decorator"

import functools

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from tiltrm.kernels.launch import LAUNCHES, Launch, multiprocessors, silu_of_half, unpair
from tiltrm.kernels.quantised import ROW_SCALE, QuantisedMLP, empty


@triton.jit
def _gated(
    x, gate_up, hidden, half_gate, up_scale, rows,
    D: tl.constexpr, H: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """silu(x gate) * (x up), by tensor descriptors; gate_up's rows are paired beforehand."""
    blocks: tl.constexpr = H // COLUMNS
    tiles = tl.cdiv(rows, ROWS) * blocks
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        row, column = tile // blocks * ROWS, tile % blocks * COLUMNS
        both = tl.zeros((ROWS, 2 * COLUMNS), tl.float32)
        for k in range(0, D, DEPTH):
            both = tl.dot(x.load([row, k]), gate_up.load([2 * column, k]).T, both)
        gate, up = unpair(both, ROWS, COLUMNS)
        out = silu_of_half(gate * half_gate, FAST) * (up * up_scale)
        hidden.store([row, column], out.to(hidden.dtype))


@triton.jit
def _norm(
    x, out, column_scale, y, y_eight, rows, eps,
    D: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr, OUTPUT: tl.constexpr,
    SCALED: tl.constexpr, EIGHT: tl.constexpr,
):  # fmt: skip
    """y = z / rms(z), z = x + column_scale out, row by row; and y in e4m3 if it is wanted."""
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    column = tl.arange(0, WIDE)[None, :]
    inside = (row < rows) & (column < D)
    change = tl.load(out + row * D + column, mask=inside, other=0.0).to(tl.float32)
    if SCALED:
        change *= tl.load(column_scale + column, mask=column < D, other=0.0)
    wide = tl.load(x + row * D + column, mask=inside, other=0.0).to(tl.float32) + change
    wide *= tl.rsqrt(tl.sum(wide * wide, 1, keep_dims=True) / D + eps)
    tl.store(y + row * D + column, wide.to(y.dtype.element_ty), mask=inside)
    if EIGHT:
        eight = (wide * OUTPUT).to(y_eight.dtype.element_ty)
        tl.store(y_eight + row * D + column, eight, mask=inside)


def gated(x: Tensor, mlp: QuantisedMLP, launch: Launch | None = None) -> Tensor:
    """silu(gate x) * up x, all in e4m3: (row, channel) -> (row, hidden)."""
    launch = launch or LAUNCHES["gated eight bit"]
    (rows, width), hidden = x.shape, mlp.down.shape[1]
    out = empty((rows, hidden), x.device)
    tiles = triton.cdiv(rows, launch.rows) * (hidden // launch.columns)
    depth = min(launch.depth, width)
    left = TensorDescriptor.from_tensor(x, [launch.rows, depth])
    right = TensorDescriptor.from_tensor(mlp.gate_up, [2 * launch.columns, depth])
    store = TensorDescriptor.from_tensor(out, [launch.rows, launch.columns])
    _gated[(min(tiles, launch.persistent * multiprocessors(x)),)](
        left, right, store, mlp.half_gate, mlp.up_scale, rows, width, hidden,
        launch.rows, launch.columns, depth, launch.gate,
        num_warps=launch.warps, num_stages=launch.stages,
    )  # fmt: skip
    return out


@functools.cache
def _one(device: torch.device) -> Tensor:
    return torch.ones((), device=device)


def product(left: Tensor, right: Tensor, dtype: torch.dtype) -> Tensor:
    """left @ right.T of matrices in e4m3, summed in float32; the CPU has no such product."""
    if not left.is_cuda:
        return (left.float() @ right.float().T).to(dtype)
    one = _one(left.device)
    return torch._scaled_mm(left, right.T, one, one, out_dtype=dtype, use_fast_accum=True)


def residual_norm(
    x: Tensor, out: Tensor, eps: float, column_scale: Tensor | None = None, *,
    eight_bit: bool = False, launch: Launch | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """rms_norm(x + column_scale out), row by row; with `eight_bit` also in e4m3 x ROW_SCALE."""
    launch = launch or LAUNCHES["norm"]
    rows, width = x.shape
    y = torch.empty_like(x)
    y_eight = empty(x.shape, x.device) if eight_bit else y
    scaled = column_scale is not None
    _norm[(triton.cdiv(rows, launch.rows),)](
        x, out, column_scale if scaled else x, y, y_eight, rows, eps, width, launch.rows,
        triton.next_power_of_2(width), ROW_SCALE, scaled, eight_bit, num_warps=launch.warps,
    )  # fmt: skip
    return y, y_eight


def forward(x: Tensor, x_eight: Tensor, mlp: QuantisedMLP, eps: float) -> Tensor:
    """The mixed channels (row, channel) from the rows in full precision and in e4m3."""
    out = product(gated(x_eight, mlp), mlp.down, x.dtype)
    return residual_norm(x, out, eps, mlp.down_scale)[0]
