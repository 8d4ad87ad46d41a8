"""Channel mixing: the gated product in one kernel, the second product by the vendor's library,
then residual, norm and (when exploring) keyed noise in one pass over the rows.

The gate's inputs are never written: of the hidden side only silu(gate) * up reaches memory.
"""
# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def,untyped-decorator"

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from tiltrm.kernels.common import (
    LAUNCHES,
    Launch,
    multiprocessors,
    paired_rows,
    sigmoid,
    unpair,
)
from tiltrm.kernels.noise import normals
from tiltrm.kernels.plain import Noise


@triton.jit
def _gated(
    x, gate_up, hidden, rows,
    D: tl.constexpr, H: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """silu(x gate) * (x up) for one tile; neighbours share their rows of x through the cache."""
    tile = tl.program_id(0)
    blocks: tl.constexpr = H // COLUMNS
    row = (tile // blocks * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    column = tile % blocks * COLUMNS
    depth = tl.arange(0, DEPTH)
    left = x + row * D + depth[None, :]
    right = gate_up + paired_rows(column, H, COLUMNS)[None, :] * D + depth[:, None]
    both = tl.zeros((ROWS, 2 * COLUMNS), tl.float32)
    for k in range(0, D, DEPTH):
        a = tl.load(left + k, mask=row < rows, other=0.0)
        both = tl.dot(a, tl.load(right + k), both)
    gate, up = unpair(both, ROWS, COLUMNS)
    out = (gate * sigmoid(gate, FAST) * up).to(hidden.dtype.element_ty)
    tl.store(hidden + row * H + column + tl.arange(0, COLUMNS)[None, :], out, mask=row < rows)


@triton.jit
def _gated_persistent(
    x, gate_up, hidden, rows,
    D: tl.constexpr, H: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """`_gated` with tensor descriptors; gate_up's rows are paired beforehand.

    One program per multiprocessor, its tiles in one flat loop, so that the next tile's loads run
    under this tile's gate.
    """
    blocks: tl.constexpr = H // COLUMNS
    tiles = tl.cdiv(rows, ROWS) * blocks
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        row, column = tile // blocks * ROWS, tile % blocks * COLUMNS
        both = tl.zeros((ROWS, 2 * COLUMNS), tl.float32)
        for k in range(0, D, DEPTH):
            both = tl.dot(x.load([row, k]), gate_up.load([2 * column, k]).T, both)
        gate, up = unpair(both, ROWS, COLUMNS)
        hidden.store([row, column], (gate * sigmoid(gate, FAST) * up).to(hidden.dtype))


@triton.jit(do_not_specialize=["site"])
def _norm(
    x, out, y, scale, keys, rows, eps, sigma, site,
    L: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr,
    NOISY: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """y = (x + out) / rms(x + out) + sigma xi, and 1 / rms; xi belongs to (key, site, element)."""
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    column = tl.arange(0, WIDE)[None, :]
    inside = (row < rows) & (column < D)
    wide = tl.load(x + row * D + column, mask=inside, other=0.0).to(tl.float32)
    wide += tl.load(out + row * D + column, mask=inside, other=0.0).to(tl.float32)
    inverse = tl.rsqrt(tl.sum(wide * wide, 1, keep_dims=True) / D + eps)
    tl.store(scale + row, inverse, mask=row < rows)
    wide *= inverse
    if NOISY:
        key = tl.load(keys + row // L, mask=row < rows, other=0)
        counter = (row % L * (D // 4)).to(tl.int32) + tl.arange(0, WIDE // 4)[None, :]
        wide += sigma * normals(key, site, counter, FAST)
    tl.store(y + row * D + column, wide.to(y.dtype.element_ty), mask=inside)


def paired(gate_up: Tensor) -> Tensor:
    """Rows of gate_up in the order of `paired_rows`, as a copy."""
    rows: Tensor = gate_up.unflatten(0, (2, -1, 8)).transpose(0, 1)
    return rows.reshape(gate_up.shape)


def gated(x: Tensor, gate_up: Tensor, launch: Launch | None = None) -> Tensor:
    """silu(x gate) * (x up): (row, channel) -> (row, hidden)."""
    launch = launch or LAUNCHES["gated"]
    (rows, width), hidden = x.shape, gate_up.shape[0] // 2
    out = torch.empty(rows, hidden, device=x.device, dtype=x.dtype)
    tiles = triton.cdiv(rows, launch.rows) * (hidden // launch.columns)
    sizes = (rows, width, hidden, launch.rows, launch.columns, launch.depth, launch.gate)
    options = {"num_warps": launch.warps, "num_stages": launch.stages}
    if launch.persistent:
        left = TensorDescriptor.from_tensor(x, [launch.rows, launch.depth])
        right = TensorDescriptor.from_tensor(paired(gate_up), [2 * launch.columns, launch.depth])
        store = TensorDescriptor.from_tensor(out, [launch.rows, launch.columns])
        grid = (min(tiles, launch.persistent * multiprocessors(x)),)
        _gated_persistent[grid](left, right, store, *sizes, **options)
    else:
        _gated[(tiles,)](x, gate_up, out, *sizes, **options)
    return out


def residual_norm(
    x: Tensor, out: Tensor, eps: float, noise: Noise | None = None, launch: Launch | None = None
) -> tuple[Tensor, Tensor]:
    """rms_norm(x + out) [+ sigma xi] and 1 / rms; rows of one trajectory lie together."""
    launch = launch or LAUNCHES["norm"]
    rows, width = x.shape
    y = torch.empty_like(x)
    scale = torch.empty(rows, device=x.device, dtype=torch.float32)
    keys, site, sigma = noise if noise is not None else (scale, 0, 0.0)
    _norm[(triton.cdiv(rows, launch.rows),)](
        x, out, y, scale, keys, rows, eps, sigma, site,
        rows // keys.shape[0], width, launch.rows, triton.next_power_of_2(width),
        noise is not None, launch.gate, num_warps=launch.warps,
    )  # fmt: skip
    return y, scale


def forward(
    x: Tensor, gate_up: Tensor, down: Tensor, eps: float, noise: Noise | None = None
) -> tuple[Tensor, Tensor]:
    """The mixed channels (row, channel) and 1 / rms (row,), float32."""
    return residual_norm(x, gated(x, gate_up) @ down.T, eps, noise)
