"""Token mixing in one kernel: a tile of channels stays on chip from its load to its store.

Tiles are transposed: rows are channels, columns are positions, so that the hidden activation is the
left operand of the second product and never leaves the registers.

The backward pass is two kernels that compute the hidden side again on chip. The first gives the
slope of x tile by tile. The second keeps the slopes of one chunk of the weights in registers while
it goes over many tiles, and leaves one partial sum per program.
"""
# ruff: noqa: N803, RUF005 - Triton has no star for tuples
# mypy: disable-error-code="no-untyped-def,untyped-decorator"
# mypy: disable-error-code="assignment"

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from tiltrm.kernels.launch import (
    LAUNCHES,
    Launch,
    aligned,
    cuts_of,
    gate_backward,
    halved,
    multiprocessors,
    pair,
    paired_rows,
    silu_of_half,
    tile_rows,
    unpair,
)

RESIDENT = 150_000  # bytes of padded weights that leave room for two tiles in shared memory


@triton.jit
def load_transposed(
    x, tile, L: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, CUTS: tl.constexpr
):
    """The cuts of a tile, each (channel, position), zero past the last position."""
    blocks: tl.constexpr = D // ROWS
    base = x + tile // blocks * (L * D)
    base += (tile % blocks) * ROWS + tl.arange(0, ROWS)[:, None]
    parts = ()
    for i in tl.static_range(len(CUTS) - 1):
        place = CUTS[i] + tl.arange(0, CUTS[i + 1] - CUTS[i])[None, :]
        if CUTS[i + 1] <= L:
            part = tl.load(base + place * D)
        else:
            part = tl.load(base + place * D, mask=place < L, other=0.0)
        parts = parts + (part,)
    return parts


@triton.jit
def store_transposed(
    y, parts, tile, L: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, CUTS: tl.constexpr
):
    """Store the cuts of a tile where `load_transposed` would find them."""
    blocks: tl.constexpr = D // ROWS
    base = y + tile // blocks * (L * D)
    base += (tile % blocks) * ROWS + tl.arange(0, ROWS)[:, None]
    for i in tl.static_range(len(CUTS) - 1):
        place = CUTS[i] + tl.arange(0, CUTS[i + 1] - CUTS[i])[None, :]
        part = parts[i].to(y.dtype.element_ty)
        if CUTS[i + 1] <= L:
            tl.store(base + place * D, part)
        else:
            tl.store(base + place * D, part, mask=place < L)


@triton.jit
def load_gate_up(
    w, first, W: tl.constexpr, H: tl.constexpr, COLUMNS: tl.constexpr, CUTS: tl.constexpr
):
    """Paired rows of gate_up as right operands, one a cut: (position, 2 x COLUMNS).

    W is the length of a row, padded with zeros by `aligned`. The mask ends at W and not at the
    last position: a mask that cuts a group of 8 numbers ends copies of 16 bytes, and with them the
    pipelined loads into shared memory.
    """
    row = paired_rows(first, H, COLUMNS)[None, :] * W
    parts = ()
    for i in tl.static_range(len(CUTS) - 1):
        place = CUTS[i] + tl.arange(0, CUTS[i + 1] - CUTS[i])[:, None]
        if CUTS[i + 1] <= W:
            part = tl.load(w + row + place)
        else:
            part = tl.load(w + row + place, mask=place < W, other=0.0)
        parts = parts + (part,)
    return parts


@triton.jit
def load_down(
    w, first, L: tl.constexpr, H: tl.constexpr, COLUMNS: tl.constexpr, CUTS: tl.constexpr
):
    """Columns of down as right operands, one a cut: (COLUMNS, position)."""
    column = first + tl.arange(0, COLUMNS)[:, None]
    parts = ()
    for i in tl.static_range(len(CUTS) - 1):
        place = CUTS[i] + tl.arange(0, CUTS[i + 1] - CUTS[i])[None, :]
        if CUTS[i + 1] <= L:
            part = tl.load(w + place * H + column)
        else:
            part = tl.load(w + place * H + column, mask=place < L, other=0.0)
        parts = parts + (part,)
    return parts


