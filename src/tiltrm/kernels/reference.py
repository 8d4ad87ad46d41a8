"""The fused functions in plain torch: the reference for tests, and the path without a kernel."""

import torch.nn.functional as F
from torch import Tensor

from tiltrm.model.layers import rms_norm, rotate

Rotary = tuple[Tensor, Tensor]  # cos and sin: (position, head width), as `layers.rotary_table`


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
    channels = x.transpose(-1, -2)
    return rms_norm(channels + gated_mlp(channels, gate_up, down), eps).transpose(-1, -2)


def mix_channels(x: Tensor, gate_up: Tensor, down: Tensor, eps: float) -> Tensor:
    """The second half of `tiltrm.model.layers.Block`."""
    return rms_norm(x + gated_mlp(x, gate_up, down), eps)
