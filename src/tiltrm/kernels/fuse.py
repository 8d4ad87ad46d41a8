"""Make a model use the fused functions, and undo it; names of parameters stay as they are."""

from collections.abc import Mapping
from typing import TypeVar

from torch import Tensor, nn

from tiltrm.kernels.dispatch import add_inputs, attend, mix_channels, mix_tokens
from tiltrm.model.layers import Block
from tiltrm.model.trm import Network

Model = TypeVar("Model", bound=nn.Module)


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


PLAIN: dict[type, type] = {kind: kind.plain for kind in (FusedBlock, FusedNetwork)}
FUSED = {plain: fused for fused, plain in PLAIN.items()}


def fuse(model: Model) -> Model:
    """Give every Block and Network of the model its fused class, in place. See test_fuse.py."""
    return _exchange(model, FUSED)


def unfuse(model: Model) -> Model:
    """The inverse of `fuse`."""
    return _exchange(model, PLAIN)


def fused(model: nn.Module) -> bool:
    """Whether every Block of the model is a fused one, and there is one."""
    kinds = {type(module) for module in model.modules() if isinstance(module, Block)}
    return kinds == {FusedBlock}


def _exchange(model: Model, classes: Mapping[type, type]) -> Model:
    for module in model.modules():
        module.__class__ = classes.get(type(module), type(module))
    return model
