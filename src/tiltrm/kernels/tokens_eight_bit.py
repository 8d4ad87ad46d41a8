"""Token mixing with products in e4m3, forward only: `tiltrm.kernels.tokens` with 8-bit operands.

Two programs fit on a multiprocessor, because the resident weights take half the bytes; the gates of
one then run during the products of the other.

A product in e4m3 wants four neighbouring numbers of the contracted side in one thread, and a sum
has them in pairs. So hidden units are taken in the order of `permuted`, in which nothing moves.
"""
# ruff: noqa: N803, RUF005 - Triton has no star for tuples
# mypy: disable-error-code="no-untyped-def,untyped-decorator"
# mypy: disable-error-code="assignment"

import torch
import triton
import triton.language as tl
from torch import Tensor

from tiltrm.kernels.launch import (
    LAUNCHES,
    Launch,
    cuts_of,
    multiprocessors,
    silu_of_half,
    tile_rows,
    unpair,
)
from tiltrm.kernels.quantised import ROW_SCALE, SUM_SCALE, QuantisedMLP, empty, permuted
from tiltrm.kernels.tokens import (
    gather,
    inner,
    load_down,
    load_gate_up,
    load_transposed,
    spread,
    store_transposed,
    times,
)

SMALLEST = 32  # the contracted side of a product in e4m3
RESIDENT = 90_000  # bytes of padded weights that leave room for a second program


@triton.jit
def _chunk(x, g, d, half_gate, up_scale, out, FAST: tl.constexpr):
    """Add one chunk of hidden columns: out + (silu(x gate) * (x up)) down."""
    gate, up = unpair(gather(x, g), x[0].shape[0], d[0].shape[0])
    hidden = silu_of_half(gate * half_gate, FAST) * (up * up_scale)
    return spread(permuted(hidden.to(x[0].dtype), x[0].shape[0], d[0].shape[0]), d, out)


@triton.jit
def _forward(
    x, gate_up, down, half_gate, up_scale, down_scale, y, y_eight, eps, tiles,
    L: tl.constexpr, W: tl.constexpr, D: tl.constexpr, H: tl.constexpr, CUTS: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, STAGES: tl.constexpr, FAST: tl.constexpr,
    INPUT: tl.constexpr, OUTPUT: tl.constexpr,
):  # fmt: skip
    """Each program takes many tiles; the weights are read once and kept in shared memory."""
    weights = ()
    for first in tl.static_range(0, H, COLUMNS):
        g = load_gate_up(gate_up, first, W, H, COLUMNS, CUTS)
        d = load_down(down, first, L, H, COLUMNS, CUTS)
        weights = weights + ((g, d),)
    scales = ()
    for i in tl.static_range(len(CUTS) - 1):
        place = CUTS[i] + tl.arange(0, CUTS[i + 1] - CUTS[i])
        scale = tl.load(down_scale + place, mask=place < L, other=0.0)
        scales = scales + (scale[None, :],)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), num_stages=STAGES):
        a = load_transposed(x, tile, L, D, ROWS, CUTS)
        a8, sums = (), ()
        for i in tl.static_range(len(CUTS) - 1):
            part = (a[i].to(tl.float32) * INPUT).to(y_eight.dtype.element_ty)
            a8 = a8 + (part,)
            sums = sums + (tl.zeros((ROWS, CUTS[i + 1] - CUTS[i]), tl.float32),)
        for chunk in tl.static_range(H // COLUMNS):
            g, d = weights[chunk]
            sums = _chunk(a8, g, d, half_gate, up_scale, sums, FAST)
        out = ()
        for i in tl.static_range(len(CUTS) - 1):
            out = out + (a[i].to(tl.float32) + sums[i] * scales[i],)
        out = times(out, tl.rsqrt(inner(out, out) / L + eps))
        store_transposed(y, out, tile, L, D, ROWS, CUTS)
        eight = ()
        for i in tl.static_range(len(CUTS) - 1):
            eight = eight + (out[i] * OUTPUT,)
        store_transposed(y_eight, eight, tile, L, D, ROWS, CUTS)


def forward(
    x: Tensor, mlp: QuantisedMLP, eps: float, launch: Launch | None = None
) -> tuple[Tensor, Tensor]:
    """The mixed tokens (batch, position, channel), in x's precision and in e4m3 x ROW_SCALE."""
    batch, positions, width = x.shape
    hidden, cuts = mlp.down.shape[1], cuts_of(positions, SMALLEST)
    one_program = 3 * hidden * cuts[-1] > RESIDENT
    launch = launch or LAUNCHES["tokens eight bit wide" if one_program else "tokens eight bit"]
    rows = tile_rows(launch, width)
    tiles = batch * (width // rows)
    y, y_eight = torch.empty_like(x), empty(x.shape, x.device)
    grid = (min(tiles, launch.persistent * multiprocessors(x)),)
    _forward[grid](
        x, mlp.gate_up, mlp.down, mlp.half_gate, mlp.up_scale, mlp.down_scale, y, y_eight, eps,
        tiles, positions, mlp.gate_up.shape[1], width, hidden, cuts,
        rows, launch.columns, launch.stages, launch.gate, SUM_SCALE, ROW_SCALE,
        num_warps=launch.warps, num_stages=launch.stages,
    )  # fmt: skip
    return y, y_eight
