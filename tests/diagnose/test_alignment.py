"""Alignment of single clouds against loops, and of many clouds as the mean of the single ones."""

import math
from collections.abc import Callable
from itertools import product

import pytest
import torch
from torch import Tensor

from tiltrm.diagnose import alignment
from tiltrm.statistics import auroc, won_pairs

DRAW = torch.Generator().manual_seed(0)
SCORES = 2 * torch.randn(10, 4, 6, generator=DRAW)
SUCCESS = torch.rand(10, 6, generator=DRAW) < 0.4
ANSWERS = torch.where(SUCCESS, 0, torch.randint(1, 4, (10, 6), generator=DRAW))[..., None]


def clouds(count: int, particles: int = 6, scale: float = 2.0) -> tuple[Tensor, Tensor, Tensor]:
    """Normalised log-weights, scores and outcomes, all (cloud, particle)."""
    draw = torch.Generator().manual_seed(count)  # the same whichever tests ran before
    weights = torch.rand(count, particles, generator=draw).double() + 0.01
    log_weights = (weights / weights.sum(-1, keepdim=True)).log()
    score = scale * torch.randn(count, particles, generator=draw).double()
    return log_weights, score, torch.rand(count, particles, generator=draw) < 0.5


def loop_tilt(log_weights: Tensor, score: Tensor, t: float) -> list[float]:
    raw = [math.exp(w + t * q) for w, q in zip(log_weights.tolist(), score.tolist(), strict=True)]
    return [value / sum(raw) for value in raw]


def loop_spread(weights: list[float], score: list[float]) -> float:
    """By pairs: half the mean squared difference of two independent draws."""
    pairs = product(range(len(score)), repeat=2)
    total = sum(weights[i] * weights[j] * (score[i] - score[j]) ** 2 for i, j in pairs)
    return math.sqrt(total / 2)


def test_spread_and_its_bound_by_loops() -> None:
    for log_weights, score, _ in zip(*clouds(20), strict=True):
        path = []
        for t in (0.0, 0.2, 0.4, 0.6, 0.8):
            weights = loop_tilt(log_weights, score, t)
            assert alignment.tilt(log_weights, score, t).exp().tolist() == pytest.approx(weights)
            path.append(loop_spread(weights, score.tolist()))
        assert float(alignment.spread(log_weights, score)) == pytest.approx(path[0])
        assert float(alignment.widest_spread(log_weights, score, 0.8, 5)) == pytest.approx(
            max(path)
        )
        assert float(alignment.spread_bound(log_weights, score, 0.8, 5)) == pytest.approx(
            0.4 * max(path)
        )


def test_gap_by_loops() -> None:
    for log_weights, score, success in zip(*clouds(30), strict=True):
        weights = loop_tilt(log_weights, score, 0.7)
        rows = list(zip(weights, score.tolist(), success.tolist(), strict=True))
        means = []
        for outcome in (True, False):
            mass = sum(w for w, _, s in rows if s is outcome)
            means.append(sum(w * q for w, q, s in rows if s is outcome) / mass if mass else None)
        got = float(alignment.gap_path(log_weights, score, success, 0.7, 2)[1])
        if None in means:
            assert math.isnan(got)
        else:
            assert got == pytest.approx(means[0] - means[1])


def test_gap_is_the_derivative_of_the_log_odds() -> None:
    log_weights, score, success = clouds(200)
    both = success.any(-1) & ~success.all(-1)
    for t in (0.0, 0.5, 1.5):

        def log_odds(at: float) -> Tensor:
            return torch.logit(alignment.mass(alignment.tilt(log_weights, score, at), success))

        slope = (log_odds(t + 1e-5) - log_odds(t - 1e-5)) / 2e-5
        gap = alignment.gap(alignment.tilt(log_weights, score, t), score, success)
        assert torch.allclose(slope[both], gap[both], atol=1e-6)
        assert gap[~both].isnan().all()


def test_covariance_is_p_times_one_minus_p_times_gap() -> None:
    log_weights, score, success = clouds(50)
    p = alignment.mass(log_weights, success)
    joint = alignment.mean(log_weights, success * score)
    covariance = joint - p * alignment.mean(log_weights, score)
    gap = alignment.gap(log_weights, score, success).nan_to_num()
    assert torch.allclose(covariance, p * (1 - p) * gap)


