"""Models without fused operations. Plain ones have second derivatives, fused ones do not."""

import copy
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

AnyModel = TypeVar("AnyModel")
AnyModule = TypeVar("AnyModule", bound=nn.Module)


class MathAttention(TorchFunctionMode):
    """A context in which torch's attention is computed by matrix products and a softmax.

    Torch's fast attention kernels have no second derivative. The context holds for this thread
    alone. `sdpa_kernel` switches all threads: two that leave it in the wrong order leave the fast
    kernels off for good.
    Proved by tests/diagnose/test_stability.py.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if func is F.scaled_dot_product_attention:
            return torch.ops.aten._scaled_dot_product_attention_math(*args, **(kwargs or {}))[0]
        return func(*args, **(kwargs or {}))


def unfuse(model: AnyModule) -> AnyModule:
    """The inverse of `tiltrm.kernels.fuse`, in place. A fused class names its plain one."""
    for module in model.modules():
        module.__class__ = getattr(type(module), "plain", type(module))
    return model


def unfused_copy(model: AnyModel) -> AnyModel:
    """A model without fused operations that shares the parameters of this one.

    The given model is not changed, so that other threads can go on with it. An object that is no
    module of torch is returned as it is.
    Proved by tests/kernels/test_fuse.py.
    """
    if not isinstance(model, nn.Module):
        return model
    shared = {id(own): own for own in (*model.parameters(), *model.buffers())}
    return unfuse(copy.deepcopy(model, shared))
