"""The verdict: its rule, its certainty, and its predictions against the effect of guidance."""

from typing import Any

import pytest
import torch
from benchmarks.verdict import (
    GuidanceEffect,
    GuidanceExperiment,
    ScoredRun,
    equal_to,
    scored_run,
    share_right,
)
from tests.diagnose.wells import EASY, HARD, AllOnes, Wells
from torch import Tensor

from tiltrm.diagnose import FLAT, HELP, UNSTABLE, diagnose
from tiltrm.diagnose.verdict import Bootstrap, SignalMeans, Signals, decide, judge, poisson
from tiltrm.explore import Exploration, explore
from tiltrm.explore.guides import Guide, halting

MODEL = Wells()
TASK: Any = AllOnes()


def puzzles(count: int, hard: int) -> tuple[Tensor, Tensor]:
    """Puzzles with one hard cell in `hard` of them, and their answers."""
    tokens = torch.full((count, 6), EASY)
    tokens[torch.arange(hard), torch.arange(hard) % 6] = HARD
    return tokens, torch.full((count, 6), EASY)


def test_the_rule() -> None:
    fine = SignalMeans(moved=0.2, recovery=0.9, survival=1.0, leaning=0.9)
    assert decide(fine) == HELP
    assert decide(fine._replace(moved=0.02)) == FLAT
    assert decide(fine._replace(leaning=0.3)) == FLAT
    assert decide(fine._replace(recovery=0.3)) == UNSTABLE
    assert decide(fine._replace(survival=0.1)) == HELP  # they leave the tube, and come back
    assert decide(fine._replace(recovery=None, survival=0.1)) == UNSTABLE
    assert decide(fine._replace(recovery=0.3, moved=0.0)) == UNSTABLE
    assert decide(SignalMeans(0.2, None, None, None)) == HELP


def test_the_limits_are_those_that_the_reasons_name() -> None:
    """Below 5 % is flat, below half is unstable; on the limit is neither."""
    fine = SignalMeans(moved=0.05, recovery=0.5, survival=0.0, leaning=0.5)
    assert decide(fine) == HELP
    assert decide(fine._replace(moved=0.049)) == FLAT
    assert decide(fine._replace(leaning=0.49)) == FLAT
    assert decide(fine._replace(recovery=0.49)) == UNSTABLE
    assert decide(fine._replace(recovery=None, survival=0.5)) == HELP
    assert decide(fine._replace(recovery=None, survival=0.49)) == UNSTABLE
    reasons = " ".join(judge(sample([0.3]), 0.3, 0.25, {0.3: 1.0}, None).reasons)
    assert "below 5% counts as flat" in reasons
    assert "below 50% counts as unstable" in reasons


def sample(moved: list[float]) -> Bootstrap:
    count = len(moved)
    one = torch.ones(count)
    found = Bootstrap()
    signals = Signals(torch.tensor(moved).double(), one, one, one, one, *[0 * one] * 5, one)
    found.add(torch.arange(count), signals.vector())
    return found


def test_certainty_falls_near_the_limit_and_with_few_puzzles() -> None:
    survival = {0.1: 1.0, 0.3: 0.95, 0.5: 0.2}
    sure = judge(sample([0.3] * 30), 0.3, 0.25, survival, 0.5)
    assert (sure.verdict, sure.suggested) == (HELP, {"noise": 0.3, "beta": 0.5})
    assert sure.certainty == pytest.approx(31 / 33)
    close = judge(sample([0.0, 0.11] * 15), 0.3, 0.25, survival, None)
    assert 0.3 < close.certainty < 0.9
    assert judge(sample([0.3]), 0.3, 0.25, survival, None).certainty <= 0.5


def test_the_plain_sums_come_first() -> None:
    assert sample([0.1, 0.2]).replicate_sums()[0].tolist() == pytest.approx(
        [0.3, 2, 2, 2, 2, 0, 0, 0, 0, 0, 2, 2]
    )


def test_a_quieter_noise_is_suggested_where_this_one_is_too_loud() -> None:
    survival = {0.1: 1.0, 0.3: 0.95, 0.5: 0.2}
    assert judge(sample([0.3] * 5), 0.5, 0.25, survival, None).suggested["noise"] == 0.3
    assert judge(sample([0.3] * 5), 0.5, 0.25, {0.5: 0.2}, None).suggested["noise"] is None
    assert judge(sample([0.3] * 5), 0.3, 0.25, {0.3: 0.89}, None).suggested["noise"] is None
    assert judge(sample([0.3] * 5), 0.3, 0.25, {0.3: 0.9}, None).suggested["noise"] == 0.3
    one = torch.ones(5)
    lost = Signals(0.3 * one, one, 0 * one, one, one, *[0 * one] * 5, one)
    unstable = Bootstrap()
    unstable.add(torch.arange(5), lost.vector())
    stays = {0.1: 1.0, 0.2: 1.0, 0.3: 1.0, 0.5: 1.0}  # in the tube, but not to the same answer
    found = judge(unstable, 0.3, 0.25, stays, None)
    assert (found.verdict, found.suggested["noise"]) == (UNSTABLE, 0.2)


