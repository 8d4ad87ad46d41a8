"""The kernels as torch operators, with shapes and slopes, so that torch.compile keeps them whole.

Importing this module needs Triton; `tiltrm.kernels` does so only where `available()`.
Each operator returns 1 / rms beside its result: it is small, and it spares the backward pass the
second half of the forward one.
"""

from typing import Any

import torch
from torch import Tensor

from tiltrm.kernels import channels, channels_backward, noise, tokens, tokens_backward
from tiltrm.kernels.plain import Noise


@torch.library.custom_op("tiltrm::mix_tokens", mutates_args=())
def mix_tokens(x: Tensor, gate_up: Tensor, down: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    return tokens.forward(x, gate_up, down, eps)


@torch.library.custom_op("tiltrm::mix_tokens_backward", mutates_args=())
def mix_tokens_backward(
    dy: Tensor, x: Tensor, gate_up: Tensor, down: Tensor, y: Tensor, scale: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    return tokens_backward.backward(dy.contiguous(), x, gate_up, down, y, scale)


@torch.library.custom_op("tiltrm::mix_channels", mutates_args=())
def mix_channels(x: Tensor, gate_up: Tensor, down: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    return channels.forward(x, gate_up, down, eps)


@torch.library.custom_op("tiltrm::mix_channels_backward", mutates_args=())
def mix_channels_backward(
    dy: Tensor, x: Tensor, gate_up: Tensor, down: Tensor, y: Tensor, scale: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    return channels_backward.backward(dy.contiguous(), x, gate_up, down, y, scale)


@torch.library.custom_op("tiltrm::mix_channels_noisy", mutates_args=())
def mix_channels_noisy(
    x: Tensor, gate_up: Tensor, down: Tensor, eps: float, keys: Tensor, site: int, sigma: float
) -> Tensor:
    return channels.forward(x, gate_up, down, eps, Noise(keys, site, sigma))[0]


@torch.library.custom_op("tiltrm::add_noise", mutates_args={"x"})
def add_noise(x: Tensor, keys: Tensor, site: int, sigma: float) -> None:
    noise.add(x, Noise(keys, site, sigma))


@mix_tokens.register_fake
def _(x: Tensor, gate_up: Tensor, down: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), x.new_empty((x.shape[0], x.shape[2]), dtype=torch.float32)


@mix_channels.register_fake
def _(x: Tensor, gate_up: Tensor, down: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), x.new_empty((x.shape[0],), dtype=torch.float32)


@mix_channels_noisy.register_fake
def _(
    x: Tensor, gate_up: Tensor, down: Tensor, eps: float, keys: Tensor, site: int, sigma: float
) -> Tensor:
    return torch.empty_like(x)


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
