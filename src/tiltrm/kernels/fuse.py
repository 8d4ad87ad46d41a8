"""Make a model use the fused functions, and undo it; names of parameters stay as they are."""

from typing import TypeVar

from torch import Tensor, nn

from tiltrm.kernels.dispatch import mix_channels, mix_tokens
from tiltrm.model.layers import Block, rms_norm

Model = TypeVar("Model", bound=nn.Module)


class FusedBlock(Block):
    """A Block whose halves are `mix_tokens` (or attention) and `mix_channels`."""

    def forward(self, x: Tensor, rotary: tuple[Tensor, Tensor] | None = None) -> Tensor:
        if self.mlp_t is not None:
            mlp = self.mlp_t
            x = mix_tokens(x, mlp.gate_up_proj.weight, mlp.down_proj.weight, self.eps)
        else:
            assert self.self_attn is not None
            x = rms_norm(x + self.self_attn(x, rotary), self.eps)
        return mix_channels(x, self.mlp.gate_up_proj.weight, self.mlp.down_proj.weight, self.eps)


def fuse(model: Model) -> Model:
    """Turn every Block of the model into a FusedBlock, in place. Proved by test_fuse.py."""
    return _exchange(model, Block, FusedBlock)


def unfuse(model: Model) -> Model:
    """The inverse of `fuse`."""
    return _exchange(model, FusedBlock, Block)


def _exchange(model: Model, old: type[Block], new: type[Block]) -> Model:
    for module in model.modules():
        if type(module) is old:
            module.__class__ = new
    return model
