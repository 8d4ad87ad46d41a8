"""Token mixing in one kernel: a tile of channels stays on chip from its load to its store.

Tiles are turned: rows are channels, columns are positions, so that the hidden activation is the
left operand of the second product and never leaves the registers.
"""
# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def,untyped-decorator"
# mypy: disable-error-code="assignment"

import torch
import triton
import triton.language as tl
from torch import Tensor

from tiltrm.kernels.common import (
    LAUNCHES,
    Launch,
    aligned,
    multiprocessors,
    paired_rows,
    rest_of,
    sigmoid,
    tile_rows,
    unpair,
)

RESIDENT = 150_000  # bytes of padded weights that leave room for two tiles in shared memory


@triton.jit
def load_turned(x, tile, L: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, REST: tl.constexpr):
    """The two cuts of a tile, (channel, position), zero past the last position."""
    blocks: tl.constexpr = D // ROWS
    base = x + tile // blocks * (L * D)
    channel = (tile % blocks) * ROWS + tl.arange(0, ROWS)[:, None]
    head = tl.arange(0, 64)[None, :]
    tail = 64 + tl.arange(0, REST)[None, :]
    left = tl.load(base + channel + head * D)
    right = tl.load(base + channel + tail * D, mask=tail < L, other=0.0)
    return left, right


@triton.jit
def store_turned(
    y, left, right, tile, L: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, REST: tl.constexpr
):
    """Store the two cuts of a tile where `load_turned` would find them."""
    blocks: tl.constexpr = D // ROWS
    base = y + tile // blocks * (L * D)
    channel = (tile % blocks) * ROWS + tl.arange(0, ROWS)[:, None]
    head = tl.arange(0, 64)[None, :]
    tail = 64 + tl.arange(0, REST)[None, :]
    tl.store(base + channel + head * D, left.to(y.dtype.element_ty))
    tl.store(base + channel + tail * D, right.to(y.dtype.element_ty), mask=tail < L)


@triton.jit
def load_gate_up(
    w, first, L: tl.constexpr, W: tl.constexpr, H: tl.constexpr, COLUMNS: tl.constexpr,
    REST: tl.constexpr,
):  # fmt: skip
    """Paired rows of gate_up, W apart, as right operands: (64 and REST, 2 x COLUMNS)."""
    row = paired_rows(first, H, COLUMNS)[None, :] * W
    head = tl.arange(0, 64)[:, None]
    tail = 64 + tl.arange(0, REST)[:, None]
    return tl.load(w + row + head), tl.load(w + row + tail, mask=tail < L, other=0.0)


@triton.jit
def load_down(
    w, first, L: tl.constexpr, H: tl.constexpr, COLUMNS: tl.constexpr, REST: tl.constexpr
):
    """Columns of down as right operands: (COLUMNS, 64) and (COLUMNS, REST)."""
    column = first + tl.arange(0, COLUMNS)[:, None]
    head = tl.arange(0, 64)[None, :]
    tail = 64 + tl.arange(0, REST)[None, :]
    return tl.load(w + head * H + column), tl.load(w + tail * H + column, mask=tail < L, other=0.0)


@triton.jit
def _chunk(x0, x1, g0, g1, d0, d1, out0, out1, FAST: tl.constexpr):
    """Add one chunk of hidden columns: out + (silu(x gate) * (x up)) down."""
    both = tl.dot(x1, g1, tl.dot(x0, g0))
    gate, up = unpair(both, x0.shape[0], d0.shape[0])
    hidden = (gate * sigmoid(gate, FAST) * up).to(x0.dtype)
    return tl.dot(hidden, d0, out0), tl.dot(hidden, d1, out1)


@triton.jit
def _finish(
    y, scale, out0, out1, tile, eps,
    L: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, REST: tl.constexpr,
):  # fmt: skip
    """Normalise over positions and store; the scale 1 / rms is kept for the backward pass."""
    square = tl.sum(out0 * out0, 1) + tl.sum(out1 * out1, 1)
    inverse = tl.rsqrt(square / L + eps)
    tl.store(scale + tile * ROWS + tl.arange(0, ROWS), inverse)
    store_turned(y, out0 * inverse[:, None], out1 * inverse[:, None], tile, L, D, ROWS, REST)


@triton.jit
def _forward(
    x, gate_up, down, y, scale, eps,
    L: tl.constexpr, W: tl.constexpr, D: tl.constexpr, H: tl.constexpr, REST: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, STAGES: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0)
    x0, x1 = load_turned(x, tile, L, D, ROWS, REST)
    out0, out1 = x0.to(tl.float32), x1.to(tl.float32)
    for first in tl.range(0, H, COLUMNS, num_stages=STAGES):
        g0, g1 = load_gate_up(gate_up, first, L, W, H, COLUMNS, REST)
        d0, d1 = load_down(down, first, L, H, COLUMNS, REST)
        out0, out1 = _chunk(x0, x1, g0, g1, d0, d1, out0, out1, FAST)
    _finish(y, scale, out0, out1, tile, eps, L, D, ROWS, REST)


@triton.jit
def _forward_persistent(
    x, gate_up, down, y, scale, eps, tiles,
    L: tl.constexpr, W: tl.constexpr, D: tl.constexpr, H: tl.constexpr, REST: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, STAGES: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """One program per multiprocessor; the weights are read once and kept in shared memory."""
    weights = ()
    for first in tl.static_range(0, H, COLUMNS):
        g0, g1 = load_gate_up(gate_up, first, L, W, H, COLUMNS, REST)
        d0, d1 = load_down(down, first, L, H, COLUMNS, REST)
        weights = weights + ((g0, g1, d0, d1),)  # noqa: RUF005 - Triton has no star here
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), num_stages=STAGES):
        x0, x1 = load_turned(x, tile, L, D, ROWS, REST)
        out0, out1 = x0.to(tl.float32), x1.to(tl.float32)
        for chunk in tl.static_range(H // COLUMNS):
            g0, g1, d0, d1 = weights[chunk]
            out0, out1 = _chunk(x0, x1, g0, g1, d0, d1, out0, out1, FAST)
        _finish(y, scale, out0, out1, tile, eps, L, D, ROWS, REST)


def forward(
    x: Tensor, gate_up: Tensor, down: Tensor, eps: float, launch: Launch | None = None
) -> tuple[Tensor, Tensor]:
    """The mixed tokens (batch, position, channel) and 1 / rms (batch, channel), float32."""
    launch = launch or LAUNCHES["tokens"]
    batch, positions, width = x.shape
    if launch.persistent and 6 * down.shape[1] * (64 + rest_of(positions)) > RESIDENT:
        launch = LAUNCHES["tokens wide"]
    rows = tile_rows(launch, width)
    tiles = batch * (width // rows)
    y = torch.empty_like(x)
    scale = torch.empty(batch, width, device=x.device, dtype=torch.float32)
    gate_up = aligned(gate_up)
    tensors = (x, gate_up, down, y, scale, eps)
    sizes = (
        positions, gate_up.shape[1], width, down.shape[1], rest_of(positions), rows, launch.columns,
    )  # fmt: skip
    options = {"num_warps": launch.warps, "num_stages": launch.stages}
    if launch.persistent:
        grid = (min(tiles, launch.persistent * multiprocessors(x)),)
        _forward_persistent[grid](*tensors, tiles, *sizes, launch.stages, launch.gate, **options)
    else:
        _forward[(tiles,)](*tensors, *sizes, launch.stages, launch.gate, **options)
    return y, scale
