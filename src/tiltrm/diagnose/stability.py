"""Does the exploration noise stay near the deterministic path? (Prop. 5.1, Cor. 5.2, Figs. 2, 5)

From a state h_n of the deterministic trajectory, the inner updates run once without noise and
often with it; e_m is the difference after m of them. A tube has the radius r = alpha sqrt(L D).
Everything is summed state by state, so that memory does not depend on their number.
Proved by tests/diagnose/test_stability.py on a linear contraction.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tiltrm.diagnose.lipschitz import ITERATIONS, PROBES, along, length, local_norm, secants
from tiltrm.diagnose.tube import Tube
from tiltrm.explore.keys import derive, normals
from tiltrm.model.base import RecursiveModel, State
from tiltrm.model.unfused import unfused_copy

ALPHAS = (0.5, 1.0, 1.5)  # the paper's


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
    """What was measured at one state."""

    size: int  # L D
    norms: Tensor  # (noise, rollout, inner step): |e_m|
    rho: list[float]  # by radius, from secants
    local: float  # the largest norm of a Jacobian along the path
    gains: list[float]


class Stability:
    """The whole diagnostic: `probe` states, `add` what was found, then ask for `figures`."""

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
        """Count one state in."""
        self._note("power iteration", probe.local)
        for alpha, rho in zip(self.alphas, probe.rho, strict=True):
            self._note(f"secant, alpha {alpha:g}", rho)
            for noise, norms in zip(self.noises, probe.norms, strict=True):
                self.tubes[noise, alpha].add(norms, probe.size, rho, probe.local)
        for gain in probe.gains:
            self._note("along the trajectory", gain)

    def _note(self, name: str, value: float) -> None:
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
