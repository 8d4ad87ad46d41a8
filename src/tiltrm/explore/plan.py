"""The plan of an adaptive search: stages of growing clouds."""

import re
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from tiltrm.checks import require_number, require_whole
from tiltrm.errors import SettingsError
from tiltrm.explore.noise import NoiseFreeFirst, Scheduled, everywhere
from tiltrm.settings import LARGEST_SCALE, Exploration

STAGE = re.compile(r"(\d+)x(\d+)(?:@(\d*\.?\d+))?(?:\?(\d))?(\+?)(?:\*(\d{1,4}))?")


@dataclass(frozen=True)
class Stage:
    """A cloud of `particles`, particle 0 without noise, for `outer_steps` steps.

    In a plan with symmetric views, only the first stage has a particle without noise.
    """

    particles: int
    outer_steps: int
    continues: bool = False  # all particles of the stage before go on, not particle 0 alone
    noise: float | None = None  # None: the plan's
    guesses: int = 0  # cells filled in for each particle, by the votes of the stages before


def parse_stages(text: str) -> tuple[Stage, ...]:
    """Stages from '1x20 2x16*4 8x24@0.6?1*4'.

    Particles x steps, then perhaps @noise, ?guesses, + where particles continue, *repetitions.

    The inverse of `format_stages`. Proved by tests/explore/test_plan.py.
    """
    stages: list[Stage] = []
    for word in text.split():
        found = STAGE.fullmatch(word)
        if found is None:
            raise SettingsError(
                f"a stage must be like 2x16, 2x16*4 or 8x24@0.6?1*4 (particles x steps, @noise, "
                f"?guesses, *repetitions), got {word!r:.60}"
            )
        particles, steps, noise, guesses, continues, times = found.groups()
        own = None if noise is None else float(noise)
        stage = Stage(int(particles), int(steps), bool(continues), own, int(guesses or 0))
        stages += [stage] * int(times or 1)
    return tuple(stages)


def format_stages(stages: tuple[Stage, ...]) -> str:
    """The text of `parse_stages`."""
    return " ".join(_format(stage, len(list(same))) for stage, same in groupby(stages))


def _format(stage: Stage, times: int) -> str:
    noise = "" if stage.noise is None else f"@{stage.noise:g}"
    repeated = f"*{times}" if times > 1 else ""
    guesses = f"?{stage.guesses}" if stage.guesses else ""
    return f"{stage.particles}x{stage.outer_steps}{noise}{guesses}{'+' * stage.continues}{repeated}"


@dataclass(frozen=True)
class Adaptive:
    """A plan of stages. The defaults are for puzzles whose task is unknown."""

    stages: tuple[Stage, ...] = parse_stages("1x24 8x12*4 32x16*4")
    noise: float = 0.5
    beta: float = 0.25
    resample_below: float = 0.0  # one decided particle ends the search, so copies do not help
    symmetric_views: bool = False  # from stage 2 on, fresh particles under symmetries of their own

    def __post_init__(self) -> None:
        if not self.stages:
            raise SettingsError("a plan needs at least one stage, got none")
        for stage in self.stages:
            require_whole("particles of a stage", stage.particles, 1)
            require_whole("outer_steps of a stage", stage.outer_steps, 1)
            require_whole("guesses of a stage", stage.guesses)
        for noise in (self.noise, *self.noises):
            require_number("noise", noise, LARGEST_SCALE)
        require_number("beta", self.beta, LARGEST_SCALE)
        require_number("resample_below", self.resample_below, 1.0)
        continued = any(stage.continues for stage in self.stages)
        if self.symmetric_views and (self.resample_below or continued):
            raise SettingsError(
                "symmetric_views must be false in a plan that resamples or continues particles, "
                "because a particle cannot change its view of the puzzle"
            )
        if self.guesses_from(0) and (not self.symmetric_views or self.stages[0].guesses):
            raise SettingsError(
                "guesses need a plan with symmetric_views, whose particles are fresh in every "
                "stage, and a stage before them that votes"
            )

    @property
    def outer_steps(self) -> int:
        """Steps of a puzzle that is never decided."""
        return sum(stage.outer_steps for stage in self.stages)

    @property
    def particle_steps(self) -> int:
        """Outer steps of all particles together, for a puzzle that is never decided."""
        return sum(stage.particles * stage.outer_steps for stage in self.stages)

    @property
    def noises(self) -> list[float]:
        """The noise of every stage."""
        return [self.noise if stage.noise is None else stage.noise for stage in self.stages]

    def guesses_from(self, number: int) -> bool:
        """Whether the stage of this number or a later one guesses."""
        return any(stage.guesses for stage in self.stages[number:])

    def fresh_after(self, number: int) -> bool:
        """Whether any stage after this one brings fresh particles."""
        return any(
            self.symmetric_views or stage.particles > (before.particles if stage.continues else 1)
            for before, stage in pairwise(self.stages[number:])
        )

    def without_guesses(self) -> "Adaptive":
        """The plan with the same stages, none of which guesses."""
        return replace(self, stages=tuple(replace(stage, guesses=0) for stage in self.stages))

    def with_noise(self, noise: float) -> "Adaptive":
        """The plan with this noise in all of its stages."""
        stages = tuple(replace(stage, noise=None) for stage in self.stages)
        return replace(self, stages=stages, noise=noise)

    def exploration(self) -> Exploration:
        """The settings of its outer steps. A stage of one noise-free particle draws no noise."""
        first = self.stages[0].outer_steps
        by_step: list[float] = []
        for number, (noise, stage) in enumerate(zip(self.noises, self.stages, strict=True)):
            quiet = stage.particles == 1 and (number == 0 or not self.symmetric_views)
            by_step += [0.0 if quiet else noise] * stage.outer_steps
        until = first if self.symmetric_views else None
        return Exploration(
            noise=1.0, beta=self.beta, resample_below=self.resample_below,
            placement=NoiseFreeFirst(Scheduled(everywhere, tuple(by_step)), until),
        )  # fmt: skip