@pytest.mark.parametrize("beta", [0.05, 0.25, 1.0, 4.0])
@pytest.mark.parametrize("scale", [0.02, 0.5, 5.0])
def test_no_mass_shift_exceeds_the_spread_bound(beta: float, scale: float) -> None:
    log_weights, score, success = clouds(1000, scale=scale)
    tilted = alignment.tilt(log_weights, score, beta)
    shift = alignment.mass(tilted, success) - alignment.mass(log_weights, success)
    bound = alignment.spread_bound(log_weights, score, beta)
    assert (shift.abs() <= bound + 1e-12).all()
    worth_having = bound < 1.0
    assert not worth_having.any() or (shift.abs() > 0.3 * bound)[worth_having].any()


def test_moved_is_the_largest_shift_onto_any_set() -> None:
    log_weights, score, _ = clouds(20)
    sets = torch.tensor(list(product([False, True], repeat=6)))  # all 64
    tilted = alignment.tilt(log_weights, score, 0.8)
    shifts = torch.stack(
        [alignment.mass(tilted, some) - alignment.mass(log_weights, some) for some in sets]
    )
    moved = alignment.moved(log_weights, score, 0.8)
    assert torch.allclose(moved, shifts.amax(0))
    assert (moved <= alignment.spread_bound(log_weights, score, 0.8) + 1e-12).all()


def test_moved_between_is_the_largest_shift_onto_any_set_of_answers() -> None:
    log_weights, score, _ = clouds(20)
    score[3, 1] = log_weights[3, 1] = -torch.inf  # a dead particle moves nothing
    log_weights = torch.log_softmax(log_weights, -1)
    answers = torch.randint(0, 2, (20, 6, 2), generator=torch.Generator().manual_seed(5))
    answers[0] = 1  # all agree
    answers[1] = torch.tensor([[0, 0], [0, 1], [0, 2], [0, 3], [0, 4], [0, 5]])  # none do
    found = alignment.moved_between(answers, log_weights, score, 0.8)
    change = alignment.tilt(log_weights, score, 0.8).exp() - log_weights.exp()
    for row in range(20):
        onto: dict[tuple[int, ...], float] = {}
        for answer, gained in zip(answers[row].tolist(), change[row].tolist(), strict=True):
            onto[tuple(answer)] = onto.get(tuple(answer), 0.0) + gained
        assert float(found[row]) == pytest.approx(sum(max(0.0, gained) for gained in onto.values()))
    whole = alignment.moved(log_weights, score, 0.8)
    assert float(found[0]) == pytest.approx(0.0, abs=1e-12)
    assert float(found[1]) == pytest.approx(float(whole[1]))
    assert (found <= whole + 1e-12).all()


def test_won_pairs_are_the_auroc_of_each_cloud() -> None:
    _, score, success = clouds(40)
    score = score.round()  # ties
    score[0, 2] = -torch.inf  # a dead particle is in no pair
    won, pairs = won_pairs(score, success)
    for row in range(40):
        alive = torch.isfinite(score[row])
        expected = auroc(score[row][alive], success[row][alive])
        got = float(won[row] / pairs[row])
        assert got == pytest.approx(expected) or (math.isnan(got) and math.isnan(expected))


def test_a_dead_particle_changes_nothing() -> None:
    log_weights, score, success = clouds(10)
    dead = torch.full((10, 1), -torch.inf).double()
    more = torch.cat((log_weights, dead), -1), torch.cat((score, dead), -1)
    wider = torch.cat((success, torch.ones(10, 1, dtype=torch.bool)), -1)
    assert torch.allclose(
        alignment.spread_bound(*more, 0.5), alignment.spread_bound(log_weights, score, 0.5)
    )
    assert torch.allclose(
        alignment.gap(*more, wider), alignment.gap(log_weights, score, success), equal_nan=True
    )
    assert torch.allclose(alignment.even(more[1])[:, :6].exp(), torch.tensor(1 / 6).double())


@pytest.mark.parametrize("rise", [torch.log, torch.logit, lambda eta: 3 * eta, torch.exp])
def test_a_calibrated_guide_is_aligned(rise: Callable[[Tensor], Tensor]) -> None:
    """Lemma 5.4, exactly: a state that succeeds with chance eta is two, of weight eta and 1 - eta.

    Any rising function of eta, at every t of the tilting path, has Cov(Y, q) = Cov(eta, q) >= 0.
    """
    log_weights, drawn, _ = clouds(50)
    eta = torch.sigmoid(drawn)
    twice = torch.cat((log_weights + eta.log(), log_weights + (-eta).log1p()), -1)
    score = rise(eta).repeat(1, 2)
    success = torch.arange(12) < 6
    gaps = alignment.gap_path(twice, score, success.expand(50, -1), 2.0, 9)
    assert (gaps > 0).all()
    for t, gap in zip(alignment.times(2.0, 9), gaps, strict=True):
        one = alignment.tilt(log_weights, rise(eta), t)
        chance = alignment.mean(one, eta)
        covariance = alignment.mean(one, eta * rise(eta)) - chance * alignment.mean(one, rise(eta))
        assert torch.allclose(chance * (1 - chance) * gap, covariance)
        assert torch.allclose(chance, alignment.mass(alignment.tilt(twice, score, t), success))


