"""Muon whose updates have the same size in every row (NorMuon, Li et al., 2025).

Few Newton-Schulz steps leave small singular values small, so hidden units with small gradients get
small updates, and weight decay takes them away for good. Dividing every row of the orthogonalised
update by its running root mean square gives all units the same rate; the norm of the whole update
stays as it was. Proved by tests/train/test_normuon.py.
"""

from collections.abc import Callable
from typing import Any, overload

import torch
from torch import Tensor
from torch.optim import Optimizer

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the quintic Newton-Schulz iteration, as in Muon
EPS, TINY = 1e-7, 1e-20


def orthogonalised(matrix: Tensor, steps: int) -> Tensor:
    """U V^T of the singular value decomposition, approximately, in bfloat16: (row, column)."""
    a, b, c = COEFFICIENTS
    wide = matrix.shape[0] <= matrix.shape[1]
    x: Tensor = (matrix if wide else matrix.T).bfloat16()
    x = x / x.norm().clamp(min=EPS)
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x if wide else x.T


def normalised_rows(update: Tensor, square: Tensor, decay: float) -> Tensor:
    """Every row over its running root mean square `square` (row,), which is brought up to date."""
    update = update.float()
    size = update.norm()
    square.lerp_(update.square().mean(1), 1.0 - decay)
    update = update * square[:, None].clamp(min=TINY).rsqrt()
    scaled: Tensor = update * (size / update.norm().clamp(min=EPS))
    return scaled


class NorMuon(Optimizer):
    """For matrices only. The rate counts as in Muon: times sqrt(max(1, rows / columns))."""

    def __init__(
        self, groups: list[dict[str, Any]], *, momentum: float, ns_steps: int, row_decay: float
    ) -> None:
        """groups: with `params`, `lr` and `weight_decay`. row_decay: of the rows' mean squares."""
        super().__init__(groups, {"weight_decay": 0.0})
        self.momentum, self.ns_steps, self.row_decay = momentum, ns_steps, row_decay

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """One step from the gradients; Nesterov momentum and decoupled weight decay."""
        loss = None if closure is None else closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group["lr"], group["weight_decay"])
        return loss

    def _update(self, weight: Tensor, gradient: Tensor, rate: float, decay: float) -> None:
        state = self.state[weight]
        if not state:
            state["momentum"] = torch.zeros_like(weight)
            state["row_square"] = weight.new_ones(len(weight)) / weight.shape[1]
        state["momentum"].lerp_(gradient, 1.0 - self.momentum)
        direction = gradient.lerp(state["momentum"], self.momentum)
        update = orthogonalised(direction, self.ns_steps)
        update = normalised_rows(update, state["row_square"], self.row_decay)
        rows, columns = weight.shape
        weight.mul_(1.0 - rate * decay)
        weight.add_(update.to(weight.dtype), alpha=-rate * max(1.0, rows / columns) ** 0.5)
