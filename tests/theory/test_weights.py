"""Weights: extremes, dead clouds, potentials and the tilt identity."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from tiltrm.errors import DegenerateError
from tiltrm.explore import (
    Clock,
    Cloud,
    Context,
    Exploration,
    Tilt,
    explore,
    initial_cloud,
    make_problem,
)
from tiltrm.explore.weights import (
    conditional_ess,
    degenerate,
    ess,
    every_step,
    largest_beta,
    normalise,
    require_weight,
)
from tiltrm.model.base import State

from .toy import OBSERVED, SIGMA, LinearGaussian, likelihood


def test_ess_extremes() -> None:
    """1 for one survivor, S for even weights, k for k even survivors, 0 for nobody."""
    for alive in range(9):
        weights = torch.zeros(1, 8)
        weights[0, :alive] = 1.0 / max(alive, 1)
        assert torch.allclose(ess(weights.log()), torch.tensor([float(alive)]))
    even = torch.log_softmax(torch.zeros(1, 1000), -1)
    assert ess(even) <= 1000


def test_normalise_is_exact_at_any_offset() -> None:
    log_weights = torch.tensor([[0.0, 1.0, -2.0, -torch.inf]])
    for offset in (0.0, 300.0, -3e4):
        weights, total = normalise(log_weights + offset)
        assert torch.allclose(weights, torch.log_softmax(log_weights, -1), atol=2e-3 + 1e-7)
        assert torch.allclose(total, torch.logsumexp(log_weights, -1) + offset)
        assert torch.allclose(weights.exp().sum(), torch.tensor(1.0), atol=3e-3)


def test_dead_clouds_are_visible() -> None:
    nan, inf = torch.nan, torch.inf
    bad = torch.tensor([[-inf, -inf, -inf], [nan, nan, nan], [nan, inf, -inf], [nan, 0.0, inf]])
    weights, total = normalise(bad)
    assert not weights.isnan().any()
    assert degenerate(weights).tolist() == [True, True, True, False]
    assert total[:3].tolist() == [-inf] * 3
    assert weights[3].tolist() == [-inf, 0.0, -inf]
    assert ess(weights).tolist() == [0.0, 0.0, 0.0, 1.0]
    require_weight(weights[3:])
    with pytest.raises(DegenerateError, match="puzzle 0, 1, 2"):
        require_weight(weights)


def weigh(score: Tensor, beta: float) -> Tensor:
    """The weights that one `tilted` step gives to particles with these scores."""
    model = LinearGaussian()
    question = make_problem(model, torch.zeros(len(score), 1, dtype=torch.long), score.shape[1])
    cloud = initial_cloud(model, question)
    state = State(*(half.clone() for half in cloud.state))
    context = Context(question, Clock(1, 1), cloud.state, state, model.decode)
    step = Tilt(lambda state, context: score, beta, every_step())
    return step(Cloud(state, cloud.log_weights, cloud.score), context).log_weights.double().exp()


@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_a_state_that_is_not_finite_has_no_weight(half: int, value: float) -> None:
    """In either of its halves; the score alone would not tell."""
    model = LinearGaussian()
    question = make_problem(model, torch.zeros(1, 1, dtype=torch.long), 3)
    cloud = initial_cloud(model, question)
    state = State(*(part.clone() for part in cloud.state))
    state[half][0, 1] = value
    context = Context(question, Clock(1, 1), cloud.state, state, model.decode)
    found = Tilt(lambda state, context: torch.zeros(1, 3), 1.0, every_step())(cloud, context)
    assert found.log_weights.exp()[0].tolist() == pytest.approx([0.5, 0.0, 0.5])
    assert found.score[0].tolist() == [0.0, -torch.inf, 0.0]


def test_tilt_identity() -> None:
    """d/dbeta E[phi] = Cov(phi, q) under the tilted law (eq. 16), by central differences."""
    draw = torch.Generator().manual_seed(0)
    score, phi = torch.randn(2, 20, 64, generator=draw)
    for beta in (0.25, 1.0, 2.0):
        up, down = ((weigh(score, beta + d) * phi).sum(-1) for d in (0.01, -0.01))
        weights = weigh(score, beta)
        mean = (weights * phi).sum(-1)
        covariance = (weights * phi * score).sum(-1) - mean * (weights * score).sum(-1)
        assert torch.allclose((up - down) / 0.02, covariance, atol=2e-4)


def toy(**choices: object) -> Tensor:
    """Final log-weights and scores of the toy, nobody resampled: (2, puzzle, particle)."""
    settings = Exploration(
        particles=16, noise=SIGMA, beta=0.7, outer_steps=len(OBSERVED), trigger="never"
    )
    tokens = torch.zeros(9, 1, dtype=torch.long)
    result = explore(
        LinearGaussian(), tokens, replace(settings, **choices), guide=likelihood,
        keys=torch.arange(9), trace=True,
    )  # fmt: skip
    assert result.trace is not None
    return torch.stack((result.log_weights, result.scores))


def test_difference_telescopes() -> None:
    """With q_0 = 0 the weight of a path is exp(beta q_N), as with the terminal potential."""
    log_weights, scores = toy(potential="difference")
    assert torch.allclose(log_weights, torch.log_softmax(0.7 * scores, -1), atol=1e-5)
    assert torch.allclose(log_weights, toy(potential="terminal")[0], atol=1e-5)
    assert not torch.allclose(log_weights, toy()[0], atol=1e-2)
    sparse, scores = toy(potential="difference", score_every=2)  # the score asked last is kept
    assert torch.allclose(sparse, torch.log_softmax(0.7 * scores, -1), atol=1e-5)


def test_difference_telescopes_across_resampling() -> None:
    """The score that is taken back is the ancestor's: the evidence is that of the terminal tilt."""
    tokens = torch.zeros(3000, 1, dtype=torch.long)
    settings = Exploration(particles=32, noise=SIGMA, beta=0.7, outer_steps=len(OBSERVED))
    ratio = []
    for potential, trigger in (("difference", "always"), ("terminal", "never")):
        result = explore(
            LinearGaussian(), tokens, replace(settings, potential=potential, trigger=trigger),
            guide=likelihood, keys=torch.arange(3000),
        )  # fmt: skip
        ratio.append(result.log_evidence.double().exp())
    error = (ratio[0].var() + ratio[1].var()).sqrt() / 3000**0.5
    assert (ratio[0].mean() - ratio[1].mean()).abs() < 4 * error


