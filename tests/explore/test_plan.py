"""Plans: their text, and what a stage without noise draws."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.explore import noise
from tiltrm.explore.plan import Adaptive, Stage, format_stages, parse_stages
from tiltrm.explore.running import solve_adaptively
from tiltrm.model.trm import TRM

STAGES = st.lists(
    st.builds(
        Stage, st.integers(1, 99), st.integers(1, 99), st.booleans(),
        st.none() | st.sampled_from([0.0, 0.3, 0.6, 1.5]),
    ),
    min_size=1, max_size=6,
).map(tuple)  # fmt: skip


@given(stages=STAGES)
def test_the_text_of_stages_reads_back(stages: tuple[Stage, ...]) -> None:
    assert parse_stages(format_stages(stages)) == stages


def test_repetitions_and_noises() -> None:
    assert parse_stages("1x20 2x16*2 8x24@0.6") == (
        Stage(1, 20), Stage(2, 16), Stage(2, 16), Stage(8, 24, noise=0.6),
    )  # fmt: skip


@pytest.mark.parametrize("text", ["2", "2x", "x16", "2x16*", "2x16@", "-1x3", "2x16**2", "2y16"])
def test_a_word_that_is_no_stage_is_named(text: str) -> None:
    with pytest.raises(SettingsError, match="a stage must be like"):
        parse_stages(f"1x20 {text}")


@pytest.mark.parametrize("views", [False, True])
def test_a_stage_of_one_quiet_particle_draws_no_noise(
    model: TRM, tokens: Tensor, monkeypatch: pytest.MonkeyPatch, views: bool
) -> None:
    """Stage 1 calls the noise generator at no site; the stage after it at every site."""
    drawn: list[int] = []
    real = noise.perturb

    def counted(value: Tensor, keys: Tensor, site: int, scale: Tensor) -> Tensor:
        drawn.append(value.shape[1])
        return real(value, keys, site, scale)

    monkeypatch.setattr(noise, "perturb", counted)
    plan = Adaptive((Stage(1, 3), Stage(2, 1)), symmetric_views=False)
    solve_adaptively(model, tokens, {}, plan)
    assert set(drawn) == {2}
    # With symmetric views a later stage of one particle is noisy: it is fresh.
    later = Adaptive((Stage(1, 2), Stage(1, 1)), symmetric_views=views).exploration()
    first, second = (later.placement(noise.Where(noise.Clock(step, 3), noise.INNER,
                                                 torch.arange(1))) for step in (1, 3))  # fmt: skip
    assert first == 0.0
    assert (second != 0.0) == views
