"""Channel mixing with int8 products on a CPU, for `benchmarks.cpu`: is it faster, and right?

Weights are scaled by output channel and activations by row, so that no row depends on its batch.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tiltrm.model.build import Model
from tiltrm.model.layers import Block

LARGEST = 127.0


class Int8Linear(nn.Module):
    """A Linear without bias whose product is one of int8 matrices, summed in int32."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        weight = layer.weight.detach().float()
        scale = (weight.abs().amax(1) / LARGEST).clamp_min(1e-30)
        self.weight = (weight / scale[:, None]).round().to(torch.int8).t()  # (input, output)
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        rows = x.flatten(0, -2)
        scale = (rows.abs().amax(-1, keepdim=True).float() / LARGEST).clamp_min(1e-30)
        eight = (rows / scale).round_().to(torch.int8)
        out = torch._int_mm(eight, self.weight).float().mul_(scale).mul_(self.scale)
        folded: Tensor = out.to(x.dtype).unflatten(0, x.shape[:-1])
        return folded


class Int8SwiGLU(nn.Module):
    """A SwiGLU of Int8Linears."""

    def __init__(self, gate_up: nn.Linear, down: nn.Linear) -> None:
        super().__init__()
        self.gate_up_proj, self.down_proj = Int8Linear(gate_up), Int8Linear(down)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.gate_up_proj(x).chunk(2, dim=-1)
        out: Tensor = self.down_proj(F.silu(gate) * up)
        return out


def with_int8(model: Model) -> Model:
    """The model with channel mixing in int8, in place; token mixing and attention stay."""
    for block in [module for module in model.modules() if isinstance(module, Block)]:
        mlp = block.mlp
        block.mlp = Int8SwiGLU(mlp.gate_up_proj, mlp.down_proj)  # type: ignore[assignment]
    return model
