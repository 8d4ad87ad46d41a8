"""Token mixing in one kernel: a tile of channels stays on chip from its load to its store.

Tiles are transposed: rows are channels, columns are positions, so that the hidden activation is the
left operand of the second product and never leaves the registers.

The backward pass is two kernels that compute the hidden side again on chip. The first gives the
slope of x tile by tile. The second keeps the slopes of one chunk of the weights in registers while
it goes over many tiles, and leaves one partial sum per program.
"""
# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def,untyped-decorator"
# mypy: disable-error-code="assignment"

import torch
import triton
import triton.language as tl
from torch import Tensor

from tiltrm.kernels.launch import (
    LAUNCHES,
    Launch,
    aligned,
    gate_backward,
    halved,
    multiprocessors,
    pair,
    paired_rows,
    rest_of,
    silu_of_half,
    tile_rows,
    unpair,
)

RESIDENT = 150_000  # bytes of padded weights that leave room for two tiles in shared memory


@triton.jit
def load_transposed(
    x, tile, L: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, REST: tl.constexpr
):
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
def store_transposed(
    y, left, right, tile, L: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, REST: tl.constexpr
):
    """Store the two cuts of a tile where `load_transposed` would find them."""
    blocks: tl.constexpr = D // ROWS
    base = y + tile // blocks * (L * D)
    channel = (tile % blocks) * ROWS + tl.arange(0, ROWS)[:, None]
    head = tl.arange(0, 64)[None, :]
    tail = 64 + tl.arange(0, REST)[None, :]
    tl.store(base + channel + head * D, left.to(y.dtype.element_ty))
    tl.store(base + channel + tail * D, right.to(y.dtype.element_ty), mask=tail < L)


@triton.jit
def load_gate_up(
    w, first, W: tl.constexpr, H: tl.constexpr, COLUMNS: tl.constexpr, REST: tl.constexpr
):
    """Paired rows of gate_up as right operands: (64 and REST, 2 x COLUMNS).

    W is the length of a row, padded with zeros by `aligned`. The mask ends at W and not at the
    last position: a mask that cuts a group of 8 numbers ends copies of 16 bytes, and with them the
    pipelined loads into shared memory.
    """
    row = paired_rows(first, H, COLUMNS)[None, :] * W
    head = tl.arange(0, 64)[:, None]
    tail = 64 + tl.arange(0, REST)[:, None]
    return tl.load(w + row + head), tl.load(w + row + tail, mask=tail < W, other=0.0)


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
    hidden = (silu_of_half(gate, FAST) * up).to(x0.dtype)
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
    store_transposed(y, out0 * inverse[:, None], out1 * inverse[:, None], tile, L, D, ROWS, REST)