@triton.jit
def _float(parts):
    """The parts in float32."""
    out = ()
    for i in tl.static_range(len(parts)):
        out = out + (parts[i].to(tl.float32),)
    return out


@triton.jit
def times(parts, factor):
    """The parts times a factor for each row."""
    out = ()
    for i in tl.static_range(len(parts)):
        out = out + (parts[i] * factor[:, None],)
    return out


@triton.jit
def inner(a, b):
    """The sums over all positions of the products of two tiles: (channel,)."""
    total = tl.sum(a[0] * b[0], 1)
    for i in tl.static_range(1, len(a)):
        total += tl.sum(a[i] * b[i], 1)
    return total


@triton.jit
def gather(a, b):
    """The product over all positions: (channel, position) times (position, column)."""
    total = tl.dot(a[0], b[0])
    for i in tl.static_range(1, len(a)):
        total = tl.dot(a[i], b[i], total)
    return total


@triton.jit
def spread(left, right, out):
    """out + left right, cut by cut: left is (row, column), right (column, position)."""
    parts = ()
    for i in tl.static_range(len(out)):
        parts = parts + (tl.dot(left, right[i], out[i]),)
    return parts


@triton.jit
def _chunk(x, g, d, out, FAST: tl.constexpr):
    """Add one chunk of hidden columns: out + (silu(x gate) * (x up)) down."""
    gate, up = unpair(gather(x, g), x[0].shape[0], d[0].shape[0])
    return spread((silu_of_half(gate, FAST) * up).to(x[0].dtype), d, out)


@triton.jit
def _finish(
    y, scale, out, tile, eps,
    L: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, CUTS: tl.constexpr,
):  # fmt: skip
    """Normalise over positions and store; the scale 1 / rms is kept for the backward pass."""
    inverse = tl.rsqrt(inner(out, out) / L + eps)
    tl.store(scale + tile * ROWS + tl.arange(0, ROWS), inverse)
    store_transposed(y, times(out, inverse), tile, L, D, ROWS, CUTS)


@triton.jit
def _forward(
    x, gate_up, down, y, scale, eps,
    L: tl.constexpr, W: tl.constexpr, D: tl.constexpr, H: tl.constexpr, CUTS: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, STAGES: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0)
    a = load_transposed(x, tile, L, D, ROWS, CUTS)
    out = _float(a)
    for first in tl.range(0, H, COLUMNS, num_stages=STAGES):
        g = load_gate_up(gate_up, first, W, H, COLUMNS, CUTS)
        d = load_down(down, first, L, H, COLUMNS, CUTS)
        out = _chunk(a, g, d, out, FAST)
    _finish(y, scale, out, tile, eps, L, D, ROWS, CUTS)


