"""Make a model use the fused functions, and undo it; names of parameters stay as they are."""

from typing import TypeVar

from torch import Tensor, nn

from tiltrm.kernels.dispatch import attend, mix_channels, mix_tokens
from tiltrm.model.layers import Block

Model = TypeVar("Model", bound=nn.Module)


class FusedBlock(Block):
    """A Block whose halves are `mix_tokens` (or `attend`) and `mix_channels`."""

    def forward(self, x: Tensor, rotary: tuple[Tensor, Tensor] | None = None) -> Tensor:
        if self.mlp_t is not None:
            mlp = self.mlp_t
            x = mix_tokens(x, mlp.gate_up_proj.weight, mlp.down_proj.weight, self.eps)
        else:
            full = self.self_attn
            assert full is not None
            weights = full.qkv_proj.weight, full.o_proj.weight
            x = attend(x, *weights, self.eps, full.heads, rotary)
        return mix_channels(x, self.mlp.gate_up_proj.weight, self.mlp.down_proj.weight, self.eps)


def fuse(model: Model) -> Model:
    """Turn every Block of the model into a FusedBlock, in place. Proved by test_fuse.py."""
    return _exchange(model, Block, FusedBlock)


def unfuse(model: Model) -> Model:
    """The inverse of `fuse`."""
    return _exchange(model, FusedBlock, Block)


def fused(model: nn.Module) -> bool:
    """Whether every Block of the model is a fused one, and there is one."""
    kinds = {type(module) for module in model.modules() if isinstance(module, Block)}
    return kinds == {FusedBlock}


def _exchange(model: Model, old: type[Block], new: type[Block]) -> Model:
    for module in model.modules():
        if type(module) is old:
            module.__class__ = new
    return model