def test_poisson_weights() -> None:
    drawn = poisson(torch.arange(2000), 20)
    assert float(drawn.mean()) == pytest.approx(1.0, abs=4 / 200)
    assert float(drawn.var()) == pytest.approx(1.0, abs=0.05)


def test_the_right_verdict_follows_from_the_effect() -> None:
    assert GuidanceEffect(0.75, 0.6, 0.9, 0.1, 0.02).verdict == HELP
    assert GuidanceEffect(0.75, 0.9, 0.9, 0.1, 0.02).verdict == HELP  # mass, whatever the vote had
    assert GuidanceEffect(0.75, 0.6, 0.9, 0.03, 0.02).verdict == FLAT  # ties, or luck
    assert (
        GuidanceEffect(0.75, 0.6, 0.9, 0.019, 0.001).verdict == FLAT
    )  # sure, and not worth having
    assert GuidanceEffect(0.75, 0.6, 0.5, -0.1, 0.02).verdict == FLAT
    assert GuidanceEffect(0.75, 0.6, 0.6).verdict == FLAT
    assert GuidanceEffect(0.75, 0.1, 0.25, 0.2, 0.02).verdict == UNSTABLE
    assert GuidanceEffect(0.75, 0.1, 0.8, 0.5, 0.02).verdict == HELP  # brought back


def test_the_gain_is_in_mass() -> None:
    """By hand: two puzzles; the vote is the same, the weights are not."""
    one, half = torch.ones(2).double(), torch.tensor([0.5, 1.0]).double()
    quiet, even = ScoredRun(torch.tensor([1.0, 0.0]), one, one), ScoredRun(one, half, one)
    found = GuidanceEffect.of(quiet, even, ScoredRun(one, torch.tensor([0.9, 1.0]).double(), half))
    assert found[:3] == (0.5, 1.0, 1.0)
    assert found.gained == pytest.approx(0.2)
    assert found.oracle == 0.75
    assert found.error == pytest.approx(0.2)  # gains of .4 and 0, their deviation over root 2


def test_right_mass_is_the_weight_of_right_particles() -> None:
    tokens, labels = puzzles(6, 3)
    settings = Exploration(particles=8, outer_steps=5, noise=0.3, beta=0.5, trigger="never")
    found = explore(MODEL, tokens, settings, seed=3)
    weights = found.log_weights.exp()
    run = scored_run(MODEL, tokens, equal_to(labels), settings, seed=3)
    for n in range(6):
        right = [bool((own == labels[n]).all()) for own in found.particle_answers[n]]
        wanted = sum(float(w) for w, good in zip(weights[n], right, strict=True) if good)
        assert float(run.mass[n]) == pytest.approx(wanted, abs=1e-6)
        assert bool(run.oracle[n]) == any(right)
        assert bool(run.solved[n]) == bool((found.answers[n] == labels[n]).all())
    assert 0 < float(run.mass.mean()) < 1


SETTINGS = {  # name: (guide, noise)
    "halting": (halting(MODEL), 0.3),
    "halting, less noise": (halting(MODEL), 0.2),
    "flat": (0.001 * halting(MODEL), 0.3),
    "constant": (Guide(lambda state, context: torch.zeros(state.answer.shape[:2])), 0.3),
    "reversed": (-1.0 * halting(MODEL), 0.3),
    "far too loud": (halting(MODEL), 3.0),
}


def test_predictions_come_true() -> None:
    """Predicted from 12 puzzles without labels; checked on 40 others with the whole algorithm."""
    seen, _ = puzzles(12, 6)
    tokens, labels = puzzles(40, 20)
    predicted, effects = {}, {}
    experiment = GuidanceExperiment(MODEL, tokens, equal_to(labels))
    for name, (guide, noise) in SETTINGS.items():
        small = Exploration(particles=8, outer_steps=9, noise=noise, beta=1.0)
        report = diagnose(MODEL, seen, task=TASK, guides={name: guide}, settings=small, rooted=1)
        predicted[name] = report.verdict
        full = Exploration(particles=16, outer_steps=12, noise=noise, beta=1.0)
        effects[name] = experiment(full, guide)
    assert (
        len(experiment.known) == 1 + 3
    )  # one quiet trajectory, and the three noises without a tilt
    assert predicted["halting"] == HELP
    assert effects["halting"].guided > effects["halting"].unguided + 0.1
    assert predicted["far too loud"] == UNSTABLE
    assert {predicted[name] for name in ("flat", "constant", "reversed")} == {FLAT}
    assert share_right(list(predicted.values()), list(effects.values())) == 1.0, effects


def test_the_verdict_is_about_the_first_guide() -> None:
    seen, _ = puzzles(12, 6)
    settings = Exploration(particles=8, outer_steps=9, noise=0.3, beta=1.0)
    for names, verdict in ((("halting", "flat"), HELP), (("flat", "halting"), FLAT)):
        guides = {name: SETTINGS[name][0] for name in names}
        report = diagnose(MODEL, seen, task=TASK, guides=guides, settings=settings, rooted=0)
        assert report.verdict == verdict
