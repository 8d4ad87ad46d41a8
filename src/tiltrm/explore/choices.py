"""From the settings of an exploration to the functions of a step."""

from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.explore import noise, resample, select, weights
from tiltrm.explore.noise import Noise, OncePerSupervision, Placement
from tiltrm.explore.resample import Resample, Resampler
from tiltrm.explore.select import Selector
from tiltrm.explore.weights import Potential
from tiltrm.model.base import RecursiveModel
from tiltrm.settings import ORACLE, Exploration

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
BEST_SO_FAR = "best_so_far"  # the best-scored answer of all steps (tiltrm.explore.bank)


def make_noise(settings: Exploration, model: RecursiveModel) -> Noise:
    """The noise of these settings for this model."""
    if not isinstance(settings.placement, str):
        return Noise(settings.noise, settings.placement)
    if settings.placement == SUPERVISION:
        return Noise(settings.noise, OncePerSupervision(model.cycles))
    return Noise(settings.noise, PLACEMENTS[settings.placement])


def make_resample(settings: Exploration) -> Resample:
    """The resampler inside its trigger."""
    named = settings.resampler
    resampler = RESAMPLERS[named] if isinstance(named, str) else named
    if settings.trigger == "never":
        return resample.never
    if settings.trigger == "always":
        return resample.always(resampler)
    return resample.when_ess_below(settings.resample_below, resampler)


def make_potential(settings: Exploration) -> Potential:
    """The potential, asked as often as score_every says."""
    if isinstance(settings.potential, Potential):
        return settings.potential
    if settings.potential == TERMINAL:
        return weights.terminal()
    return POTENTIALS[settings.potential](settings.score_every)


def make_select(settings: Exploration, labels: Tensor | None) -> Selector:
    """The selector. The oracle needs labels; without a tilt the guide does not break ties."""
    chosen: str | Selector = settings.select
    if not isinstance(chosen, str):
        return chosen
    if settings.select == "map" and settings.beta == 0.0:
        return select.unguided_map
    if settings.select == BEST_SO_FAR:
        return select.best_score  # of the last cloud; its answer is the bank's
    if settings.select != ORACLE:
        return SELECTORS[settings.select]
    if labels is None:
        raise SettingsError("select='oracle' needs labels, got none; pass labels=")
    return select.oracle(labels)
