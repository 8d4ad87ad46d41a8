"""Muon whose updates have the same size for every hidden unit (after NorMuon, Li et al., 2025).

Few Newton-Schulz steps leave small singular values small, so hidden units with small gradients get
small updates, and weight decay takes them away for good. The orthogonalised update is divided by
its running root mean square along the longer axis of the matrix, which counts the hidden units both
where they are made (rows) and where they are read (columns; NorMuon takes rows everywhere, and
leaves idle columns idle: docs/LOG.md). So all units have the same rate; the norm of the whole
update stays as it was. Proved by tests/train/test_normuon.py.
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


def normalised_units(update: Tensor, square: Tensor, decay: float) -> Tensor:
    """Every unit over its running root mean square `square`, which is brought up to date.

    update: (row, column). square: (row, 1) if there are more rows than columns, else (1, column).
    """
    update = update.float()
    size = update.norm()
    square.lerp_(update.square().mean(_across(update), keepdim=True), 1.0 - decay)
    update = update * square.clamp(min=TINY).rsqrt()
    scaled: Tensor = update * (size / update.norm().clamp(min=EPS))
    return scaled


def _across(matrix: Tensor) -> int:
    """The shorter axis."""
    return 1 if matrix.shape[0] > matrix.shape[1] else 0


class NorMuon(Optimizer):
    """For matrices only. The rate counts as in Muon: times sqrt(max(1, rows / columns))."""

    def __init__(
        self, groups: list[dict[str, Any]], *, momentum: float, ns_steps: int, unit_decay: float
    ) -> None:
        """groups: with `params`, `lr`, `weight_decay`. unit_decay: of the units' mean squares."""
        super().__init__(groups, {"weight_decay": 0.0})
        self.momentum, self.ns_steps, self.unit_decay = momentum, ns_steps, unit_decay

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
            state["unit_square"] = torch.zeros_like(weight).mean(_across(weight), keepdim=True)
        state["momentum"].lerp_(gradient, 1.0 - self.momentum)
        direction = gradient.lerp(state["momentum"], self.momentum)
        update = orthogonalised(direction, self.ns_steps)
        update = normalised_units(update, state["unit_square"], self.unit_decay)
        rows, columns = weight.shape
        weight.mul_(1.0 - rate * decay)
        weight.add_(update.to(weight.dtype), alpha=-rate * max(1.0, rows / columns) ** 0.5)