def summed(
    scores: Tensor, success: Tensor | None, size: int, beta: float = 0.5
) -> alignment.Alignment:
    sums = alignment.Alignment(beta)
    for first in range(0, len(scores), size):
        part = slice(first, first + size)
        sums.add(scores[part], ANSWERS[part], None if success is None else success[part])
    return sums


def test_figures_are_means_over_single_clouds() -> None:
    found = summed(SCORES, SUCCESS, 3).figures()
    even = torch.full((6,), 1 / 6).double().log()
    for n in range(4):
        clouds = [SCORES[p, n].double() for p in range(10)]
        bounds = [float(alignment.spread_bound(even, q, 0.5)) for q in clouds]
        assert found["bound"][n] == pytest.approx(sum(bounds) / 10)
        gaps = [alignment.gap(even, q, s) for q, s in zip(clouds, SUCCESS, strict=True)]
        known = [float(g) for g in gaps if not g.isnan()]
        assert found["gap"][n] == pytest.approx(sum(known) / len(known))
        right = torch.cat([q[s] for q, s in zip(clouds, SUCCESS, strict=True)])
        assert found["score_right"][n] == pytest.approx(float(right.mean()))
        assert found["score_right_std"][n] == pytest.approx(float(right.std(unbiased=False)))
        won = pairs = 0.0
        for q, s in zip(clouds, SUCCESS, strict=True):
            for a in q[s].tolist():
                for b in q[~s].tolist():
                    won, pairs = won + (a > b), pairs + 1
        assert found["auroc"][n] == pytest.approx(won / pairs)
    assert found["largest_excess_over_bound"] <= 0


@pytest.mark.parametrize("steps", [4, 60])
def test_mass_moved_and_gained_by_a_whole_run(steps: int) -> None:
    """48 tilts, where steps that were not recorded score as the last one; or all that were."""
    scores = 0.02 * SCORES[:, :1].repeat(1, steps, 1) if steps > 4 else 0.02 * SCORES
    found = summed(scores, SUCCESS, 3).figures()["whole_run"]
    total = scores.double().sum(1) + max(0, 48 - steps) * scores[:, -1].double()
    weights = torch.softmax(0.5 * total, -1)
    gained = (weights * SUCCESS).sum(-1) - SUCCESS.double().mean(-1)
    assert found["gained"] == pytest.approx(float(gained.mean()))
    moved = 0.0
    for answers, own in zip(ANSWERS[..., 0], weights, strict=True):
        shifts = [float(own[answers == a].sum() - (answers == a).double().mean()) for a in range(4)]
        moved += sum(map(abs, shifts)) / 2
    assert found["moved"] == pytest.approx(moved / 10)
    assert found["moved"] > abs(found["gained"]) > 0.001


def test_chunks_do_not_matter() -> None:
    whole, parts = (summed(SCORES, SUCCESS, size).figures() for size in (10, 1))
    for name, value in whole.items():
        assert parts[name] == pytest.approx(value, nan_ok=True), name


def test_without_labels_nothing_labelled_is_said() -> None:
    found = summed(SCORES, None, 4).figures()
    assert {"spread", "bound", "moved", "ess", "reach"} <= set(found)
    assert not {"gap", "auroc", "shift", "score_right"} & set(found)
    assert set(found["whole_run"]) == {"moved"}


def test_reach_is_that_of_the_tilts_of_all_steps() -> None:
    """By beta: the mass that the whole run moves, from the sum of a particle's scores."""
    reach = summed(SCORES, None, 4).figures()["reach"]
    total = SCORES.double().sum(1)
    for beta in (0.05, 1.0, 8.0):
        moved = alignment.moved(alignment.even(total), total, beta)
        assert reach[beta] == pytest.approx(float(moved.mean()))
    assert reach["hard"] == pytest.approx(5 / 6)  # from one in six to all on the best


def test_suggested_beta_undoes_the_scale_of_the_guide() -> None:
    assert summed(SCORES, None, 4).suggested_beta() is not None
    loud, quiet = (summed(scale * SCORES, None, 4).suggested_beta() for scale in (1.0, 0.1))
    assert loud is not None
    assert quiet is not None
    assert 4 <= quiet / loud <= 25
    assert summed(torch.zeros(10, 4, 6), None, 4).suggested_beta() is None
    assert summed(1e-4 * SCORES, None, 4).suggested_beta() is None
