"""The proposal kernel of several inner steps on a linear map, whose law is known."""

import pytest
import torch
from torch import Tensor

from tiltrm.explore import Clock, Noise, Problem, everywhere, initial_cloud, latent_only
from tiltrm.explore.noise import Placement
from tiltrm.explore.step import trajectory_sampler

from .toy import SIGMA, START, A, B, C, LinearGaussian

INNER, PARTICLES = 3, 200_000


class Deep(LinearGaussian):
    """M = 3 inner updates to an answer."""

    inner_steps = INNER


def proposed(placement: Placement, step: int = 1) -> Tensor:
    """(y, z) after one outer step, of this number, from the start: (2, particle)."""
    model, keys = Deep(), torch.tensor([11])
    slots = torch.arange(PARTICLES)
    question = Problem(torch.zeros(1, 1), torch.zeros(1, 1, 1, 1), keys, slots)
    propose = trajectory_sampler(model, Noise(SIGMA, placement))
    state = propose(initial_cloud(model, question).state, question, Clock(step, 2))
    return torch.stack([half.flatten() for half in state]).double()


@pytest.mark.parametrize("placement", [everywhere, latent_only])
def test_mean_and_covariance_are_those_of_the_kernel(placement: Placement) -> None:
    """Eqs. 3 to 5: zeta_M = A^M z + sigma sum A^j xi_j, y' = B y + C zeta_M + sigma xi_M."""
    found = proposed(placement)
    latent = SIGMA**2 * sum(A ** (2 * j) for j in range(INNER))  # each update has its own xi
    answer = C * C * latent + SIGMA**2 * (placement is everywhere)
    both = torch.tensor([[answer, C * latent], [C * latent, latent]]).double()
    mean = torch.tensor([B * START[0] + C * A**INNER * START[1], A**INNER * START[1]]).double()
    error = both.diagonal().sqrt() / PARTICLES**0.5
    assert ((found.mean(1) - mean).abs() < 4 * error).all()
    scale = torch.outer(both.diagonal(), both.diagonal()).sqrt() * (2 / PARTICLES) ** 0.5
    assert ((torch.cov(found) - both).abs() < 4 * scale).all()


def test_every_outer_step_has_noise_of_its_own() -> None:
    both = torch.cat([proposed(everywhere, step) for step in (1, 2)])
    across = torch.corrcoef(both)[:2, 2:]
    assert (across.abs() < 4 / PARTICLES**0.5).all()
