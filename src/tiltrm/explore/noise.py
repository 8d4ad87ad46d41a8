"""Exploration noise: how it is added, and where. A placement says how much; placements wrap."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import NamedTuple

import torch
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.explore.cloud import Clock
from tiltrm.explore.keys import box_muller, derive, pair_counters

# Sites of one outer step: the answer update, the two halves of the state before the step, and the
# M inner updates from INNER on.
ANSWER, START_LATENT, START_ANSWER, INNER = range(4)
SLAB = 1 << 15  # numbers perturbed at once on a CPU, so that the intermediates stay in its cache


class Where(NamedTuple):
    """A place at which noise may be added."""

    clock: Clock
    site: int
    particles: Tensor  # (particle,) slots of the cloud


# The factor on sigma: 0.0 leaves the value untouched; a tensor is per particle.
Placement = Callable[[Where], float | Tensor]


def everywhere(where: Where) -> float:
    """Every inner update and the answer (Algorithm 1, lines 3, 5 and 7)."""
    return float(where.site == ANSWER or where.site >= INNER)


def latent_only(where: Where) -> float:
    """Every inner update, not the answer."""
    return float(where.site >= INNER)


def answer_only(where: Where) -> float:
    """The answer update alone."""
    return float(where.site == ANSWER)


@dataclass(frozen=True)
class OncePerSupervision:
    """The latent, before every `cycles`-th outer step, as PTRM does; the answer too if asked."""

    cycles: int = 3
    answer: bool = False

    def __call__(self, where: Where) -> float:
        starts = (where.clock.step - 1) % self.cycles == 0
        here = where.site == START_LATENT or (self.answer and where.site == START_ANSWER)
        return float(starts and here)


@dataclass(frozen=True)
class Scheduled:
    """Another placement, its scale times a factor for every outer step; the last one goes on."""

    placement: Placement
    factors: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.factors:
            raise SettingsError("factors must be at least one, got none")

    def __call__(self, where: Where) -> float | Tensor:
        factor = self.factors[min(where.clock.step, len(self.factors)) - 1]
        return factor * self.placement(where) if factor else 0.0


def annealed(placement: Placement, until: int) -> Scheduled:
    """Another placement, its scale falling linearly from 1 at step 1 to 0 at step `until`."""
    if until < 2:
        raise SettingsError(f"until must be at least 2 for a scale to fall, got {until}")
    return Scheduled(placement, tuple((until - n) / (until - 1) for n in range(1, until + 1)))


@dataclass(frozen=True)
class NoiseFreeFirst:
    """Another placement, but none for particle 0: unless it is resampled, it is the baseline.

    Where `until` is given, particle 0 is as noisy as the others after that outer step.
    """

    placement: Placement
    until: int | None = None

    def __call__(self, where: Where) -> float | Tensor:
        factor = self.placement(where)
        late = self.until is not None and where.clock.step > self.until
        if late or (isinstance(factor, float) and factor == 0.0):
            return factor
        return factor * (where.particles > 0).float()


@dataclass(frozen=True)
class Noise:
    """sigma x placement x standard normals."""

    scale: float
    placement: Placement = everywhere

    def __call__(self, value: Tensor, keys: Tensor, where: Where) -> Tensor:
        """value + sigma xi (eqs. 3 and 4), or value itself where there is no noise to add.

        value: (puzzle, particle, position, width); keys: (puzzle, particle), new at every step.
        """
        factor = self.placement(where) if self.scale else 0.0
        if isinstance(factor, float) and factor == 0.0:
            return value
        scale = torch.full((), self.scale, device=value.device) * factor  # () or (particle,)
        return perturb(value, keys, where.site, scale)


def perturb(value: Tensor, keys: Tensor, site: int, scale: Tensor) -> Tensor:
    """value + scale x the normals of (key, site); scale broadcasts against the keys."""
    rows, keys = value.flatten(0, 1).flatten(1), derive(keys, site).flatten()
    scales = scale.expand(value.shape[:2]).reshape(-1, 1).contiguous()
    counters = pair_counters(rows.shape[1], value.device)
    if value.device.type != "cpu":
        return _fused()(rows, keys, scales, counters).view(value.shape)
    out = torch.empty(rows.shape, dtype=rows.dtype)
    slab = max(1, SLAB // rows.shape[1])
    for start in range(0, len(rows), slab):
        part = slice(start, start + slab)
        out[part] = _noisy(rows[part], keys[part], scales[part], counters)
    return out.view(value.shape)


def _noisy(rows: Tensor, keys: Tensor, scales: Tensor, counters: Tensor) -> Tensor:
    drawn = box_muller(keys, counters)[:, : rows.shape[1]]
    return torch.addcmul(rows, drawn, scales).to(rows.dtype)


@lru_cache(maxsize=1)
def _fused() -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]:
    """Hash, normals and sum in one pass: our own kernel, or what torch's compiler makes of it."""
    from tiltrm.kernels import available  # here, since it loads torch's compiler

    if available():
        from tiltrm.kernels.elementwise import perturbed

        return perturbed
    return torch.compile(_noisy, dynamic=True) if find_spec("triton") else _noisy
