"""How an adaptive cloud grows."""

from dataclasses import dataclass, replace
from itertools import pairwise

from tiltrm.errors import SettingsError
from tiltrm.explore.checks import require_number, require_whole
from tiltrm.explore.noise import NoiseFreeFirst, Scheduled, everywhere
from tiltrm.explore.settings import Exploration


@dataclass(frozen=True)
class Stage:
    """A cloud of `particles`, the first of them free of noise, for `outer_steps` more steps.

    In a plan that is `turned`, only the first stage has a particle without noise.
    """

    particles: int
    outer_steps: int
    goes_on: bool = False  # the noisy trajectories of the stage before, too
    noise: float | None = None  # instead of the plan's


@dataclass(frozen=True)
class Adaptive:
    """A plan; this one is for a task that has none of its own in tiltrm.methods.PLANS."""

    stages: tuple[Stage, ...] = (
        Stage(1, 24), *(Stage(8, 12),) * 4, *(Stage(32, 16),) * 4,
    )  # fmt: skip
    noise: float = 0.5
    beta: float = 0.25
    resample_below: float = 0.0  # a decided particle ends the search, so copies of it are no use
    turned: bool = False  # after the first stage all start afresh, each with a view of its own

    def __post_init__(self) -> None:
        if not self.stages:
            raise SettingsError("a plan needs at least one stage, got none")
        for stage in self.stages:
            require_whole("particles of a stage", stage.particles, 1)
            require_whole("outer_steps of a stage", stage.outer_steps, 1)
        for noise in (self.noise, *self.noises):
            require_number("noise", noise)
        require_number("beta", self.beta)
        require_number("resample_below", self.resample_below, 1.0)
        if self.turned and (self.resample_below or any(stage.goes_on for stage in self.stages)):
            raise SettingsError(
                "turned must be false where trajectories are resampled or go on in a later stage, "
                "because they cannot change how they see the puzzle"
            )

    @property
    def outer_steps(self) -> int:
        """Steps of a puzzle that is never decided."""
        return sum(stage.outer_steps for stage in self.stages)

    @property
    def noises(self) -> list[float]:
        """Of every stage."""
        return [self.noise if stage.noise is None else stage.noise for stage in self.stages]

    def fresh_after(self, number: int) -> bool:
        """Whether any stage after this one brings fresh particles."""
        return any(
            self.turned or stage.particles > (before.particles if stage.goes_on else 1)
            for before, stage in pairwise(self.stages[number:])
        )

    def with_noise(self, noise: float) -> "Adaptive":
        """The plan with this noise in all of its stages."""
        stages = tuple(replace(stage, noise=None) for stage in self.stages)
        return replace(self, stages=stages, noise=noise)

    def exploration(self) -> Exploration:
        """The settings of its outer steps; particle 0 stays free of noise as long as it lives."""
        noises = zip(self.noises, self.stages, strict=True)
        by_step = tuple(noise for noise, stage in noises for _ in range(stage.outer_steps))
        until = self.stages[0].outer_steps if self.turned else None
        return Exploration(
            noise=1.0, beta=self.beta, resample_below=self.resample_below,
            placement=NoiseFreeFirst(Scheduled(everywhere, by_step), until),
        )  # fmt: skip
