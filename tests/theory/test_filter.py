"""On a linear-Gaussian toy the explorer is a particle filter, and the exact filter is known."""

import pytest
import torch
from torch import Tensor

from tiltrm.explore import Clock, Exploration, explore, initial_cloud, make_problem, step
from tiltrm.explore.search import step_functions

from .toy import OBSERVED, SIGMA, LinearGaussian, kalman, likelihood

REPLICAS, PARTICLES = 1500, 32
CHOICES = [
    (resampler, trigger)
    for resampler in ("systematic", "stratified", "multinomial", "residual")
    for trigger in ("ess", "always")
] + [("systematic", "never")]


def run(settings: Exploration) -> tuple[Tensor, Tensor]:
    """Weighted mean (replica, 2) of (y, z) and log-evidence (replica,) by explore's own step."""
    model = LinearGaussian()
    tokens = torch.zeros(REPLICAS, 1, dtype=torch.long)
    problem = make_problem(model, tokens, PARTICLES, keys=torch.arange(REPLICAS), seed=5)
    cloud, functions = initial_cloud(model, problem), step_functions(model, settings, likelihood)
    log_evidence = torch.zeros(REPLICAS, dtype=torch.float64)
    for n in range(1, len(OBSERVED) + 1):
        clock = Clock(n, len(OBSERVED))
        cloud, info = step(cloud, problem, clock, model, **functions._asdict())
        log_evidence += info.log_evidence
    state = torch.stack([half[..., 0, 0] for half in cloud.state], -1).double()
    return (cloud.log_weights.double().exp()[..., None] * state).sum(1), log_evidence


def settings_for(resampler: str, trigger: str, placement: str = "everywhere") -> Exploration:
    return Exploration(
        particles=PARTICLES, noise=SIGMA, beta=1.0, resample_below=0.6,
        outer_steps=len(OBSERVED), resampler=resampler, trigger=trigger, placement=placement,
    )  # fmt: skip


def assert_zero_mean(values: Tensor, name: str) -> None:
    error = values.std(0) / len(values) ** 0.5
    assert (values.mean(0).abs() < 4 * error).all(), (name, values.mean(0), error)


@pytest.mark.parametrize("placement", ["everywhere", "latent"])
@pytest.mark.parametrize(("resampler", "trigger"), CHOICES)
def test_mean_and_evidence_match_the_exact_filter(
    resampler: str, trigger: str, placement: str
) -> None:
    """Z_hat / Z and Z_hat / Z x (mean - exact mean) are unbiased for any number of particles."""
    exact, log_evidence = kalman(answer_noise=placement == "everywhere")
    mean, estimate = run(settings_for(resampler, trigger, placement))
    ratio = (estimate - log_evidence).exp()
    assert_zero_mean(ratio - 1.0, "evidence")
    assert_zero_mean(ratio[:, None] * (mean - exact), "mean")
    error = 4 * mean.std(0) / REPLICAS**0.5 + 1 / PARTICLES  # a ratio's bias is of order 1 / S
    assert ((mean.mean(0) - exact).abs() < error).all()


def test_explore_reports_the_evidence_of_its_steps() -> None:
    settings = settings_for("systematic", "ess")
    tokens = torch.zeros(REPLICAS, 1, dtype=torch.long)
    keys = torch.arange(REPLICAS)
    result = explore(LinearGaussian(), tokens, settings, guide=likelihood, keys=keys, seed=5)
    _, estimate = run(settings)
    assert torch.allclose(result.log_evidence.double(), estimate, atol=1e-4)
    assert (result.evaluations == PARTICLES * len(OBSERVED) * 2).all()


def test_resampling_lowers_the_variance_of_the_evidence() -> None:
    """Why it is there: without it the weights of 32 particles collapse over the steps."""
    spread = {
        trigger: run(settings_for("systematic", trigger))[1].std() for trigger in ("ess", "never")
    }
    assert spread["ess"] < 0.9 * spread["never"]
