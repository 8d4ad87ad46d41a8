"""Make a model use the fused functions. The names of its parameters stay as they are."""

from typing import TypeVar

from torch import Tensor, nn

from tiltrm.kernels.dispatch import add_inputs, attend, mix_channels, mix_tokens
from tiltrm.model.layers import Block
from tiltrm.model.trm import Network

AnyModule = TypeVar("AnyModule", bound=nn.Module)


class FusedBlock(Block):
    """A Block whose halves are `mix_tokens` (or `attend`) and `mix_channels`."""

    plain = Block

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


class FusedNetwork(Network):
    """A Network that adds its three inputs in one pass."""

    plain = Network

    def sum(self, a: Tensor, b: Tensor, inputs: Tensor | None) -> Tensor:
        return a + b if inputs is None else add_inputs(a, b, inputs)


FUSED: dict[type, type] = {kind.plain: kind for kind in (FusedBlock, FusedNetwork)}


def fuse(model: AnyModule) -> AnyModule:
    """Give every Block and Network of the model its fused class, in place.

    `tiltrm.model.unfused.unfuse` is the inverse. Proved by tests/kernels/test_fuse.py.
    """
    for module in model.modules():
        module.__class__ = FUSED.get(type(module), type(module))
    return model


def fused(model: nn.Module) -> bool:
    """Whether the model has Blocks, and each of them is fused."""
    blocks = [module for module in model.modules() if isinstance(module, Block)]
    return bool(blocks) and all(isinstance(block, FusedBlock) for block in blocks)
