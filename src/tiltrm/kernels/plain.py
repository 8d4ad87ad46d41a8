"""The same functions in plain torch: the reference, and what runs where no kernel can."""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tiltrm.model.layers import rms_norm, rotate

WORD = 0xFFFFFFFF

Rotary = tuple[Tensor, Tensor]  # cos and sin: (position, head width), as `layers.rotary_table`


class Noise(NamedTuple):
    """sigma xi(key, site): which noise is added to each trajectory."""

    keys: Tensor  # (trajectory,) int64
    site: int
    sigma: float


def gated_mlp(x: Tensor, gate_up: Tensor, down: Tensor) -> Tensor:
    """down(silu(gate(x)) * up(x)), as `tiltrm.model.layers.SwiGLU`."""
    gate, up = F.linear(x, gate_up).chunk(2, dim=-1)
    return F.linear(F.silu(gate) * up, down)


def attention(x: Tensor, qkv: Tensor, out: Tensor, heads: int, rotary: Rotary | None) -> Tensor:
    """Full self-attention over positions, as `tiltrm.model.layers.Attention`."""
    *lead, positions, width = x.shape
    all_heads = F.linear(x, qkv).reshape(-1, positions, 3 * heads, width // heads)
    query, key, value = all_heads.transpose(1, 2).chunk(3, dim=1)  # (batch, head, position, -)
    if rotary is not None:
        query, key = rotate(query, *rotary), rotate(key, *rotary)
    mixed = F.scaled_dot_product_attention(query, key, value)
    return F.linear(mixed.transpose(1, 2).reshape(*lead, positions, width), out)


def attend(
    x: Tensor, qkv: Tensor, out: Tensor, eps: float, heads: int, rotary: Rotary | None = None
) -> Tensor:
    """The first half of `tiltrm.model.layers.Block` with attention."""
    return rms_norm(x + attention(x, qkv, out, heads, rotary), eps)


def mix_tokens(x: Tensor, gate_up: Tensor, down: Tensor, eps: float) -> Tensor:
    """The first half of `tiltrm.model.layers.Block` with token mixing."""
    turned = x.transpose(-1, -2)
    return rms_norm(turned + gated_mlp(turned, gate_up, down), eps).transpose(-1, -2)


def mix_channels(x: Tensor, gate_up: Tensor, down: Tensor, eps: float) -> Tensor:
    """The second half of `tiltrm.model.layers.Block`."""
    return rms_norm(x + gated_mlp(x, gate_up, down), eps)


def _multiply(a: Tensor, b: int) -> tuple[Tensor, Tensor]:
    """High and low word of a 32 x 32 bit product; int64 keeps its bits when it wraps."""
    product = a * b
    return (product >> 32) & WORD, product & WORD


def philox(keys: Tensor, site: int, counters: int) -> Tensor:
    """Philox 4x32-10 of (counter, site, 0, 0): (trajectory, counter, 4) words as int64."""
    c0 = torch.arange(counters, device=keys.device).expand(len(keys), -1)
    c1, c2, c3 = torch.full_like(c0, site & WORD), torch.zeros_like(c0), torch.zeros_like(c0)
    k0, k1 = (keys & WORD)[:, None], ((keys >> 32) & WORD)[:, None]
    for _ in range(10):
        high_b, low_b = _multiply(c2, 0xCD9E8D57)
        high_a, low_a = _multiply(c0, 0xD2511F53)
        c0, c1, c2, c3 = high_b ^ c1 ^ k0, low_b, high_a ^ c3 ^ k1, low_a
        k0, k1 = (k0 + 0x9E3779B9) & WORD, (k1 + 0xBB67AE85) & WORD
    return torch.stack((c0, c1, c2, c3), dim=-1)


def normals(keys: Tensor, site: int, elements: int) -> Tensor:
    """xi(key, site): (trajectory, element) float32, independent standard normals."""
    words = philox(keys, site, -(-elements // 4))
    signed = torch.where(words > WORD // 2, words - WORD - 1, words)
    uniform = torch.where(signed < 0, -signed - 1, signed).float() * 4.6566127342e-10
    radius = torch.sqrt(-2.0 * torch.log(uniform[..., 0::2].clamp(min=1.0e-7)))
    angle = 2.0 * math.pi * uniform[..., 1::2]
    pairs = torch.stack((radius * angle.cos(), radius * angle.sin()), dim=-1)
    return pairs.flatten(1)[:, :elements]
