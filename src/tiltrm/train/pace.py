"""How far a run is: by steps, or by a clock that counts evaluations, scans and saves as well."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from tiltrm.train import distributed
from tiltrm.train.distributed import World
from tiltrm.train.settings import Settings


class Pace:
    """The run's counters. All processes hold the same numbers: those of the leader's clock."""

    def __init__(self, settings: Settings, world: World, device: torch.device) -> None:
        self.steps, self.budget = settings.steps, 60 * settings.minutes
        self.world, self.device = world, device
        self.step = 0
        self.seconds = 0.0  # of training
        self.aside = 0.0  # of evaluations, scans and saves
        self.closing = 0.0  # what the last evaluation is expected to take

    def counters(self) -> dict[str, Any]:
        """What a saved state keeps. With `closing`, a run that is done stays done."""
        return {name: getattr(self, name) for name in ("step", "seconds", "aside", "closing")}

    def go_on(self, saved: Mapping[str, Any]) -> None:
        """Take up the counters of a saved state; older ones lack the last two."""
        self.step, self.seconds = saved["step"], saved["seconds"]
        self.aside, self.closing = saved.get("aside", 0.0), saved.get("closing", 0.0)

    @property
    def progress(self) -> float:
        """0 at the start, 1 when the plan (by minutes or by steps) is fulfilled."""
        if self.budget == 0:
            return self.step / self.steps
        spare = max(self.budget - self.closing, 0.5 * self.budget)
        return (self.seconds + self.aside) / spare

    @property
    def seconds_left(self) -> float:
        """Until the plan is fulfilled, at the pace so far."""
        if self.budget > 0:
            return max(0.0, self.budget - self.seconds - self.aside)
        return (self.seconds + self.aside) * max(0.0, 1 / max(self.progress, 1e-9) - 1)

    def overrun(self, begun: float) -> bool:
        """Whether the budget is spent, for a stretch that began at this time of the clock."""
        now = self.seconds + self.aside + time.monotonic() - begun
        return self.budget > 0 and now + self.closing > self.budget

    def since(self, begun: float) -> float:
        """Seconds since a time of the clock, as the leader counts them."""
        return distributed.agree(time.monotonic() - begun, self.world, self.device)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """What is done inside is no training, but it takes time of the plan."""
        begun = time.monotonic()
        yield
        self.aside += self.since(begun)