@triton.jit
def _forward(
    x, gate_up, down, y, scale, eps,
    L: tl.constexpr, W: tl.constexpr, D: tl.constexpr, H: tl.constexpr, REST: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, STAGES: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0)
    x0, x1 = load_transposed(x, tile, L, D, ROWS, REST)
    out0, out1 = x0.to(tl.float32), x1.to(tl.float32)
    for first in tl.range(0, H, COLUMNS, num_stages=STAGES):
        g0, g1 = load_gate_up(gate_up, first, W, H, COLUMNS, REST)
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
        g0, g1 = load_gate_up(gate_up, first, W, H, COLUMNS, REST)
        d0, d1 = load_down(down, first, L, H, COLUMNS, REST)
        weights = weights + ((g0, g1, d0, d1),)  # noqa: RUF005 - Triton has no star here
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), num_stages=STAGES):
        x0, x1 = load_transposed(x, tile, L, D, ROWS, REST)
        out0, out1 = x0.to(tl.float32), x1.to(tl.float32)
        for chunk in tl.static_range(H // COLUMNS):
            g0, g1, d0, d1 = weights[chunk]
            out0, out1 = _chunk(x0, x1, g0, g1, d0, d1, out0, out1, FAST)
        _finish(y, scale, out0, out1, tile, eps, L, D, ROWS, REST)


@triton.jit
def _hidden_backward(x0, x1, z0, z1, g0, g1, d0, d1, FAST: tl.constexpr):
    """The hidden chunk and the slopes of its paired inputs, from x and the slope z of the sum."""
    gate, up = unpair(tl.dot(x1, g1, tl.dot(x0, g0)), x0.shape[0], d0.shape[0])
    slope = tl.dot(z1, d1.T, tl.dot(z0, d0.T))
    hidden, gate, up = gate_backward(gate, up, slope, FAST)
    return hidden.to(x0.dtype), pair(gate, up, x0.shape[0], d0.shape[0]).to(x0.dtype)


@triton.jit
def _inputs_backward(
    x, gate_up, down, y, dy, scale, dz, dx,
    L: tl.constexpr, W: tl.constexpr, D: tl.constexpr, H: tl.constexpr, REST: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, STAGES: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """dz, the slope through the norm, and dx = dz + the slope through the hidden side."""
    tile = tl.program_id(0)
    y0, y1 = load_transposed(y, tile, L, D, ROWS, REST)
    dy0, dy1 = load_transposed(dy, tile, L, D, ROWS, REST)
    y0, y1, dy0, dy1 = y0.to(tl.float32), y1.to(tl.float32), dy0.to(tl.float32), dy1.to(tl.float32)
    along = (tl.sum(y0 * dy0, 1) + tl.sum(y1 * dy1, 1)) / L
    inverse = tl.load(scale + tile * ROWS + tl.arange(0, ROWS))[:, None]
    out0, out1 = inverse * (dy0 - y0 * along[:, None]), inverse * (dy1 - y1 * along[:, None])
    store_transposed(dz, out0, out1, tile, L, D, ROWS, REST)
    x0, x1 = load_transposed(x, tile, L, D, ROWS, REST)
    z0, z1 = out0.to(x0.dtype), out1.to(x0.dtype)
    for first in tl.range(0, H, COLUMNS, num_stages=STAGES):
        g0, g1 = load_gate_up(gate_up, first, W, H, COLUMNS, REST)
        d0, d1 = load_down(down, first, L, H, COLUMNS, REST)
        _, both = _hidden_backward(x0, x1, z0, z1, g0, g1, d0, d1, FAST)
        out0, out1 = tl.dot(both, g0.T, out0), tl.dot(both, g1.T, out1)
    store_transposed(dx, out0, out1, tile, L, D, ROWS, REST)


@triton.jit
def _weights_backward(
    x, gate_up, down, dz, dgate_up, ddown, tiles,
    L: tl.constexpr, W: tl.constexpr, D: tl.constexpr, H: tl.constexpr, REST: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, STAGES: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """Partial slopes of gate_up and down for one chunk of hidden columns and every nth tile."""
    first = tl.program_id(0) * COLUMNS
    strip = tl.program_id(1)
    g0, g1 = load_gate_up(gate_up, first, W, H, COLUMNS, REST)
    d0, d1 = load_down(down, first, L, H, COLUMNS, REST)
    dg0, dg1 = tl.zeros((2 * COLUMNS, 64), tl.float32), tl.zeros((2 * COLUMNS, REST), tl.float32)
    dd0, dd1 = tl.zeros((COLUMNS, 64), tl.float32), tl.zeros((COLUMNS, REST), tl.float32)
    for tile in tl.range(strip, tiles, tl.num_programs(1), num_stages=STAGES):
        x0, x1 = load_transposed(x, tile, L, D, ROWS, REST)
        z0, z1 = load_transposed(dz, tile, L, D, ROWS, REST)
        hidden, both = _hidden_backward(x0, x1, z0, z1, g0, g1, d0, d1, FAST)
        dg0, dg1 = tl.dot(both.T, x0, dg0), tl.dot(both.T, x1, dg1)
        dd0, dd1 = tl.dot(hidden.T, z0, dd0), tl.dot(hidden.T, z1, dd1)
    head, tail = tl.arange(0, 64)[None, :], 64 + tl.arange(0, REST)[None, :]
    row = dgate_up + strip * (2 * H * W) + paired_rows(first, H, COLUMNS)[:, None] * W
    tl.store(row + head, dg0)
    tl.store(row + tail, dg1, mask=tail < W)
    column = ddown + strip * (H * L) + first + tl.arange(0, COLUMNS)[:, None]
    tl.store(column + head * H, dd0)
    tl.store(column + tail * H, dd1, mask=tail < L)


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
    gate_up = aligned(halved(gate_up))
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


def _sizes(x: Tensor, gate_up: Tensor, down: Tensor, launch: Launch) -> tuple[int, tuple[int, ...]]:
    """How many tiles there are, and the kernels' constants."""
    batch, positions, width = x.shape
    rows, rest = tile_rows(launch, width), rest_of(positions)
    constants = (
        positions, gate_up.shape[1], width, down.shape[1], rest, rows, launch.columns,
        launch.stages,
    )  # fmt: skip
    return batch * (width // rows), constants
