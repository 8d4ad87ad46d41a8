"""Fresh inputs of one layer of the network, for benchmarks that check before they time."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from tiltrm.model.layers import Block

EPS = 1e-5
CUDA = torch.cuda.is_available()
DEVICE, DTYPE = ("cuda", torch.bfloat16) if CUDA else ("cpu", torch.float32)


class Problem(NamedTuple):
    """Fresh inputs of one layer, and the slope of its output."""

    x: Tensor  # (batch, position, channel)
    tokens: tuple[Tensor, Tensor]  # gate_up, down of token mixing
    channels: tuple[Tensor, Tensor]
    slope: Tensor

    @property
    def rows(self) -> Tensor:
        return self.x.flatten(0, 1)

    @property
    def row_slopes(self) -> Tensor:
        return self.slope.flatten(0, 1)

    @property
    def token_flops(self) -> float:
        """Counted arithmetic of token mixing, forward."""
        return 6.0 * self.x.numel() * self.tokens[1].shape[1]

    @property
    def channel_flops(self) -> float:
        """Counted arithmetic of channel mixing, forward."""
        return 6.0 * self.x.numel() * self.channels[1].shape[1]

    @property
    def flops(self) -> float:
        """Counted arithmetic of the layer, forward."""
        return self.token_flops + self.channel_flops

    def block(self, dtype: torch.dtype = DTYPE) -> Block:
        """A Block that holds these weights."""
        _, positions, width = self.x.shape
        block = Block(positions, width, 1, 4.0, token_mixing=True, eps=EPS)
        names = ("mlp_t.gate_up_proj", "mlp_t.down_proj", "mlp.gate_up_proj", "mlp.down_proj")
        weights = zip(names, (*self.tokens, *self.channels), strict=True)
        block.load_state_dict({f"{name}.weight": weight for name, weight in weights})
        return block.to(DEVICE, dtype)

    def double(self) -> "Problem":
        tokens, channels = ((a.double(), b.double()) for a, b in (self.tokens, self.channels))
        return Problem(self.x.double(), tokens, channels, self.slope.double())


def problem(batch: int, positions: int, width: int, hidden: tuple[int, int]) -> Problem:
    def draw(*shape: int, fan: int = 1) -> Tensor:
        return (torch.randn(*shape, device=DEVICE) / math.sqrt(fan)).to(DTYPE)

    t, c = hidden
    return Problem(
        draw(batch, positions, width),
        (draw(2 * t, positions, fan=positions), draw(positions, t, fan=t)),
        (draw(2 * c, width, fan=width), draw(width, c, fan=c)),
        draw(batch, positions, width),
    )
