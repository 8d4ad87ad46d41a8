"""Slower variants of the fused kernels, kept to compare with: one program per tile without tensor
descriptors for the gated product, and the library's products with a fused gate for its slopes.
"""
# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def,untyped-decorator"

import torch
import triton
import triton.language as tl
from torch import Tensor

from tiltrm.kernels.launch import Launch, gate_backward, paired_rows, sigmoid, unpair


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


def gated_by_tile(x: Tensor, gate_up: Tensor, launch: Launch) -> Tensor:
    """silu(x gate) * (x up): (row, channel) -> (row, hidden), one program per tile."""
    (rows, width), hidden = x.shape, gate_up.shape[0] // 2
    out = torch.empty(rows, hidden, device=x.device, dtype=x.dtype)
    tiles = triton.cdiv(rows, launch.rows) * (hidden // launch.columns)
    _gated[(tiles,)](
        x, gate_up, out, rows, width, hidden,
        launch.rows, launch.columns, launch.depth, launch.gate,
        num_warps=launch.warps, num_stages=launch.stages,
    )  # fmt: skip
    return out


def hidden_backward_by_library(
    x: Tensor, gate_up: Tensor, down: Tensor, dz: Tensor
) -> tuple[Tensor, Tensor]:
    """The slope of (gate | up), and hidden: both products by the library, the gate in place."""
    both, slope = x @ gate_up.T, dz @ down
    rows, hidden = slope.shape
    fast = Launch(rows=1, columns=512).gate
    _gate[(rows, triton.cdiv(hidden, 512))](both, slope, hidden, 512, fast, num_warps=4)
    return both, slope