@triton.jit
def _forward_persistent(
    x, gate_up, down, y, scale, eps, tiles,
    L: tl.constexpr, W: tl.constexpr, D: tl.constexpr, H: tl.constexpr, CUTS: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, STAGES: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """One program per multiprocessor; the weights are read once and kept in shared memory."""
    weights = ()
    for first in tl.static_range(0, H, COLUMNS):
        g = load_gate_up(gate_up, first, W, H, COLUMNS, CUTS)
        d = load_down(down, first, L, H, COLUMNS, CUTS)
        weights = weights + ((g, d),)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), num_stages=STAGES):
        a = load_transposed(x, tile, L, D, ROWS, CUTS)
        out = _float(a)
        for chunk in tl.static_range(H // COLUMNS):
            out = _chunk(a, weights[chunk][0], weights[chunk][1], out, FAST)
        _finish(y, scale, out, tile, eps, L, D, ROWS, CUTS)


@triton.jit
def _transposed(parts):
    """Every part transposed."""
    out = ()
    for i in tl.static_range(len(parts)):
        out = out + (parts[i].T,)
    return out


@triton.jit
def _cast(parts, like):
    """The parts in the precision of `like`."""
    out = ()
    for i in tl.static_range(len(parts)):
        out = out + (parts[i].to(like.dtype),)
    return out


@triton.jit
def _hidden_backward(x, z, g, d, FAST: tl.constexpr):
    """The hidden chunk and the slopes of its paired inputs, from x and the slope z of the sum."""
    gate, up = unpair(gather(x, g), x[0].shape[0], d[0].shape[0])
    hidden, gate, up = gate_backward(gate, up, gather(z, _transposed(d)), FAST)
    both = pair(gate, up, x[0].shape[0], d[0].shape[0])
    return hidden.to(x[0].dtype), both.to(x[0].dtype)


@triton.jit
def _norm_backward(y, dy, inverse, L: tl.constexpr):
    """The slope through the norm: (dy - y <y, dy> / L) / rms, part by part."""
    along = inner(y, dy) / L
    out = ()
    for i in tl.static_range(len(y)):
        out = out + (inverse[:, None] * (dy[i] - y[i] * along[:, None]),)
    return out


@triton.jit
def _inputs_backward(
    x, gate_up, down, y, dy, scale, dz, dx,
    L: tl.constexpr, W: tl.constexpr, D: tl.constexpr, H: tl.constexpr, CUTS: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, STAGES: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """dz, the slope through the norm, and dx = dz + the slope through the hidden side."""
    tile = tl.program_id(0)
    inverse = tl.load(scale + tile * ROWS + tl.arange(0, ROWS))
    b = _float(load_transposed(y, tile, L, D, ROWS, CUTS))
    db = _float(load_transposed(dy, tile, L, D, ROWS, CUTS))
    out = _norm_backward(b, db, inverse, L)
    store_transposed(dz, out, tile, L, D, ROWS, CUTS)
    a = load_transposed(x, tile, L, D, ROWS, CUTS)
    z = _cast(out, a[0])
    for first in tl.range(0, H, COLUMNS, num_stages=STAGES):
        g = load_gate_up(gate_up, first, W, H, COLUMNS, CUTS)
        d = load_down(down, first, L, H, COLUMNS, CUTS)
        _, both = _hidden_backward(a, z, g, d, FAST)
        out = spread(both, _transposed(g), out)
    store_transposed(dx, out, tile, L, D, ROWS, CUTS)


@triton.jit
def _weights_backward(
    x, gate_up, down, dz, dgate_up, ddown, tiles,
    L: tl.constexpr, W: tl.constexpr, D: tl.constexpr, H: tl.constexpr, CUTS: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, STAGES: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """Partial slopes of gate_up and down for one chunk of hidden columns and every nth tile."""
    first = tl.program_id(0) * COLUMNS
    strip = tl.program_id(1)
    g = load_gate_up(gate_up, first, W, H, COLUMNS, CUTS)
    d = load_down(down, first, L, H, COLUMNS, CUTS)
    dg, dd = (), ()
    for i in tl.static_range(len(CUTS) - 1):
        dg = dg + (tl.zeros((2 * COLUMNS, CUTS[i + 1] - CUTS[i]), tl.float32),)
        dd = dd + (tl.zeros((COLUMNS, CUTS[i + 1] - CUTS[i]), tl.float32),)
    for tile in tl.range(strip, tiles, tl.num_programs(1), num_stages=STAGES):
        a = load_transposed(x, tile, L, D, ROWS, CUTS)
        z = load_transposed(dz, tile, L, D, ROWS, CUTS)
        hidden, both = _hidden_backward(a, z, g, d, FAST)
        dg, dd = spread(both.T, a, dg), spread(hidden.T, z, dd)
    row = dgate_up + strip * (2 * H * W) + paired_rows(first, H, COLUMNS)[:, None] * W
    column = ddown + strip * (H * L) + first + tl.arange(0, COLUMNS)[:, None]
    for i in tl.static_range(len(CUTS) - 1):
        place = CUTS[i] + tl.arange(0, CUTS[i + 1] - CUTS[i])[None, :]
        tl.store(row + place, dg[i], mask=place < W)
        tl.store(column + place * H, dd[i], mask=place < L)


def forward(
    x: Tensor, gate_up: Tensor, down: Tensor, eps: float, launch: Launch | None = None
) -> tuple[Tensor, Tensor]:
    """The mixed tokens (batch, position, channel) and 1 / rms (batch, channel), float32."""
    launch = launch or LAUNCHES["tokens"]
    batch, positions, width = x.shape
    cuts = cuts_of(positions)
    if launch.persistent and 6 * down.shape[1] * cuts[-1] > RESIDENT:
        launch = LAUNCHES["tokens wide"]
    rows = tile_rows(launch, width)
    tiles = batch * (width // rows)
    y = torch.empty_like(x)
    scale = torch.empty(batch, width, device=x.device, dtype=torch.float32)
    gate_up = aligned(halved(gate_up))
    tensors = (x, gate_up, down, y, scale, eps)
    sizes = positions, gate_up.shape[1], width, down.shape[1], cuts, rows, launch.columns
    options = {"num_warps": launch.warps, "num_stages": launch.stages}
    if launch.persistent:
        grid = (min(tiles, launch.persistent * multiprocessors(x)),)
        _forward_persistent[grid](*tensors, tiles, *sizes, launch.stages, launch.gate, **options)
    else:
        _forward[(tiles,)](*tensors, *sizes, launch.stages, launch.gate, **options)
    return y, scale


def inputs_backward(
    dy: Tensor, x: Tensor, gate_up: Tensor, down: Tensor, y: Tensor, scale: Tensor,
    launch: Launch | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The slopes of x and of the sum before the norm."""
    launch = launch or LAUNCHES["tokens inputs"]
    dz, dx = torch.empty_like(x), torch.empty_like(x)
    gate_up = aligned(gate_up)
    tiles, sizes = _sizes(x, gate_up, down, launch)
    _inputs_backward[(tiles,)](
        x, gate_up, down, y, dy, scale, dz, dx, *sizes, launch.gate,
        num_warps=launch.warps, num_stages=launch.stages,
    )  # fmt: skip
    return dx, dz


def weights_backward(
    x: Tensor, gate_up: Tensor, down: Tensor, dz: Tensor, launch: Launch | None = None
) -> tuple[Tensor, Tensor]:
    """The slopes of gate_up and down from that of the sum before the norm."""
    launch = launch or LAUNCHES["tokens weights"]
    padded = aligned(gate_up)
    tiles, sizes = _sizes(x, padded, down, launch)
    chunks = down.shape[1] // launch.columns
    strips = max(1, min(tiles, multiprocessors(x) // chunks))
    dgate_up = torch.empty(strips, *padded.shape, device=x.device, dtype=torch.float32)
    ddown = torch.empty(strips, *down.shape, device=x.device, dtype=torch.float32)
    _weights_backward[(chunks, strips)](
        x, padded, down, dz, dgate_up, ddown, tiles, *sizes, launch.gate,
        num_warps=launch.warps, num_stages=launch.stages,
    )  # fmt: skip
    slope = dgate_up.sum(0)[:, : gate_up.shape[1]]
    return slope.to(gate_up.dtype).contiguous(), ddown.sum(0).to(down.dtype)


def backward(
    dy: Tensor, x: Tensor, gate_up: Tensor, down: Tensor, y: Tensor, scale: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The slopes of x, gate_up and down, from the outputs of `forward`."""
    dx, dz = inputs_backward(dy, x, gate_up, down, y, scale)
    return dx, *weights_backward(x, gate_up, down, dz)


def _sizes(x: Tensor, gate_up: Tensor, down: Tensor, launch: Launch) -> tuple[int, tuple[Any, ...]]:
    """How many tiles there are, and the kernels' constants."""
    batch, positions, width = x.shape
    rows = tile_rows(launch, width)
    constants = (
        positions, gate_up.shape[1], width, down.shape[1], cuts_of(positions), rows,
        launch.columns, launch.stages,
    )  # fmt: skip
    return batch * (width // rows), constants
