"""Settings are checked when they are made, and each name means what it says."""

from typing import Any

import numpy as np
import pytest
import torch

from tiltrm.diagnose import diagnose
from tiltrm.errors import SettingsError
from tiltrm.explore import Exploration, explore, latent_only
from tiltrm.explore.choices import make_noise, make_potential, make_resample, make_select
from tiltrm.explore.noise import OncePerSupervision
from tiltrm.explore.plan import Adaptive, Stage
from tiltrm.explore.resample import never
from tiltrm.explore.select import best_score
from tiltrm.model.trm import TRM
from tiltrm.records import build_record


def test_defaults_are_the_papers() -> None:
    settings = Exploration()
    assert (settings.particles, settings.noise, settings.beta) == (16, 0.3, 0.25)
    assert (settings.resample_below, settings.outer_steps) == (0.3, 48)
    assert settings.score_every == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("particles", 0),
        ("particles", 2.5),
        ("particles", True),
        ("outer_steps", 0),
        ("noise", -0.1),
        ("noise", float("nan")),
        ("noise", float("inf")),
        ("noise", 10**400),
        ("beta", -1.0),
        ("beta", "0.25"),
        ("resample_below", 1.1),
        ("score_every", 0),
        ("entropy_every", -1),
        ("placement", "nowhere"),
        ("resampler", "sistematic"),
        ("trigger", "sometimes"),
        ("potential", "kinetic"),
        ("select", "worst"),
        ("on_degenerate", "ignore"),
        ("select", None),
    ],
)
def test_a_bad_setting_is_named(name: str, value: object) -> None:
    with pytest.raises(SettingsError, match=name):
        Exploration(**{name: value})


@pytest.mark.parametrize(
    ("name", "plan"),
    [
        ("particles of a stage", {"stages": (Stage(2.5, 4),)}),  # type: ignore[arg-type]
        ("outer_steps of a stage", {"stages": (Stage(2, 0),)}),
        ("noise", {"stages": (Stage(2, 2, noise=float("nan")),)}),
        ("noise", {"noise": -1.0, "stages": (Stage(2, 2, noise=0.1),)}),
        ("beta", {"beta": -1.0}),
        ("resample_below", {"resample_below": 2.0}),
    ],
)
def test_a_bad_plan_is_refused_when_it_is_made(name: str, plan: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=f"{name} must be"):
        Adaptive(**plan)


@pytest.mark.parametrize("seed", [1.5, None, "a", True])
def test_a_seed_is_a_whole_number(toy: TRM, seed: Any) -> None:
    tokens = torch.ones(1, toy.cells, dtype=torch.long)
    settings = Exploration(particles=3, outer_steps=1)
    for run in (
        lambda: explore(toy, tokens, settings, seed=seed),
        lambda: diagnose(toy, tokens, settings=settings, seed=seed),
    ):
        with pytest.raises(SettingsError, match="seed must be a whole number"):
            run()
    assert explore(toy, tokens, settings, seed=np.int64(3)) is not None


def test_a_chunk_and_the_rooted_are_whole_numbers(toy: TRM) -> None:
    tokens = torch.ones(1, toy.cells, dtype=torch.long)
    settings = Exploration(particles=3, outer_steps=1)
    with pytest.raises(SettingsError, match=r"chunk must be a whole number >= 1, got 2\.5"):
        explore(toy, tokens, settings, chunk=2.5)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="rooted must be a whole number >= 0, got -1"):
        diagnose(toy, tokens, settings=settings, rooted=-1)
    with pytest.raises(SettingsError, match="noise must be"):
        diagnose(toy, tokens, settings=settings, noises=[0.1, float("nan")])


def test_a_misspelt_setting_fails() -> None:
    with pytest.raises(SettingsError, match="particels"):
        build_record(Exploration, {"particels": 4})
    assert build_record(Exploration, {"particles": 4}) == Exploration(particles=4)


def test_names_and_functions_are_both_choices(model: TRM) -> None:
    assert make_noise(Exploration(placement=latent_only), model).placement is latent_only
    assert make_noise(Exploration(placement="latent"), model).placement is latent_only
    assert make_select(Exploration(select=best_score), None) is best_score
    assert make_resample(Exploration(trigger="never")) is never
    supervision = make_noise(Exploration(placement="supervision"), model).placement
    assert supervision == OncePerSupervision(model.cycles)


def test_score_every_reaches_the_potential() -> None:
    potential = make_potential(Exploration(score_every=3))
    assert [n for n in range(1, 9) if potential.asks(n, 8)] == [3, 6, 8]
    last = make_potential(Exploration(potential="terminal"))
    assert [n for n in range(1, 9) if last.asks(n, 8)] == [8]
    assert last.tilt(torch.tensor(2.0), torch.tensor(5.0)) == 2.0
