"""The blocks that TRM and HRM share: SwiGLU, attention with rotary positions, post-norm."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def rms_norm(x: Tensor, eps: float) -> Tensor:
    """x / rms(x) over the last dimension, computed in float32, without a learned gain."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)).to(x.dtype)


def multiple_of(value: float, factor: int) -> int:
    """The rounded value, raised to the next multiple of factor."""
    return -(-round(value) // factor) * factor


def linear(inputs: int, outputs: int, *, bias: bool = False, scale: float = 1.0) -> nn.Linear:
    """A Linear started from a truncated normal of standard deviation scale / sqrt(inputs)."""
    layer = nn.Linear(inputs, outputs, bias=bias)
    truncated_normal_(layer.weight, scale / math.sqrt(inputs))
    return layer


@torch.no_grad()
def truncated_normal_(tensor: Tensor, std: float) -> Tensor:
    """Fill with a normal cut at two standard deviations, rescaled to the given one."""
    if std == 0.0 or tensor.is_meta:  # a meta tensor holds nothing; its erfinv imports for 1 s
        return tensor.zero_()
    kept = math.erf(math.sqrt(2.0))
    density = math.exp(-2.0) / math.sqrt(2.0 * math.pi)
    shrink = math.sqrt(1.0 - 4.0 * density / kept)
    return nn.init.trunc_normal_(tensor, std=std / shrink, a=-2 * std / shrink, b=2 * std / shrink)


class _Lookup(torch.autograd.Function):
    """table[tokens], with a slope that is one matrix product.

    Torch's scattered sum takes 30 ms of a training step of 95 ms, because few tokens occur often.
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, tokens: Tensor) -> Tensor:
        ctx.save_for_backward(tokens)
        ctx.size = len(table)
        return table[tokens]

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None]:
        (tokens,) = ctx.saved_tensors
        each = torch.arange(ctx.size, device=tokens.device)
        chosen = (each[:, None] == tokens.flatten()).to(slope.dtype)  # (token, place)
        return chosen @ slope.flatten(0, -2), None


def lookup(table: Tensor, tokens: Tensor) -> Tensor:
    """The rows of a small table: (token, width), (...) int64 -> (..., width)."""
    found: Tensor = _Lookup.apply(table, tokens)  # type: ignore[no-untyped-call]
    return found


def hidden_units(width: int, expansion: float) -> int:
    """Hidden units of a SwiGLU: 2/3 of width x expansion, raised to a multiple of 256."""
    return multiple_of(expansion * width * 2 / 3, 256)


class SwiGLU(nn.Module):
    """down(silu(gate(x)) * up(x)) with the `hidden_units` of its width."""

    def __init__(self, width: int, expansion: float, scale: float = 1.0) -> None:
        super().__init__()
        hidden = hidden_units(width, expansion)
        self.gate_up_proj = linear(width, 2 * hidden, scale=scale)
        self.down_proj = linear(hidden, width, scale=scale)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.gate_up_proj(x).chunk(2, dim=-1)
        out: Tensor = self.down_proj(F.silu(gate) * up)
        return out


def rotary_table(positions: int, head_width: int, theta: float) -> tuple[Tensor, Tensor]:
    """cos and sin of the rotary angles: (position, head width), halves repeated.

    Always on the CPU: arithmetic on the meta device imports torch's compiler, which takes a second.
    """
    pairs = torch.arange(0, head_width, 2, device="cpu", dtype=torch.float64)
    places = torch.arange(positions, device="cpu", dtype=torch.float64)
    angle = torch.outer(places, theta ** -(pairs / head_width)).repeat(1, 2)
    return angle.cos().float(), angle.sin().float()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate each pair (i, i + half) of the last dimension by its position's angle."""
    left, right = x.chunk(2, dim=-1)
    return (x * cos + torch.cat((-right, left), dim=-1) * sin).to(x.dtype)


class Attention(nn.Module):
    """Full self-attention over positions, with rotary angles if a table is given."""

    def __init__(self, width: int, heads: int, scale: float = 1.0) -> None:
        super().__init__()
        self.heads = heads
        self.qkv_proj = linear(width, 3 * width, scale=scale)
        self.o_proj = linear(width, width, scale=scale)

    def forward(self, x: Tensor, rotary: tuple[Tensor, Tensor] | None) -> Tensor:
        *lead, positions, width = x.shape
        qkv = self.qkv_proj(x).reshape(-1, positions, 3 * self.heads, width // self.heads)
        query, key, value = qkv.transpose(1, 2).chunk(3, dim=1)  # (batch, head, position, -)
        if rotary is not None:
            query, key = rotate(query, *rotary), rotate(key, *rotary)
        mixed = F.scaled_dot_product_attention(query, key, value)
        out: Tensor = self.o_proj(mixed.transpose(1, 2).reshape(*lead, positions, width))
        return out


class Block(nn.Module):
    """Mix over positions, then over channels, each with a residual and a norm after it.

    Token mixing normalises over *positions*, as TinyRecursiveModels does.
    Proved by tests/model/test_fixtures.py.
    """

    def __init__(
        self, positions: int, width: int, heads: int, expansion: float, *, token_mixing: bool,
        eps: float = 1e-5, scale: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.eps = eps
        self.mlp_t = SwiGLU(positions, expansion, scale) if token_mixing else None
        self.self_attn = None if token_mixing else Attention(width, heads, scale)
        self.mlp = SwiGLU(width, expansion, scale)

    def forward(self, x: Tensor, rotary: tuple[Tensor, Tensor] | None = None) -> Tensor:
        if self.mlp_t is not None:
            channels = x.transpose(-1, -2)
            x = rms_norm(channels + self.mlp_t(channels), self.eps).transpose(-1, -2)
        else:
            assert self.self_attn is not None
            x = rms_norm(x + self.self_attn(x, rotary), self.eps)
        return rms_norm(x + self.mlp(x), self.eps)
