"""The settings of an exploration, checked when they are made."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.explore import noise, resample, select, weights
from tiltrm.explore.checks import require_number, require_whole
from tiltrm.explore.noise import Noise, OncePerSupervision, Placement
from tiltrm.explore.resample import Resample, Resampler
from tiltrm.explore.select import Selector
from tiltrm.explore.weights import Potential
from tiltrm.model.base import RecursiveModel

PLACEMENTS: dict[str, Placement] = {
    "everywhere": noise.everywhere,
    "latent": noise.latent_only,
    "answer": noise.answer_only,
}
SUPERVISION = "supervision"  # needs the model's number of cycles
RESAMPLERS: dict[str, Resampler] = {
    "systematic": resample.systematic,
    "stratified": resample.stratified,
    "multinomial": resample.multinomial,
    "residual": resample.residual,
}
POTENTIALS = {"every_step": weights.every_step, "difference": weights.difference}
TERMINAL = "terminal"  # has no score_every
SELECTORS: dict[str, Selector] = {
    "map": select.weighted_map,
    "best_score": select.best_score,
    "majority": select.majority,
}
ORACLE = "oracle"  # needs labels
TRIGGERS = ("ess", "never", "always")


@dataclass(frozen=True)
class Exploration:
    """Algorithm 1 with the paper's Sudoku settings (Table 2). Names stand for the usual choices;
    where one says `| ...` a function of that form may be given instead.
    """

    particles: int = 16  # S
    noise: float = 0.3  # sigma
    beta: float = 0.25
    resample_below: float = 0.3  # tau_ESS, as a fraction of the particles
    outer_steps: int = 48  # N
    placement: str | Placement = "everywhere"  # latent, answer, supervision
    resampler: str | Resampler = "systematic"  # stratified, multinomial, residual
    trigger: str = "ess"  # never, always
    potential: str | Potential = "every_step"  # difference, terminal
    score_every: int = 1  # the guide is asked at multiples of this step, and at the last
    select: str | Selector = "map"  # best_score, majority, oracle
    entropy_every: int = 1  # steps between the terms of the path entropy; 0 leaves it out
    on_degenerate: str = "raise"  # abstain

    def __post_init__(self) -> None:
        for name in ("particles", "outer_steps", "score_every"):
            require_whole(name, getattr(self, name), 1)
        require_whole("entropy_every", self.entropy_every, 0)
        for name, most in (("noise", math.inf), ("beta", math.inf), ("resample_below", 1.0)):
            require_number(name, getattr(self, name), most)
        _known("placement", self.placement, [*PLACEMENTS, SUPERVISION], callable)
        _known("resampler", self.resampler, RESAMPLERS, callable)
        _known("trigger", self.trigger, TRIGGERS)
        _known(
            "potential", self.potential, [*POTENTIALS, TERMINAL], lambda p: isinstance(p, Potential)
        )
        _known("select", self.select, [*SELECTORS, ORACLE], callable)
        _known("on_degenerate", self.on_degenerate, ("raise", "abstain"))

    @classmethod
    def from_mapping(cls, settings: Mapping[str, Any]) -> "Exploration":
        """Settings read from a file or a command line; a name that is not one of them fails."""
        names = [field.name for field in fields(cls)]
        unknown = sorted(set(settings) - set(names))
        if unknown:
            raise SettingsError(f"settings are {', '.join(names)}; got unknown {unknown}")
        return cls(**settings)

    def make_noise(self, model: RecursiveModel) -> Noise:
        """The noise these settings mean for this model."""
        if not isinstance(self.placement, str):
            return Noise(self.noise, self.placement)
        if self.placement == SUPERVISION:
            return Noise(self.noise, OncePerSupervision(model.cycles))
        return Noise(self.noise, PLACEMENTS[self.placement])

    def make_resample(self) -> Resample:
        """The resampler inside its trigger."""
        resampler = (
            RESAMPLERS[self.resampler] if isinstance(self.resampler, str) else self.resampler
        )
        if self.trigger == "never":
            return resample.never
        if self.trigger == "always":
            return resample.always(resampler)
        return resample.when_ess_below(self.resample_below, resampler)

    def make_potential(self) -> Potential:
        """The potential, asked as often as score_every says."""
        if not isinstance(self.potential, str):
            return self.potential
        if self.potential == TERMINAL:
            return weights.terminal()
        return POTENTIALS[self.potential](self.score_every)

    def make_select(self, labels: Tensor | None) -> Selector:
        """The selector; the oracle needs labels, and without a tilt the guide has no say at all."""
        if not isinstance(self.select, str):
            return self.select
        if self.select == "map" and self.beta == 0.0:
            return select.unguided_map
        if self.select != ORACLE:
            return SELECTORS[self.select]
        if labels is None:
            raise SettingsError("select='oracle' needs labels, got none; pass labels=")
        return select.oracle(labels)


def _known(
    name: str, value: object, choices: Iterable[str],
    stands_in: Callable[[object], bool] = lambda value: False,
) -> None:  # fmt: skip
    """A string must be one of the choices; something of the right form may stand for one."""
    if not (value in choices if isinstance(value, str) else stands_in(value)):
        raise SettingsError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
