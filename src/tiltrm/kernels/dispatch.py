"""The fused functions: each calls its kernels if they fit, and plain torch otherwise."""

import functools
import importlib
import importlib.util
import os
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tiltrm.kernels import reference
from tiltrm.kernels.reference import Rotary

SHARED_MEMORY = 220 * 1024  # bytes per block that the launches were chosen for: Hopper's
LARGEST = 2**31  # elements; tiles are addressed with 32 bits


def interpreted() -> bool:
    """Whether Triton was told to run its kernels on the CPU, as tests do."""
    return os.environ.get("TRITON_INTERPRET", "0") == "1"


@functools.cache
def _ready() -> bool:
    if importlib.util.find_spec("triton") is None:
        return False
    if not interpreted():
        if not torch.cuda.is_available() or torch.version.hip is not None:
            return False
        device: Any = torch.cuda.get_device_properties()
        if device.major < 9 or device.shared_memory_per_block_optin < SHARED_MEMORY:
            return False
    importlib.import_module("tiltrm.kernels.ops")  # registers the operators
    return True


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def available() -> bool:
    """Whether fused kernels can run here: Triton, and a GPU of Hopper's kind or newer."""
    return _ready()


def usable(x: Tensor, hidden: int) -> bool:
    """Whether the kernels take this tensor. The interpreter's bfloat16 products are wrong."""
    dtypes = (torch.bfloat16, torch.float16) if x.is_cuda else (torch.float32, torch.float16)
    placed = x.is_cuda or (x.device.type == "cpu" and interpreted())
    shaped = x.shape[-1] % 64 == 0 and hidden % 128 == 0 and 0 < x.numel() < LARGEST
    return placed and shaped and x.dtype in dtypes and available()


def attend(
    x: Tensor, qkv: Tensor, out: Tensor, eps: float, heads: int, rotary: Rotary | None = None
) -> Tensor:
    """rms_norm(x + attention(x)) over channels, with rotary angles if their tables are given.

    x is (..., position, channel), qkv (3 x channel, channel), out (channel, channel).
    Proved by tests/kernels/test_attention.py.
    """
    positions, width = x.shape[-2:]
    tables = () if rotary is None else rotary
    fitting = all(t.shape == (positions, width // heads) for t in tables)
    if not (usable(x, 128) and fitting):
        return reference.attend(x, qkv, out, eps, heads, rotary)
    rows = x.contiguous().view(-1, width)
    change = attention_change(rows, positions, qkv, out, heads, rotary)
    y: Tensor = torch.ops.tiltrm.residual_norm(rows, change, eps)[0]
    return y.view(x.shape)


def attention_change(
    rows: Tensor, positions: int, qkv: Tensor, out: Tensor, heads: int, rotary: Rotary | None
) -> Tensor:
    """attention(x) for the rows of x: (batch x position, channel)."""
    with torch.autocast(rows.device.type, enabled=False):  # x has the precision that is wanted
        parts = _split(F.linear(rows, _as(qkv, rows)), () if rotary is None else rotary)
        query, key, value = (
            part.unflatten(-1, (heads, -1)).unflatten(0, (-1, positions)).transpose(1, 2)
            for part in parts
        )  # (batch, head, position, -)
        mixed = F.scaled_dot_product_attention(query, key, value)
        return F.linear(mixed.transpose(1, 2).reshape(rows.shape), _as(out, rows))


def _split(qkv: Tensor, tables: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Query, key and value, each (row, channel), the first two rotated.

    If a slope is wanted, they get memory of their own, so that qkv can be freed and one pass
    rotates their slopes back and puts them together.
    """
    if not tables:
        return qkv.chunk(3, dim=1)
    angles = [t.contiguous() for t in tables]
    if torch.is_grad_enabled() and qkv.requires_grad:
        parts: tuple[Tensor, ...] = torch.ops.tiltrm.split_heads(qkv, *angles)
        return parts
    torch.ops.tiltrm.rotate_(qkv, *angles)
    return qkv.chunk(3, dim=1)


def mix_tokens(x: Tensor, gate_up: Tensor, down: Tensor, eps: float) -> Tensor:
    """rms_norm(x' + down(silu(gate x') * up x')) over positions, x' = x transposed; then back.

    x is (..., position, channel), gate_up (2 x hidden, position), down (position, hidden).
    Proved by tests/kernels/test_tokens.py.
    """
    positions = x.shape[-2]
    if not (64 < positions <= 128 and usable(x, down.shape[1])):
        return reference.mix_tokens(x, gate_up, down, eps)
    rows = x.contiguous().view(-1, *x.shape[-2:])
    y: Tensor = torch.ops.tiltrm.mix_tokens(rows, _as(gate_up, x), _as(down, x), eps)[0]
    return y.view(x.shape)


def mix_channels(x: Tensor, gate_up: Tensor, down: Tensor, eps: float) -> Tensor:
    """rms_norm(x + down(silu(gate x) * up x)) over channels; x is (..., position, channel).

    Proved by tests/kernels/test_channels.py.
    """
    if not usable(x, down.shape[1]):
        return reference.mix_channels(x, gate_up, down, eps)
    rows = x.contiguous().view(-1, x.shape[-1])
    y: Tensor = torch.ops.tiltrm.mix_channels(rows, _as(gate_up, x), _as(down, x), eps)[0]
    return y.view(x.shape)


def add_inputs(a: Tensor, b: Tensor, inputs: Tensor) -> Tensor:
    """a + (b + inputs), in this order, inputs being shared by particles: (puzzle, particle, ...).

    Proved by tests/kernels/test_elementwise.py, bit for bit.
    """
    shapes = {a.shape, (len(a), 1, *a.shape[2:])} if a.dim() > 2 else set()
    fitting = b.shape == a.shape and inputs.shape in shapes
    whole = all(t.is_contiguous() and t.dtype == a.dtype for t in (a, b, inputs))
    slopes = torch.is_grad_enabled() and any(t.requires_grad for t in (a, b, inputs))
    if not (fitting and whole and not slopes and usable(a, 128)) or torch.compiler.is_compiling():
        return a + (b + inputs)
    from tiltrm.kernels import elementwise  # here, since it needs Triton

    return elementwise.add_inputs(a, b, inputs)


def _as(weight: Tensor, x: Tensor) -> Tensor:
    return weight.to(x.dtype).contiguous()
