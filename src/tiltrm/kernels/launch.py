"""Launch settings of the Triton kernels, and device functions that several kernels call.

Positions are cut into powers of two, because a tensor's sides must be such in Triton, and 88 padded
to 128 would waste a third of the arithmetic.
"""
# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def,untyped-decorator"

import math
from itertools import accumulate
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor


class Launch(NamedTuple):
    """The shape of one kernel launch."""

    rows: int  # rows of the left operand in one tile
    columns: int  # hidden columns in one tile
    depth: int = 64  # of one product along the contracted side, where it is cut
    warps: int = 8
    stages: int = 2
    persistent: int = 0  # programs per multiprocessor that share the tiles out; 0: one per tile
    fast: bool = True  # the hardware's tanh for the gate; 2^-11 relative, below bfloat16's step

    @property
    def gate(self) -> bool:
        """Whether the hardware's tanh can be used: the interpreter has none."""
        return self.fast and not triton.knobs.runtime.interpret


# The fastest launches that benchmarks/kernels.py timed. The benchmark replaces them as it goes.
LAUNCHES = {
    "tokens": Launch(rows=128, columns=64, warps=8, stages=2, persistent=1),
    "tokens wide": Launch(rows=128, columns=32, warps=8, stages=2),  # too wide to stay on chip
    "tokens inputs": Launch(rows=64, columns=32, warps=4, stages=2),
    "tokens weights": Launch(rows=128, columns=64, warps=8, stages=2),
    "tokens eight bit": Launch(rows=64, columns=64, warps=4, stages=2, persistent=2),
    "tokens eight bit wide": Launch(rows=128, columns=32, warps=8, stages=1, persistent=1),
    "gated eight bit": Launch(rows=128, columns=128, depth=128, warps=8, stages=4, persistent=1),
    "gated": Launch(rows=128, columns=128, warps=8, stages=4, persistent=1),
    "gated backward": Launch(rows=64, columns=64, warps=4, stages=3),
    "norm": Launch(rows=4, columns=0, warps=4),
    "noise": Launch(rows=1, columns=2048, warps=4),
    "sum": Launch(rows=1, columns=2048, warps=4),
}

# Cuts of the positions behind the first 64. The benchmark adds (32, 16), for 97 to 112 positions.
RESTS: list[tuple[int, ...]] = [(16,), (32,), (64,)]


def multiprocessors(x: Tensor) -> int:
    """Multiprocessors of the device that holds x; 2 in the interpreter."""
    if not x.is_cuda:
        return 2
    count: int = torch.cuda.get_device_properties(x.device).multi_processor_count
    return count


def tile_rows(launch: Launch, width: int) -> int:
    """Channels in one transposed tile: the launch's number of rows, as far as it divides width."""
    return math.gcd(launch.rows, width)


def aligned(weight: Tensor) -> Tensor:
    """The weight with rows padded to a multiple of 8 numbers, as copies of 16 bytes need."""
    missing = -weight.shape[1] % 8
    return torch.nn.functional.pad(weight, (0, missing)) if missing else weight


def halved(gate_up: Tensor) -> Tensor:
    """gate_up with half of the gate, as `silu_of_half` takes it. Halving is exact."""
    out, half = torch.empty_like(gate_up), len(gate_up) // 2
    torch.mul(gate_up[:half], 0.5, out=out[:half])
    out[half:].copy_(gate_up[half:])
    return out


def paired(gate_up: Tensor, gate: float = 1.0) -> Tensor:
    """A copy with rows in the order of `paired_rows`, those of the gate times a factor."""
    rows = gate_up.unflatten(0, (2, -1, 8))  # (gate or up, group, row, column)
    out = torch.empty_like(rows.transpose(0, 1), memory_format=torch.contiguous_format)
    out[:, 1].copy_(rows[1])
    if gate == 1.0:
        out[:, 0].copy_(rows[0])  # any dtype; e4m3 has no product
    else:
        torch.mul(rows[0], gate, out=out[:, 0])
    return out.view(gate_up.shape)


def cuts_of(positions: int, smallest: int = 16) -> tuple[int, ...]:
    """Where the cuts of 65 to 128 positions begin, and where the last ends: (0, 64, 96) for 88.

    None is below `smallest`.
    """
    rests = (rest for rest in RESTS if min(rest) >= smallest)
    rest = next(rest for rest in rests if 64 + sum(rest) >= positions)
    return tuple(accumulate((64, *rest), initial=0))


@triton.jit
def sigmoid(x, FAST: tl.constexpr):
    """1 / (1 + exp(-x)), or (1 + tanh(x / 2)) / 2 with one special-function call instead of two."""
    if FAST:
        turned = tl.inline_asm_elementwise(
            "tanh.approx.f32 $0, $1;", "=f,f", [0.5 * x], tl.float32, True, 1
        )
        out = 0.5 * turned + 0.5
    else:
        out = 1.0 / (1.0 + tl.exp(-x))
    return out


@triton.jit
def silu_of_half(half, FAST: tl.constexpr):
    """silu(2 half): (1 + tanh(half)) half. The factor 2 is in the weights, which spares a step."""
    if FAST:
        turned = tl.inline_asm_elementwise(
            "tanh.approx.f32 $0, $1;", "=f,f", [half], tl.float32, True, 1
        )
        out = half * turned + half
    else:
        out = 2.0 * half / (1.0 + tl.exp(-2.0 * half))
    return out


@triton.jit
def paired_rows(first, H: tl.constexpr, COLUMNS: tl.constexpr):
    """Rows of gate_up for hidden columns first + (0..COLUMNS): 8 of the gate, 8 of up, by turns.

    One product then gives gate and up in the same thread, and `unpair` moves no data.
    """
    n = tl.arange(0, 2 * COLUMNS)
    return (n % 16 // 8) * H + first + (n // 16) * 8 + n % 8


@triton.jit
def unpair(both, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Undo `paired_rows`: (ROWS, 2 x COLUMNS) -> gate and up, each (ROWS, COLUMNS)."""
    turned = both.reshape(ROWS, COLUMNS // 8, 2, 8).permute(0, 1, 3, 2)
    gate, up = turned.split()
    return gate.reshape(ROWS, COLUMNS), up.reshape(ROWS, COLUMNS)


@triton.jit
def pair(gate, up, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The inverse of `unpair`."""
    left, right = gate.reshape(ROWS, COLUMNS // 8, 8), up.reshape(ROWS, COLUMNS // 8, 8)
    return tl.join(left, right).permute(0, 1, 3, 2).reshape(ROWS, 2 * COLUMNS)


@triton.jit
def gate_backward(gate, up, slope, FAST: tl.constexpr):
    """silu(gate) * up, and the slopes of gate and up from the slope of that."""
    part = sigmoid(gate, FAST)
    active = gate * part
    return active * up, slope * up * (part + active * (1.0 - part)), slope * active
