"""Do noisy inner updates stay near the deterministic path? (Prop. 5.1, Cor. 5.2, Figs. 2, 5)

From a state h_n of the deterministic trajectory, the inner updates run once without noise and
several times with noise; e_m is the difference after m of them. A tube has the radius
r = alpha sqrt(L D). Everything is summed state by state, so memory does not grow with their number.
Proved by tests/diagnose/test_stability.py on a linear contraction.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tiltrm.diagnose.lipschitz import ITERATIONS, PROBES, along, length, local_norm, secants
from tiltrm.explore.keys import derive, normals
from tiltrm.model.base import RecursiveModel, State
from tiltrm.model.unfused import unfused_copy

ALPHAS = (0.5, 1.0, 1.5)  # the paper's


def first_exit(norms: Tensor, radius: float) -> Tensor:
    """tau_r: the first m with |e_m| > r, M + 1 if there is none (eq. 13): (...) int64."""
    outside = norms > radius
    first = outside.int().argmax(-1) + 1
    return torch.where(outside.any(-1), first, norms.shape[-1] + 1)


def in_tube(norms: Tensor, radius: float) -> Tensor:
    """|e_m|^2 1(tau_r > m) / r^2 for every m: (..., inner step)."""
    steps = torch.arange(1, norms.shape[-1] + 1, device=norms.device)
    inside = first_exit(norms, radius)[..., None] > steps
    return torch.where(inside, norms.double().square() / radius**2, 0.0)


def deviation_bound(noise: float, size: int, rho: float, steps: int) -> list[float] | None:
    """sigma^2 nu^2 sum_(j < m) rho^(2j) for m = 1..M, nu^2 = L D; None if rho >= 1."""
    if not rho < 1.0:
        return None
    terms = [noise**2 * size * rho ** (2 * j) for j in range(steps)]
    return [math.fsum(terms[: m + 1]) for m in range(steps)]


def exit_bound(noise: float, size: int, rho: float, steps: int, radius: float) -> float | None:
    """P(tau_r <= M) <= M sigma^2 nu^2 / (r^2 (1 - rho^2)), at most 1; None if rho >= 1."""
    if not rho < 1.0:
        return None
    return min(1.0, steps * noise**2 * size / (radius**2 * (1.0 - rho**2)))


class Tube:
    """Exits, deviations inside the tube and the bounds on both, for one noise and one radius."""

    def __init__(self, noise: float, alpha: float, steps: int) -> None:
        self.noise, self.alpha = noise, alpha
        self.exits = torch.zeros(steps + 1, dtype=torch.int64)  # tau_r = 1, ..., M + 1
        self.inside = torch.zeros(steps, dtype=torch.float64)
        self.states = self.holding = self.refuted = 0
        self.held = torch.zeros(
            steps, dtype=torch.float64
        )  # `inside` of the states that have a bound
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
        """Everything measured. `secant_bound` is the paper's bound, averaged over the states whose
        secants allow one; `bound` is the same if no direction tried anywhere refutes it."""
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
        """Whether deviations exceed the secants' bound by more than 4 standard errors."""
        slack = 1.0 + 4.0 * math.sqrt(2.0 / max(1, self.draws))
        return bool((self.held > slack * self.bound).any())

    def _hypothesis(self) -> str:
        """Whether Prop. 5.1 applies, in words. One direction that stretches refutes it."""
        if not self.refuted:
            return "no direction tried stretches, so the hypothesis may hold"
        return (
            f"rho >= 1 at {self.refuted} of {self.states} states (random secants see it at "
            f"{self.states - self.holding}): the hypothesis of Prop. 5.1 fails"
        )


def inner_path(model: RecursiveModel, inputs: Tensor, state: State) -> Tensor:
    """z_0, z_1, ..., z_M without noise (eq. 1): (inner step + 1, position, width)."""
    path = [state.latent]
    for _ in range(model.inner_steps):
        path.append(model.refine(inputs, State(state.answer, path[-1])))
    return torch.stack(path)


