"""The variance of the evidence from the ancestry: exact, by enumerating every random choice."""

import math
from itertools import product

import pytest
import torch
from torch import Tensor

from tiltrm.explore import Exploration, explore
from tiltrm.explore.ancestry import Ancestry
from tiltrm.explore.cloud import Cloud, StepInfo
from tiltrm.explore.weights import normalise

from .toy import SIGMA, LinearGaussian, likelihood

STAY = 0.7  # probability that a particle keeps its state, 0 or 1, in a step
FIRST = 0.4  # probability of state 1 at the first step
GAINS = torch.tensor([0.5, 2.0]).double()  # potential of either state
SIZE = 2  # particles


def runs(steps: int) -> list[tuple[float, list[list[int]], list[list[int]]]]:
    """(probability, states by step, ancestors by step) of every run with multinomial resampling."""
    found: list[tuple[float, list[list[int]], list[list[int]]]] = [(1.0, [], [])]
    for step in range(steps):
        longer = []
        for probability, states, ancestors in found:
            for now in product((0, 1), repeat=SIZE):
                p = probability
                for slot in range(SIZE):
                    parent = ancestors[-1][slot] if step else slot
                    one = FIRST if step == 0 else STAY if states[-1][parent] else 1 - STAY
                    p *= one if now[slot] else 1 - one
                gains = GAINS[list(now)]
                share = (gains / gains.sum()).tolist()
                for drawn in product(range(SIZE), repeat=SIZE):
                    q = p * math.prod(share[parent] for parent in drawn)
                    longer.append((q, [*states, list(now)], [*ancestors, list(drawn)]))
        found = longer
    return found


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_the_estimate_is_unbiased_for_multinomial_resampling(steps: int) -> None:
    """E[Z^2 V] = Var[Z], to rounding."""
    every = runs(steps)
    probability = torch.tensor([run[0] for run in every], dtype=torch.float64)
    assert float(probability.sum()) == pytest.approx(1.0)
    states = torch.tensor([run[1] for run in every])  # (run, step, particle)
    drawn = torch.tensor([run[2] for run in every])
    even = torch.full((len(every), SIZE), 1 / SIZE).double().log()
    ancestry, evidence = Ancestry(always=True), torch.ones(len(every)).double()
    for step in range(steps):
        gains = GAINS[states[:, step]]
        log_weights, log_mean = normalise(even + gains.log())
        evidence *= log_mean.exp()
        info = _info(log_weights, drawn[:, step])
        ancestry.add(Cloud(None, even, even), info)  # type: ignore[arg-type]
    mean = (probability * evidence).sum()
    variance = (probability * (evidence - mean) ** 2).sum()
    estimate = (probability * evidence**2 * ancestry.relative_variance()).sum()
    assert float(estimate) == pytest.approx(float(variance), rel=1e-9)
    assert float(variance) > 0.01


def _info(log_weights: Tensor, ancestors: Tensor) -> StepInfo:
    zero = torch.zeros(len(log_weights))
    return StepInfo(log_weights, log_weights, zero, zero, ancestors, None)  # type: ignore[arg-type]


def test_without_resampling_it_is_that_of_importance_weights() -> None:
    """(S sum W^2 - 1) / (S - 1), whatever the particles have weighed on the way."""
    tokens = torch.zeros(4, 1, dtype=torch.long)
    settings = Exploration(particles=50, outer_steps=3, noise=SIGMA, beta=1.0, trigger="never")
    found = explore(LinearGaussian(), tokens, settings, guide=likelihood, keys=torch.arange(4))
    squares = found.log_weights.double().exp().square().sum(-1)
    truth = (50 * squares - 1) / 49
    torch.testing.assert_close(found.evidence_variance, truth, rtol=1e-4, atol=1e-6)


def test_it_predicts_the_spread_of_repeated_runs() -> None:
    """Mean estimate against the variance of the evidence over 400 runs, multinomial resampling."""
    tokens = torch.zeros(400, 1, dtype=torch.long)
    settings = Exploration(
        particles=60, outer_steps=4, noise=SIGMA, beta=1.0, resampler="multinomial",
        resample_below=0.7,
    )  # fmt: skip
    found = explore(LinearGaussian(), tokens, settings, guide=likelihood, keys=torch.arange(400))
    evidence = found.log_evidence.double().exp()
    relative = float(evidence.var() / evidence.mean() ** 2)
    estimate = float((found.evidence_variance * evidence**2).mean() / evidence.mean() ** 2)
    assert estimate == pytest.approx(relative, rel=0.4)  # the variance itself is known to 7 %


def test_one_particle_has_no_estimate() -> None:
    tokens = torch.zeros(1, 1, dtype=torch.long)
    settings = Exploration(particles=1, outer_steps=2, noise=SIGMA)
    found = explore(LinearGaussian(), tokens, settings, guide=likelihood)
    assert (found.evidence_variance == torch.inf).all()
