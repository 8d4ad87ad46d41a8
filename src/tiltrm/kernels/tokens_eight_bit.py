"""Token mixing with products in e4m3, forward only: `tiltrm.kernels.tokens` with 8-bit operands.

Two programs fit on a multiprocessor, because the resident weights take half the bytes; the gates of
one then run during the products of the other.

A product in e4m3 wants four neighbouring numbers of the contracted side in one thread, and a sum
has them in pairs. So hidden units are taken in the order of `permuted`, in which nothing moves.
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
    multiprocessors,
    rest_of,
    silu_of_half,
    tile_rows,
    unpair,
)
from tiltrm.kernels.quantised import ROW_SCALE, SUM_SCALE, QuantisedMLP, empty, permuted
from tiltrm.kernels.tokens import load_down, load_gate_up, load_transposed, store_transposed

SMALLEST = 32  # the contracted side of a product in e4m3
RESIDENT = 90_000  # bytes of padded weights that leave room for a second program


@triton.jit
def _chunk(x0, x1, g0, g1, d0, d1, half_gate, up_scale, out0, out1, FAST: tl.constexpr):
    """Add one chunk of hidden columns: out + (silu(x gate) * (x up)) down."""
    gate, up = unpair(tl.dot(x1, g1, tl.dot(x0, g0)), x0.shape[0], d0.shape[0])
    hidden = silu_of_half(gate * half_gate, FAST) * (up * up_scale)
    left = permuted(hidden.to(x0.dtype), x0.shape[0], d0.shape[0])
    return tl.dot(left, d0, out0), tl.dot(left, d1, out1)


@triton.jit
def _forward(
    x, gate_up, down, half_gate, up_scale, down_scale, y, y_eight, eps, tiles,
    L: tl.constexpr, W: tl.constexpr, D: tl.constexpr, H: tl.constexpr, REST: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, STAGES: tl.constexpr, FAST: tl.constexpr,
    INPUT: tl.constexpr, OUTPUT: tl.constexpr,
):  # fmt: skip
    """Each program takes many tiles; the weights are read once and kept in shared memory."""
    weights = ()
    for first in tl.static_range(0, H, COLUMNS):
        g0, g1 = load_gate_up(gate_up, first, W, H, COLUMNS, REST)
        d0, d1 = load_down(down, first, L, H, COLUMNS, REST)
        weights = weights + ((g0, g1, d0, d1),)  # noqa: RUF005 - Triton has no star here
    tail = tl.arange(0, REST)
    scale0 = tl.load(down_scale + tl.arange(0, 64))[None, :]
    scale1 = tl.load(down_scale + 64 + tail, mask=tail < L - 64, other=0.0)[None, :]
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), num_stages=STAGES):
        x0, x1 = load_transposed(x, tile, L, D, ROWS, REST)
        a0 = (x0.to(tl.float32) * INPUT).to(y_eight.dtype.element_ty)
        a1 = (x1.to(tl.float32) * INPUT).to(y_eight.dtype.element_ty)
        out0, out1 = tl.zeros((ROWS, 64), tl.float32), tl.zeros((ROWS, REST), tl.float32)
        for chunk in tl.static_range(H // COLUMNS):
            g0, g1, d0, d1 = weights[chunk]
            out0, out1 = _chunk(a0, a1, g0, g1, d0, d1, half_gate, up_scale, out0, out1, FAST)
        out0 = x0.to(tl.float32) + out0 * scale0
        out1 = x1.to(tl.float32) + out1 * scale1
        square = tl.sum(out0 * out0, 1) + tl.sum(out1 * out1, 1)
        inverse = tl.rsqrt(square / L + eps)[:, None]
        out0, out1 = out0 * inverse, out1 * inverse
        store_transposed(y, out0, out1, tile, L, D, ROWS, REST)
        store_transposed(y_eight, out0 * OUTPUT, out1 * OUTPUT, tile, L, D, ROWS, REST)


def forward(
    x: Tensor, mlp: QuantisedMLP, eps: float, launch: Launch | None = None
) -> tuple[Tensor, Tensor]:
    """The mixed tokens (batch, position, channel), in x's precision and in e4m3 x ROW_SCALE."""
    batch, positions, width = x.shape
    hidden, rest = mlp.down.shape[1], max(SMALLEST, rest_of(positions))
    one_program = 3 * hidden * (64 + rest) > RESIDENT
    launch = launch or LAUNCHES["tokens eight bit wide" if one_program else "tokens eight bit"]
    rows = tile_rows(launch, width)
    tiles = batch * (width // rows)
    y, y_eight = torch.empty_like(x), empty(x.shape, x.device)
    grid = (min(tiles, launch.persistent * multiprocessors(x)),)
    _forward[grid](
        x, mlp.gate_up, mlp.down, mlp.half_gate, mlp.up_scale, mlp.down_scale, y, y_eight, eps,
        tiles, positions, mlp.gate_up.shape[1], width, hidden, rest,
        rows, launch.columns, launch.stages, launch.gate, SUM_SCALE, ROW_SCALE,
        num_warps=launch.warps, num_stages=launch.stages,
    )  # fmt: skip
    return y, y_eight
