"""Token mixing in bfloat16 with its products issued ahead, in Gluon, Triton's lower language.

`tiltrm.kernels.tokens` waits for every product before the next step. Here the first product of the
next chunk and the second of the last one run on the matrix units during the gate of this chunk. A
variant to be timed and checked on a GPU: Gluon has no interpreter.
"""
# ruff: noqa: F821, N803, N806
# mypy: ignore-errors

import torch
from torch import Tensor
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    async_copy,
    fence_async_shared,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from tiltrm.kernels.launch import aligned, cuts_of, halved, multiprocessors


@gluon.jit
def _copy(x, target, tile, first, L: gl.constexpr, D: gl.constexpr, ROWS: gl.constexpr,
          N: gl.constexpr, layout: gl.constexpr):  # fmt: skip
    """Begin to copy N positions of a tile from `first` on: (position, channel)."""
    blocks: gl.constexpr = D // ROWS
    position = first + gl.arange(0, N, gl.SliceLayout(1, layout))[:, None]
    channel = (tile % blocks) * ROWS + gl.arange(0, ROWS, gl.SliceLayout(0, layout))[None, :]
    place = x + tile // blocks * (L * D) + position * D + channel
    async_copy.async_copy_global_to_shared(target, place, mask=(position < L) & (channel < D))


