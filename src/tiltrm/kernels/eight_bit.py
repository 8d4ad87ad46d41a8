"""Models with 8-bit products (e4m3), for exploration: norms, states and noise stay as they are.

Token mixing and channel mixing take 8-bit operands. The products of attention do not.
"""

from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor, nn

from tiltrm.errors import DeviceError
from tiltrm.kernels.dispatch import attention_change, available, usable
from tiltrm.kernels.fuse import FusedBlock, fuse

if TYPE_CHECKING:
    from tiltrm.kernels.quantised import QuantisedMLP

AnyModule = TypeVar("AnyModule", bound=nn.Module)


class EightBitBlock(FusedBlock):
    """A FusedBlock with its weights in e4m3 beside them. Slopes are those of the FusedBlock."""

    tokens_eight_bit: "QuantisedMLP | None"
    channels_eight_bit: "QuantisedMLP"

    def forward(self, x: Tensor, rotary: tuple[Tensor, Tensor] | None = None) -> Tensor:
        positions, width = x.shape[-2:]
        slopes = torch.is_grad_enabled() and x.requires_grad
        fitting = self.mlp_t is None or 64 < positions <= 128
        if slopes or not fitting or not usable(x, self.mlp.down_proj.weight.shape[1]):
            return super().forward(x, rotary)
        from tiltrm.kernels import channels_eight_bit as channels  # here: they need Triton
        from tiltrm.kernels import tokens_eight_bit as tokens

        if self.tokens_eight_bit is not None:
            rows = x.contiguous().view(-1, positions, width)
            y, eight = (t.view(-1, width) for t in tokens.forward(
                rows, self.tokens_eight_bit, self.eps
            ))  # fmt: skip
        else:
            full = self.self_attn
            assert full is not None
            weights = full.qkv_proj.weight, full.o_proj.weight
            rows = x.contiguous().view(-1, width)
            change = attention_change(rows, positions, *weights, full.heads, rotary)
            y, eight = channels.residual_norm(rows, change, self.eps, eight_bit=True)
        return channels.forward(y, eight, self.channels_eight_bit, self.eps).view(x.shape)


def quantise(model: AnyModule) -> AnyModule:
    """Fuse a frozen model and give its Blocks 8-bit weights, in place, on their device.

    `tiltrm.model.unfused.unfuse` is the inverse. Proved by tests/kernels/test_eight_bit.py.
    """
    if not available():
        raise DeviceError(
            "8-bit products need Triton and a GPU of Hopper's kind or newer, got none; "
            "use another precision"
        )
    from tiltrm.kernels.quantised import channel_weights, token_weights

    for block in [module for module in fuse(model).modules() if isinstance(module, FusedBlock)]:
        block.__class__ = EightBitBlock
        assert isinstance(block, EightBitBlock)
        own, across = block.mlp, block.mlp_t
        block.channels_eight_bit = channel_weights(own.gate_up_proj.weight, own.down_proj.weight)
        block.tokens_eight_bit = None
        if across is not None:
            weights = across.gate_up_proj.weight, across.down_proj.weight
            block.tokens_eight_bit = token_weights(*weights)
    return model