def deviations(
    model: RecursiveModel, inputs: Tensor, state: State, path: Tensor, noises: Sequence[float],
    rollouts: int, key: Tensor,
) -> Tensor:  # fmt: skip
    """|e_m| = |zeta_m - z_m| (eq. 3): (noise, rollout, inner step). Noises share their draws."""
    scale = torch.tensor(noises, device=path.device)[:, None, None, None]
    keys = derive(key, torch.arange(rollouts)).to(path.device)
    shape = (len(noises), rollouts, *path.shape[1:])
    answer, latent = state.answer.expand(shape), state.latent.expand(shape)
    found = []
    for m in range(model.inner_steps):
        drawn = normals(derive(keys, m), path[0].numel()).view(rollouts, *path.shape[1:])
        latent = model.refine(inputs, State(answer, latent)) + (scale * drawn).to(path.dtype)
        found.append(length(latent - path[m + 1]))
    return torch.stack(found, -1)


class Probe(NamedTuple):
    """The measurements at one state."""

    size: int  # L D
    norms: Tensor  # (noise, rollout, inner step): |e_m|
    rho: list[float]  # by radius, from secants
    local: float  # the largest norm of a Jacobian along the path
    gains: list[float]


class Stability:
    """The whole diagnostic: `probe` each state, `add` the probe, then read `figures`."""

    def __init__(
        self, model: RecursiveModel, noises: Sequence[float], *, alphas: Sequence[float] = ALPHAS,
        rollouts: int = 4, probes: int = PROBES, iterations: int = ITERATIONS,
    ) -> None:  # fmt: skip
        self.model, self.noises, self.alphas = model, tuple(noises), tuple(alphas)
        self.twin = unfused_copy(model)
        self.rollouts, self.probes, self.iterations = rollouts, probes, iterations
        steps = model.inner_steps
        self.tubes = {(n, a): Tube(n, a, steps) for n in self.noises for a in self.alphas}
        self.rho: dict[str, list[float]] = {}  # name -> [sum, largest, below 1, count]

    def probe(self, inputs: Tensor, state: State, key: Tensor) -> Probe:
        """Measure at one state of one puzzle: inputs, answer and latent are (position, width)."""

        def update(points: Tensor, model: RecursiveModel = self.model) -> Tensor:
            return model.refine(inputs, State(state.answer.expand_as(points), points))

        path = inner_path(self.model, inputs, state)
        size = path[0].numel()
        norms = deviations(
            self.model, inputs, state, path, self.noises, self.rollouts, derive(key, 0)
        )
        rho = []
        for number, alpha in enumerate(self.alphas):
            radius, own = alpha * math.sqrt(size), derive(key, 1, number)
            rho.append(float(secants(update, path, radius, own, self.probes).max()))
        steep = partial(update, model=self.twin)
        found = local_norm(steep, path[:-1], derive(key, 2), self.iterations)
        return Probe(size, norms, rho, float(found.max()), along(path).tolist())

    def add(self, probe: Probe) -> None:
        """Add the probe of one state."""
        self._add_rho("power iteration", probe.local)
        for alpha, rho in zip(self.alphas, probe.rho, strict=True):
            self._add_rho(f"secant, alpha {alpha:g}", rho)
            for noise, norms in zip(self.noises, probe.norms, strict=True):
                self.tubes[noise, alpha].add(norms, probe.size, rho, probe.local)
        for gain in probe.gains:
            self._add_rho("along the trajectory", gain)

    def _add_rho(self, name: str, value: float) -> None:
        if not math.isnan(value):
            total, largest, below, count = self.rho.get(name, [0.0, 0.0, 0, 0])
            self.rho[name] = [total + value, max(largest, value), below + (value < 1), count + 1]

    def cost(self) -> int:
        """Evaluations of one state; a product with the Jacobian or its transpose counts as two."""
        steps = self.model.inner_steps
        rolled = len(self.noises) * self.rollouts * steps
        probed = len(self.alphas) * (self.probes + 1) * (steps + 1)
        return steps + rolled + probed + 4 * self.iterations * steps

    def figures(self) -> dict[str, Any]:
        """Tubes for every noise and radius, and the three estimates of rho side by side."""
        rho = {
            name: {"mean": total / count, "largest": largest, "below_one": below / count}
            for name, (total, largest, below, count) in self.rho.items()
        }
        return {"rho": rho, "tubes": [t.figures() for t in self.tubes.values() if t.states]}

    def survival(self, alpha: float) -> dict[float, float]:
        """P(tau_r > M) by noise."""
        tubes = [self.tubes[noise, alpha] for noise in self.noises]
        return {tube.noise: tube.figures()["survival"] for tube in tubes if tube.states}
