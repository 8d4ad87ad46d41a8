"""An exponential moving average of the weights, the copy that is evaluated and shipped."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


class EMA:
    """average <- decay * average + (1 - decay) * weights, with a short warm-up of the decay."""

    def __init__(self, weights: list[Tensor], decay: float) -> None:
        self.decay = decay
        self.weights = weights
        self.average = [w.detach().clone() for w in weights]

    def decay_at(self, step: int) -> float:
        """(1 + step) / (10 + step) until that is more than the decay: the start is soon forgot."""
        return min(self.decay, (1 + step) / (10 + step))

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after `step`, which counts from 0."""
        weights = [w.detach() for w in self.weights]
        torch._foreach_lerp_(self.average, weights, 1 - self.decay_at(step))

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Inside, the model holds the average; afterwards the weights are back, bit for bit."""
        kept = [w.detach().clone() for w in self.weights]
        with torch.no_grad():
            torch._foreach_copy_(self.weights, self.average)
        try:
            yield
        finally:
            with torch.no_grad():
                torch._foreach_copy_(self.weights, kept)
