"""Channel mixing with int8 products on a CPU, for inference; everything else stays as it is.

Weights are scaled by output channel and activations by row, and integers sum exactly: a row does
not depend on its batch. `python -m benchmarks.cpu` prints the speed and the accuracy.
"""

from typing import TypeVar

import torch
from torch import Tensor, nn

from tiltrm.errors import DeviceError
from tiltrm.model.layers import Block

LARGEST = 127  # the largest integer; -128 stays unused, so that both signs have the same range
SMALLEST_SCALE = 1e-30  # a row of zeros has a scale, too
MULTIPLE = 64  # of inputs and outputs; the product of other sizes is computed without int8

AnyModule = TypeVar("AnyModule", bound=nn.Module)


class Int8Linear(nn.Linear):
    """A frozen Linear without bias, with its weight in int8 beside it.

    Slopes, devices other than a CPU and sizes that are no multiple of 64 take the Linear's product.
    """

    plain = nn.Linear  # for `tiltrm.model.unfused.unfuse`
    integers: Tensor  # (input, output) int8
    scale: Tensor  # (output,) float32

    def forward(self, x: Tensor) -> Tensor:
        slopes = torch.is_grad_enabled() and x.requires_grad
        if slopes or not x.is_cpu or self.in_features % MULTIPLE or self.out_features % MULTIPLE:
            return super().forward(x)
        rows = x.reshape(-1, self.in_features).float()
        scale = _scale(rows)
        # Into a new tensor: torch._int_mm leaves the product of one row undefined if the stride
        # between rows is 0, which other operations may pass on (pytorch/pytorch issue 195066).
        integers = torch.empty(rows.shape, dtype=torch.int8).copy_((rows / scale).round_())
        out = torch._int_mm(integers, self.integers).float()
        out = out.mul_(self.scale).mul_(scale)  # the small factor first: no overflow in between
        return out.to(x.dtype).view(*x.shape[:-1], self.out_features)


@torch.no_grad()
def with_int8(model: AnyModule) -> AnyModule:
    """Compute the channel mixing of a frozen model in int8, in place.

    Token mixing stays: rounding its rows takes the time that the product saves. Attention and the
    heads stay, too. `tiltrm.model.unfused.unfuse` is the inverse.
    Proved by tests/model/test_int8.py.
    """
    if not hasattr(torch, "_int_mm"):
        raise DeviceError(
            f"int8=True needs torch._int_mm, got torch {torch.__version__} without it; "
            "leave int8 out"
        )
    for block in [module for module in model.modules() if isinstance(module, Block)]:
        for layer in (block.mlp.gate_up_proj, block.mlp.down_proj):
            weight = layer.weight.float()
            scale = _scale(weight)
            layer.__class__ = Int8Linear
            rounded = (weight / scale).round_().to(torch.int8)
            layer.register_buffer("integers", rounded.t(), persistent=False)
            layer.register_buffer("scale", scale.flatten(), persistent=False)
    return model


def is_int8(model: nn.Module) -> bool:
    """Whether a layer computes in int8."""
    return any(isinstance(module, Int8Linear) for module in model.modules())


def _scale(rows: Tensor) -> Tensor:
    """The size of one integer step in each row of float32: (row, 1)."""
    return rows.abs().amax(-1, keepdim=True).div_(LARGEST).clamp_min_(SMALLEST_SCALE)
