"""The kernels as torch operators, with shapes and slopes, so that torch.compile keeps them whole.

Importing this module needs Triton; `tiltrm.kernels` does so only where `available()`.
Each operator that ends in a norm returns 1 / rms beside its result: it is small, and it spares the
backward pass the second half of the forward one.
"""

from typing import Any

import torch
from torch import Tensor

from tiltrm.kernels import channels, rotary, tokens


@torch.library.custom_op("tiltrm::mix_tokens", mutates_args=())
def mix_tokens(x: Tensor, gate_up: Tensor, down: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    return tokens.forward(x, gate_up, down, eps)


@torch.library.custom_op("tiltrm::mix_tokens_backward", mutates_args=())
def mix_tokens_backward(
    dy: Tensor, x: Tensor, gate_up: Tensor, down: Tensor, y: Tensor, scale: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    return tokens.backward(dy.contiguous(), x, gate_up, down, y, scale)


@torch.library.custom_op("tiltrm::mix_channels", mutates_args=())
def mix_channels(x: Tensor, gate_up: Tensor, down: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    return channels.forward(x, gate_up, down, eps)


@torch.library.custom_op("tiltrm::mix_channels_backward", mutates_args=())
def mix_channels_backward(
    dy: Tensor, x: Tensor, gate_up: Tensor, down: Tensor, y: Tensor, scale: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    return channels.backward(dy.contiguous(), x, gate_up, down, y, scale)


@torch.library.custom_op("tiltrm::rotate_", mutates_args={"qkv"})
def rotate_(qkv: Tensor, cos: Tensor, sin: Tensor) -> None:
    rotary.rotate_(qkv, cos, sin)


@torch.library.custom_op("tiltrm::split_heads", mutates_args=())
def split_heads(qkv: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return rotary.split(qkv, cos, sin)


@torch.library.custom_op("tiltrm::split_heads_backward", mutates_args=())
def split_heads_backward(
    query: Tensor, key: Tensor, value: Tensor, cos: Tensor, sin: Tensor
) -> Tensor:
    slopes = query.contiguous(), key.contiguous(), value.contiguous()
    return rotary.split_backward(slopes, cos, sin)


@torch.library.custom_op("tiltrm::residual_norm", mutates_args=())
def residual_norm(x: Tensor, out: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    return channels.residual_norm(x, out, eps)


@torch.library.custom_op("tiltrm::residual_norm_backward", mutates_args=())
def residual_norm_backward(dy: Tensor, y: Tensor, scale: Tensor) -> Tensor:
    return channels.norm_backward(dy.contiguous(), y, scale)


@mix_tokens.register_fake
def _(x: Tensor, gate_up: Tensor, down: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), x.new_empty((x.shape[0], x.shape[2]), dtype=torch.float32)


@mix_channels.register_fake
def _(x: Tensor, gate_up: Tensor, down: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), x.new_empty((x.shape[0],), dtype=torch.float32)


@split_heads.register_fake
def _(qkv: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    rows, width = qkv.shape[0], qkv.shape[1] // 3
    return qkv.new_empty((rows, width)), qkv.new_empty((rows, width)), qkv.new_empty((rows, width))


@split_heads_backward.register_fake
def _(query: Tensor, key: Tensor, value: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return query.new_empty((query.shape[0], 3 * query.shape[1]))


@residual_norm.register_fake
def _(x: Tensor, out: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), x.new_empty((x.shape[0],), dtype=torch.float32)


@residual_norm_backward.register_fake
def _(dy: Tensor, y: Tensor, scale: Tensor) -> Tensor:
    return torch.empty_like(y)


@mix_tokens_backward.register_fake
@mix_channels_backward.register_fake
def _(
    dy: Tensor, x: Tensor, gate_up: Tensor, down: Tensor, y: Tensor, scale: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(x), torch.empty_like(gate_up), torch.empty_like(down)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, gate_up, down, _ = inputs
    ctx.save_for_backward(x, gate_up, down, *output)


def _tokens_slopes(ctx: Any, dy: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    return *mix_tokens_backward(dy, *ctx.saved_tensors), None


def _channels_slopes(ctx: Any, dy: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    return *mix_channels_backward(dy, *ctx.saved_tensors), None


mix_tokens.register_autograd(_tokens_slopes, setup_context=_save)
mix_channels.register_autograd(_channels_slopes, setup_context=_save)


def _save_angles(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs[1:])


def _split_slopes(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
    return split_heads_backward(*slopes, *ctx.saved_tensors), None, None


def _save_norm(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*output)


def _norm_slopes(ctx: Any, dy: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    dz = residual_norm_backward(dy, *ctx.saved_tensors)
    return dz, dz, None


split_heads.register_autograd(_split_slopes, setup_context=_save_angles)
residual_norm.register_autograd(_norm_slopes, setup_context=_save_norm)