@gluon.jit
def _store(y, out, tile, first, L: gl.constexpr, D: gl.constexpr, ROWS: gl.constexpr,
           N: gl.constexpr, layout: gl.constexpr):  # fmt: skip
    """The inverse of `_load`; out is (channel, position)."""
    blocks: gl.constexpr = D // ROWS
    position = first + gl.arange(0, N, gl.SliceLayout(1, layout))[:, None]
    channel = (tile % blocks) * ROWS + gl.arange(0, ROWS, gl.SliceLayout(0, layout))[None, :]
    turned = gl.convert_layout(out.to(gl.bfloat16).permute(1, 0), layout)
    gl.store(y + tile // blocks * (L * D) + position * D + channel, turned, mask=position < L)


@gluon.jit
def _weights(w, target, row, first, size: gl.constexpr, stride: gl.constexpr, layout: gl.constexpr):
    """Rows of a weight, `size` numbers from `first` on, into shared memory; zero past the row."""
    column = first + gl.arange(0, size, gl.SliceLayout(0, layout))[None, :]
    target.store(gl.load(w + row[:, None] * stride + column, mask=column < stride, other=0.0))


@gluon.jit
def _gate(both, ROWS: gl.constexpr, COLUMNS: gl.constexpr, operand: gl.constexpr):
    """silu(gate) * up from paired columns, as the left operand of the second product."""
    gate, up = both.reshape([ROWS, COLUMNS // 8, 2, 8]).permute(0, 1, 3, 2).split()
    turned = gl.inline_asm_elementwise(
        "tanh.approx.f32 $0, $1;", "=f,f", [gate], dtype=gl.float32, is_pure=True, pack=1
    )
    hidden = ((gate * turned + gate) * up).to(gl.bfloat16).reshape([ROWS, COLUMNS])
    return gl.convert_layout(hidden, operand)


@gluon.jit
def _forward(x, gate_up, down, y, eps, tiles, L: gl.constexpr, W: gl.constexpr, D: gl.constexpr,
             H: gl.constexpr, REST: gl.constexpr, ROWS: gl.constexpr, COLUMNS: gl.constexpr,
             WARPS: gl.constexpr):  # fmt: skip
    CHUNKS: gl.constexpr = H // COLUMNS
    wide: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, 2 * COLUMNS, 16])
    head: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, 64, 16])
    tail: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, REST, 16])
    operand: gl.constexpr = gl.DotOperandLayout(0, head, 2)
    full: gl.constexpr = gl.NVMMASharedLayout(128, 16, 2)
    chunked: gl.constexpr = gl.NVMMASharedLayout(min(128, 2 * COLUMNS), 16, 2)
    short: gl.constexpr = gl.NVMMASharedLayout(min(128, 2 * REST), 16, 2)
    by_row: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [WARPS, 1], [1, 0])
    by_short: gl.constexpr = gl.BlockedLayout([1, 8], [256 // REST, REST // 8], [WARPS, 1], [1, 0])
    by_channel: gl.constexpr = gl.BlockedLayout([1, 8], [2, 16], [WARPS, 1], [1, 0])
    g0 = gl.allocate_shared_memory(gl.bfloat16, [CHUNKS, 2 * COLUMNS, 64], full)
    g1 = gl.allocate_shared_memory(gl.bfloat16, [CHUNKS, 2 * COLUMNS, REST], short)
    d0 = gl.allocate_shared_memory(gl.bfloat16, [CHUNKS, 64, COLUMNS], chunked)
    d1 = gl.allocate_shared_memory(gl.bfloat16, [CHUNKS, REST, COLUMNS], chunked)
    x0 = gl.allocate_shared_memory(gl.bfloat16, [2, 64, ROWS], full)
    x1 = gl.allocate_shared_memory(gl.bfloat16, [2, REST, ROWS], full)
    for chunk in gl.static_range(CHUNKS):
        n = gl.arange(0, 2 * COLUMNS, gl.SliceLayout(1, by_row))
        row = (n % 16 // 8) * H + chunk * COLUMNS + (n // 16) * 8 + n % 8
        _weights(gate_up, g0.index(chunk), row, 0, 64, W, by_row)
        n = gl.arange(0, 2 * COLUMNS, gl.SliceLayout(1, by_short))
        row = (n % 16 // 8) * H + chunk * COLUMNS + (n // 16) * 8 + n % 8
        _weights(gate_up, g1.index(chunk), row, 64, REST, W, by_short)
        n = gl.arange(0, 64, gl.SliceLayout(1, by_row))
        _weights(down, d0.index(chunk), n, chunk * COLUMNS, COLUMNS, H, by_row)
        n = 64 + gl.arange(0, REST, gl.SliceLayout(1, by_row))
        n = gl.where(n < L, n, L - 1)  # the column is dropped when it is stored
        _weights(down, d1.index(chunk), n, chunk * COLUMNS, COLUMNS, H, by_row)
    for stage in gl.static_range(2):  # past the last position there are zeros, now and always
        x1.index(stage).store(gl.zeros([REST, ROWS], gl.bfloat16, by_channel))
    gl.thread_barrier()
    first = gl.program_id(0)
    _copy(x, x0.index(0), first, 0, L, D, ROWS, 64, by_channel)
    _copy(x, x1.index(0), first, 64, L, D, ROWS, REST, by_channel)
    async_copy.commit_group()
    past = gl.arange(0, REST, gl.SliceLayout(0, tail))[None, :] < L - 64
    stage = 0
    for tile in range(first, tiles, gl.num_programs(0)):
        async_copy.wait_group(0)
        fence_async_shared()
        gl.thread_barrier()
        later = tile + gl.num_programs(0)
        later = gl.where(later < tiles, later, tile)
        _copy(x, x0.index(1 - stage), later, 0, L, D, ROWS, 64, by_channel)
        _copy(x, x1.index(1 - stage), later, 64, L, D, ROWS, REST, by_channel)
        async_copy.commit_group()
        a0, a1 = x0.index(stage).permute((1, 0)), x1.index(stage).permute((1, 0))
        stage = 1 - stage
        out0 = a0.load(head).to(gl.float32)
        out1 = a1.load(tail).to(gl.float32)
        zero = gl.zeros([ROWS, 2 * COLUMNS], gl.float32, wide)
        both = warpgroup_mma(a0, g0.index(0).permute((1, 0)), zero, use_acc=False, is_async=True)
        both = warpgroup_mma(a1, g1.index(0).permute((1, 0)), both, is_async=True)
        ready = warpgroup_mma_wait(0, deps=(both,))
        for chunk in gl.static_range(CHUNKS):
            if chunk + 1 < CHUNKS:
                right = g0.index(chunk + 1).permute((1, 0))
                both = warpgroup_mma(a0, right, zero, use_acc=False, is_async=True)
                both = warpgroup_mma(a1, g1.index(chunk + 1).permute((1, 0)), both, is_async=True)
            left0 = _gate(ready, ROWS, COLUMNS, operand)
            left1 = gl.convert_layout(left0, gl.DotOperandLayout(0, tail, 2))
            # The wait names the operands in registers that unfinished products still read.
            if chunk == 0:
                ready = warpgroup_mma_wait(0, deps=(both,))
            elif chunk + 1 < CHUNKS:
                ready, out0, out1, held0, held1 = warpgroup_mma_wait(
                    0, deps=(both, out0, out1, held0, held1)
                )
            else:
                out0, out1, held0, held1 = warpgroup_mma_wait(0, deps=(out0, out1, held0, held1))
            held0, held1 = left0, left1
            out0 = warpgroup_mma(held0, d0.index(chunk).permute((1, 0)), out0, is_async=True)
            out1 = warpgroup_mma(held1, d1.index(chunk).permute((1, 0)), out1, is_async=True)
        out0, out1, held0, held1 = warpgroup_mma_wait(0, deps=(out0, out1, held0, held1))
        out1 = gl.where(past, out1, 0.0)
        square = gl.sum(out0 * out0, 1)
        square1 = gl.sum(out1 * out1, 1)
        square += gl.convert_layout(square1, gl.SliceLayout(1, head))
        inverse = gl.rsqrt(square / L + eps)
        inverse1 = gl.convert_layout(inverse, gl.SliceLayout(1, tail))
        _store(y, out0 * inverse[:, None], tile, 0, L, D, ROWS, 64, by_channel)
        _store(y, out1 * inverse1[:, None], tile, 64, L, D, ROWS, REST, by_channel)
    async_copy.wait_group(0)


def forward(
    x: Tensor, gate_up: Tensor, down: Tensor, eps: float, rows: int = 128, columns: int = 32
) -> Tensor:
    """The mixed tokens (batch, position, channel)."""
    batch, positions, width = x.shape
    y = torch.empty_like(x)
    gate_up = aligned(halved(gate_up))
    tiles = batch * (width // rows)
    grid = (min(tiles, multiprocessors(x)),)
    _forward[grid](
        x, gate_up, down, y, eps, tiles, positions, gate_up.shape[1], width, down.shape[1],
        cuts_of(positions)[-1] - 64, rows, columns, rows // 16, num_warps=rows // 16,
    )  # fmt: skip
    return y
