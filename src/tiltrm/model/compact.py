"""The same network with fewer operations: hidden units whose weights decayed to nothing are left
out of every SwiGLU.

Weight decay drives most hidden units of a long training to zero: of the 1,536 in a channel-mixing
layer of the bundled Sudoku model, some 390 contribute. `python -m benchmarks.cpu` prints the sizes.
"""

import math
from typing import TypeVar

import torch
from torch import Tensor, nn

from tiltrm.model.layers import SwiGLU, hidden_units, multiple_of

TOLERANCE = 1e-4  # of a row's norm; bfloat16 rounds each number by up to 4e-3
MULTIPLE = 128  # units stay in groups of so many, which the fused kernels need

AnyModule = TypeVar("AnyModule", bound=nn.Module)


def contributions(mlp: SwiGLU) -> Tensor:
    """The estimated size of each hidden unit's part in the output, over the norm of an input row.

    |gate_j| |up_j| |down_j| / sqrt(width): the root mean square of silu(gate x) * (up x) * down
    for inputs of mean square 1 is no larger if the two products are independent. (hidden,) float32.
    """
    down = mlp.down_proj.weight.detach().float()
    gate, up = mlp.gate_up_proj.weight.detach().float().chunk(2)
    norms: Tensor = gate.norm(dim=1) * up.norm(dim=1) * down.norm(dim=0)
    return norms / math.sqrt(len(down))


def kept_units(mlp: SwiGLU, tolerance: float = TOLERANCE) -> Tensor:
    """The hidden units to keep, in their order: the others together contribute < tolerance."""
    size = contributions(mlp)
    order = size.argsort()
    idle = int((size[order].square().cumsum(0).sqrt() < tolerance).sum())
    kept = min(len(size), multiple_of(max(1, len(size) - idle), MULTIPLE))
    return order[len(size) - kept :].sort().values


@torch.no_grad()
def compact(model: AnyModule, tolerance: float = TOLERANCE) -> AnyModule:
    """Leave the idle hidden units out of every SwiGLU of a frozen model, in place.

    Proved by tests/model/test_compact.py.
    """
    for mlp in [module for module in model.modules() if isinstance(module, SwiGLU)]:
        kept = kept_units(mlp, tolerance)
        gate, up = mlp.gate_up_proj.weight.chunk(2)
        _replace(mlp.gate_up_proj, torch.cat((gate[kept], up[kept])))
        _replace(mlp.down_proj, mlp.down_proj.weight[:, kept].contiguous())
    return model


def is_compact(model: nn.Module, expansion: float) -> bool:
    """Whether a SwiGLU has fewer hidden units than this expansion gives it."""
    mlps = [module for module in model.modules() if isinstance(module, SwiGLU)]
    shapes = [mlp.down_proj.weight.shape for mlp in mlps]
    return any(hidden != hidden_units(width, expansion) for width, hidden in shapes)


def _replace(layer: nn.Linear, weight: Tensor) -> None:
    layer.weight = nn.Parameter(weight, requires_grad=False)
    layer.out_features, layer.in_features = weight.shape
