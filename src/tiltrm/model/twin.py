"""A twin of a model for second derivatives: the same weights, by operations that have them."""

import copy
import math
from typing import TypeVar

from torch import Tensor, nn

from tiltrm.model.layers import Attention

Model = TypeVar("Model")


class OpenAttention(Attention):
    """Attention by two products and a softmax; torch's own has no second derivative."""

    def mix(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """The same by hand."""
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        return scores.softmax(-1) @ value


def plain_twin(model: Model) -> Model:
    """A module that shares the model's parameters and can be differentiated twice.

    A fused module names its plain class. What is no module of torch is its own twin. The model is
    left as it is, so that other threads go on with it.
    Proved by tests/kernels/test_fuse.py.
    """
    if not isinstance(model, nn.Module):
        return model
    shared = {id(own): own for own in (*model.parameters(), *model.buffers())}
    twin = copy.deepcopy(model, shared)
    for module in twin.modules():
        kind = type(module)
        module.__class__ = OpenAttention if kind is Attention else getattr(kind, "plain", kind)
    return twin
