"""The progress of a run, by steps or by a clock that counts evaluations, scans and saves too."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from tiltrm.train import distributed
from tiltrm.train.distributed import World
from tiltrm.train.settings import TrainSettings


class TrainingClock:
    """Steps and seconds of a run. Every process holds the numbers of the leader's clock."""

    def __init__(self, settings: TrainSettings, world: World, device: torch.device) -> None:
        self.steps, self.budget = settings.steps, 60 * settings.minutes
        self.world, self.device = world, device
        self.step = 0
        self.seconds = 0.0  # of training
        self.aside = 0.0  # of evaluations, scans and saves
        self.closing = 0.0  # expected for the last evaluation

    def counters(self) -> dict[str, Any]:
        """The numbers to save. `closing` is one of them, so that a finished run stays finished."""
        return {name: getattr(self, name) for name in ("step", "seconds", "aside", "closing")}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue from saved counters; older states lack the last two."""
        self.step, self.seconds = saved["step"], saved["seconds"]
        self.aside, self.closing = saved.get("aside", 0.0), saved.get("closing", 0.0)

    @property
    def progress(self) -> float:
        """0 at the start, 1 when the planned minutes or steps are done."""
        if self.budget == 0:
            return self.step / self.steps
        available = max(self.budget - self.closing, 0.5 * self.budget)
        return (self.seconds + self.aside) / available

    @property
    def seconds_left(self) -> float:
        """Seconds until the run is done, at the speed so far."""
        if self.budget > 0:
            return max(0.0, self.budget - self.seconds - self.aside)
        return (self.seconds + self.aside) * max(0.0, 1 / max(self.progress, 1e-9) - 1)

    def over_budget(self, begun: float) -> bool:
        """Whether the budget is spent, if training has run since the monotonic time `begun`."""
        now = self.seconds + self.aside + time.monotonic() - begun
        return self.budget > 0 and now + self.closing > self.budget

    def since(self, begun: float) -> float:
        """Seconds since the monotonic time `begun`, as the leader counts them."""
        return distributed.broadcast(time.monotonic() - begun, self.world, self.device)

    @contextmanager
    def not_training(self) -> Iterator[None]:
        """Count the time inside as `aside`: it is no training, but it uses up the budget."""
        begun = time.monotonic()
        yield
        self.aside += self.since(begun)
