"""Second derivatives of a model, by operations that have them; nothing is switched for others."""

import copy
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

Model = TypeVar("Model")


class OpenAttention(TorchFunctionMode):
    """Inside, torch's attention is done by its products and a softmax, in this thread alone.

    Its fast kernels have no second derivative, and `sdpa_kernel` chooses for all threads: two that
    leave it in the wrong order leave the fast kernels off for good.
    Proved by tests/diagnose/test_stability.py.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if func is F.scaled_dot_product_attention:
            return torch.ops.aten._scaled_dot_product_attention_math(*args, **(kwargs or {}))[0]
        return func(*args, **(kwargs or {}))


def plain_twin(model: Model) -> Model:
    """A module that shares the model's parameters and has none of our fused operations.

    A fused module names its plain class. What is no module of torch is its own twin. The model is
    left as it is, so that other threads go on with it.
    Proved by tests/kernels/test_fuse.py.
    """
    if not isinstance(model, nn.Module):
        return model
    shared = {id(own): own for own in (*model.parameters(), *model.buffers())}
    twin = copy.deepcopy(model, shared)
    for module in twin.modules():
        module.__class__ = getattr(type(module), "plain", type(module))
    return twin
