"""Weights in e4m3, and the scales of 8-bit products.

e4m3 is a floating-point format: between 2^-6 and 448 its relative error does not depend on the
scale. So one scale serves a whole tensor where a scale of every row or column would cost as much as
the gate itself: activations behind a norm, whose bound is known, the hidden side, and the weights
of gate and up. The weights of the second product are scaled by output channel.
"""
# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def,untyped-decorator"

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from tiltrm.kernels.launch import paired

EIGHT_BIT = torch.float8_e4m3fn
LARGEST = 448.0  # of e4m3
ROW_SCALE = 16.0  # of a normalised row: numbers up to 28 are exact in range, sqrt(512) is 22.6
SUM_SCALE = 8.0  # of the sum of three that token mixing begins with: numbers up to 56
SIGMAS = 6.0  # of gate and up, that the scale of the hidden side leaves room for


class QuantisedMLP(NamedTuple):
    """A SwiGLU in e4m3 with the factors that turn sums of products into numbers.

    gate = 2 half_gate sum, up x hidden scale = up_scale sum, output = down_scale sum. Half of the
    gate is the argument of the hyperbolic tangent in `silu_of_half`.
    """

    gate_up: Tensor  # (2 x hidden, input), rows padded to a multiple of 16
    down: Tensor  # (output, hidden)
    half_gate: float
    up_scale: float
    down_scale: Tensor  # (output,)


@triton.jit
def permuted(hidden, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The columns of a tile in the order of `permutation`."""
    turned = hidden.reshape(ROWS, COLUMNS // 16, 2, 4, 2).permute(0, 1, 3, 2, 4)
    return turned.reshape(ROWS, COLUMNS)


def permutation(hidden: int) -> Tensor:
    """Which hidden unit stands where: of each 16, pairs of the first 8 and of the last by turns."""
    return torch.arange(hidden).reshape(-1, 2, 4, 2).transpose(1, 2).flatten()


def empty(shape: Sequence[int], device: torch.device) -> Tensor:
    """Memory for numbers in e4m3. Torch fills bytes, where it is told to fill new memory."""
    return torch.empty(tuple(shape), device=device, dtype=torch.uint8).view(EIGHT_BIT)


def rounded(weight: Tensor, scale: Tensor) -> Tensor:
    """weight / scale in e4m3."""
    return (weight.detach().float() / scale).to(EIGHT_BIT)


def scale_of(largest: Tensor) -> Tensor:
    """The scale that moves the largest number of a weight to the largest of e4m3; never 0."""
    scale = largest.float() / LARGEST
    return scale.where(scale > 0, 1.0)


def hidden_scale(gate: Tensor, up: Tensor) -> float:
    """A power of two, at most 1, that keeps SIGMAS standard deviations of both inside e4m3."""
    largest = float((gate.float().norm(dim=1) * up.float().norm(dim=1)).max()) * SIGMAS**2
    return min(1.0, 2.0 ** math.floor(math.log2(LARGEST / max(largest, 1e-30))))


def quantise_mlp(gate_up: Tensor, down: Tensor, input_scale: float) -> QuantisedMLP:
    """The weights of a SwiGLU whose input is multiplied by `input_scale` before it is rounded."""
    kept = hidden_scale(*gate_up.detach().chunk(2))
    each, whole = scale_of(down.detach().abs().amax(1)), scale_of(gate_up.detach().abs().amax())
    padded = torch.nn.functional.pad(gate_up.detach(), (0, -gate_up.shape[1] % 16))
    factor = float(whole) / input_scale
    second = rounded(down, each[:, None])
    return QuantisedMLP(rounded(padded, whole), second, 0.5 * factor, kept * factor, each / kept)


def token_weights(gate_up: Tensor, down: Tensor) -> QuantisedMLP:
    """As `tokens_eight_bit` takes them: down's columns in the order of `permutation`."""
    mlp = quantise_mlp(gate_up, down, SUM_SCALE)
    order = permutation(down.shape[1]).to(down.device)
    return mlp._replace(down=mlp.down.view(torch.uint8)[:, order].contiguous().view(EIGHT_BIT))


def channel_weights(gate_up: Tensor, down: Tensor) -> QuantisedMLP:
    """As `channels_eight_bit` takes them: gate_up's rows paired."""
    mlp = quantise_mlp(gate_up, down, ROW_SCALE)
    return mlp._replace(gate_up=paired(mlp.gate_up.view(torch.uint8)).view(EIGHT_BIT))
