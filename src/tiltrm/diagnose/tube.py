"""Tubes around the deterministic path: exits, deviations inside, and the bounds on both.

Prop. 5.1 and Cor. 5.2. Proved by tests/diagnose/test_stability.py.
"""

import math
from typing import Any

import torch
from torch import Tensor


def first_exit(norms: Tensor, radius: float) -> Tensor:
    """tau_r: the first m with |e_m| > r, M + 1 where there is none (eq. 13): (...) int64."""
    outside = norms > radius
    first = outside.int().argmax(-1) + 1
    return torch.where(outside.any(-1), first, norms.shape[-1] + 1)


def in_tube(norms: Tensor, radius: float) -> Tensor:
    """|e_m|^2 1(tau_r > m) / r^2 for every m: (..., inner step)."""
    steps = torch.arange(1, norms.shape[-1] + 1, device=norms.device)
    inside = first_exit(norms, radius)[..., None] > steps
    return torch.where(inside, norms.double().square() / radius**2, 0.0)


def deviation_bound(noise: float, size: int, rho: float, steps: int) -> list[float] | None:
    """sigma^2 nu^2 sum_(j < m) rho^(2j) for m = 1..M, nu^2 = L D; None where rho >= 1."""
    if not rho < 1.0:
        return None
    terms = [noise**2 * size * rho ** (2 * j) for j in range(steps)]
    return [math.fsum(terms[: m + 1]) for m in range(steps)]


def exit_bound(noise: float, size: int, rho: float, steps: int, radius: float) -> float | None:
    """P(tau_r <= M) <= M sigma^2 nu^2 / (r^2 (1 - rho^2)), at most 1; None where rho >= 1."""
    if not rho < 1.0:
        return None
    return min(1.0, steps * noise**2 * size / (radius**2 * (1.0 - rho**2)))


class Tube:
    """Sums for one noise and one radius."""

    def __init__(self, noise: float, alpha: float, steps: int) -> None:
        self.noise, self.alpha = noise, alpha
        self.exits = torch.zeros(steps + 1, dtype=torch.int64)  # tau_r = 1, ..., M + 1
        self.inside = torch.zeros(steps, dtype=torch.float64)
        self.states = self.holding = self.refuted = 0
        self.held = torch.zeros(steps, dtype=torch.float64)  # `inside` where the bound exists
        self.bound = torch.zeros(steps, dtype=torch.float64)
        self.exit_bound = 0.0
        self.draws = 0  # normals behind one inner step of `held`

    def add(self, norms: Tensor, size: int, rho: float, local: float = 0.0) -> None:
        """norms: (rollout, inner step) of one state; rho from secants, local by power iteration."""
        radius, steps = self.alpha * math.sqrt(size), norms.shape[-1]
        self.exits += torch.bincount(first_exit(norms, radius).cpu() - 1, minlength=steps + 1)
        inside = in_tube(norms, radius).mean(0).cpu()
        self.inside += inside
        self.states += 1
        self.refuted += not max(rho, local) < 1.0
        bound = deviation_bound(self.noise, size, rho, steps)
        exits = exit_bound(self.noise, size, rho, steps, radius)
        if bound is not None and exits is not None:
            self.holding += 1
            self.held += inside
            self.draws += norms.shape[0] * size
            self.bound += torch.tensor(bound).double() / radius**2
            self.exit_bound += exits

    def figures(self) -> dict[str, Any]:
        """Everything measured. The paper's bound, averaged over the states whose secants allow one,
        is `secant_bound`; it is `bound` only if no direction tried anywhere refutes it."""
        rollouts, holds = int(self.exits.sum()), self.holding
        bound = (self.bound / holds).tolist() if holds else None
        exits = self.exit_bound / holds if holds else None
        return {
            "noise": self.noise, "alpha": self.alpha, "states": self.states,
            "first_exit": self.exits.tolist(),
            "survival": float(self.exits[-1]) / rollouts,
            "deviation": (self.inside / self.states).tolist(),
            "states_with_bound": holds,
            "deviation_there": (self.held / holds).tolist() if holds else None,
            "secant_bound": bound,
            "secant_exit_bound": exits,
            "exceeds_secant_bound": self._exceeded(),
            "bound": None if self.refuted else bound,
            "exit_bound": None if self.refuted else exits,
            "hypothesis": self._hypothesis(),
        }  # fmt: skip

    def _exceeded(self) -> bool:
        """Whether deviations lie above the secants' bound by more than chance (4 sigma) does."""
        slack = 1.0 + 4.0 * math.sqrt(2.0 / max(1, self.draws))
        return bool((self.held > slack * self.bound).any())

    def _hypothesis(self) -> str:
        """Whether Proposition 5.1 applies. One direction that stretches is enough to refute it."""
        if not self.refuted:
            return "no direction tried stretches, so the hypothesis may hold"
        return (
            f"rho >= 1 at {self.refuted} of {self.states} states (random secants see it at "
            f"{self.states - self.holding}): the hypothesis of Prop. 5.1 fails"
        )