def test_score_every_tilts_at_multiples() -> None:
    """With score_every = 3 of 6 steps, the weight of a path is exp(beta (q_3 + q_6))."""
    result = explore(
        LinearGaussian(), torch.zeros(1, 1, dtype=torch.long),
        Exploration(particles=16, noise=SIGMA, beta=0.7, outer_steps=6, trigger="never"),
        guide=likelihood, trace=True,
    )  # fmt: skip
    assert result.trace is not None
    third, sixth = result.trace.scores[0, 2], result.trace.scores[0, 5]
    sparse = explore(
        LinearGaussian(), torch.zeros(1, 1, dtype=torch.long),
        Exploration(
            particles=16, noise=SIGMA, beta=0.7, outer_steps=6, trigger="never", score_every=3
        ),
        guide=likelihood,
    )  # fmt: skip
    expected = torch.log_softmax(0.7 * (third + sixth), -1)
    assert torch.allclose(sparse.log_weights[0], expected, atol=1e-5)


def test_conditional_ess_is_the_ess_of_even_weights() -> None:
    """And S for a potential that tells nobody apart, however uneven the weights are."""
    score = torch.randn(6, 9).double()
    even = torch.log_softmax(torch.zeros(6, 9).double(), -1)
    assert torch.allclose(conditional_ess(even, score), ess(normalise(even + score)[0]))
    uneven = torch.log_softmax(3 * torch.randn(6, 9).double(), -1)
    flat = torch.full((6, 9), 2.5).double()
    assert torch.allclose(conditional_ess(uneven, flat), torch.tensor(9.0).double())
    steps = [conditional_ess(uneven, t * score) for t in (0.0, 0.5, 1.0, 2.0, 4.0)]
    for before, after in pairwise(steps):
        assert (after <= before + 1e-9).all()


@pytest.mark.parametrize("fraction", [0.3, 0.6, 0.9])
def test_the_chosen_beta_leaves_the_wanted_ess(fraction: float) -> None:
    """Exactly the wanted share where beta would leave less, else beta itself; the dead aside."""
    torch.manual_seed(0)
    score = torch.randn(40, 8) * torch.linspace(0.01, 6, 40)[:, None]
    weights = torch.log_softmax(torch.randn(40, 8), -1)
    weights[3, :4] = -torch.inf
    score[3, 0] = torch.nan
    weights = normalise(weights)[0]
    found = largest_beta(weights, score, 2.0, fraction)[:, 0].double()
    score = torch.where(weights > -torch.inf, score, 0.0)
    left = conditional_ess(weights.double(), found[:, None] * score.double()) / 8
    at_most = conditional_ess(weights.double(), 2.0 * score.double()) / 8
    whole = at_most >= fraction
    assert whole.any()
    assert (~whole).any()
    assert (found[whole] == 2.0).all()
    assert torch.allclose(left[~whole], torch.tensor(fraction).double(), atol=1e-4)


def test_a_step_with_a_target_keeps_the_wanted_ess() -> None:
    """Through `explore`: from even weights, the ESS after the first step is the wanted one."""
    tokens = torch.zeros(6, 1, dtype=torch.long)
    run = Exploration(particles=40, outer_steps=1, noise=SIGMA, beta=100.0, trigger="never")

    def first_ess(target: float) -> Tensor:
        own = replace(run, target_ess=target)
        return explore(LinearGaussian(), tokens, own, guide=likelihood, keys=torch.arange(6)).ess

    assert torch.allclose(first_ess(0.5), torch.tensor(20.0), atol=0.05)
    assert (first_ess(0.0) < 15).all()
