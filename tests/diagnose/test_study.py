"""A study of many clouds is the mean of the single ones, in any chunks."""

import pytest
import torch
from torch import Tensor

from tiltrm.diagnose import alignment
from tiltrm.diagnose.study import Study

DRAW = torch.Generator().manual_seed(0)
SCORES = 2 * torch.randn(10, 4, 6, generator=DRAW)
SUCCESS = torch.rand(10, 6, generator=DRAW) < 0.4
ANSWERS = torch.where(SUCCESS, 0, torch.randint(1, 4, (10, 6), generator=DRAW))[..., None]


def study_of(scores: Tensor, success: Tensor | None, size: int, beta: float = 0.5) -> Study:
    study = Study(beta, scores.shape[1])
    for first in range(0, len(scores), size):
        part = slice(first, first + size)
        study.add(scores[part], ANSWERS[part], None if success is None else success[part])
    return study


def test_figures_are_means_over_single_clouds() -> None:
    found = study_of(SCORES, SUCCESS, 3).figures()
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
def test_what_a_whole_run_does(steps: int) -> None:
    """48 tilts, those that were not watched as the last one; more where more were watched."""
    scores = 0.02 * SCORES[:, :1].repeat(1, steps, 1) if steps > 4 else 0.02 * SCORES
    found = study_of(scores, SUCCESS, 3).figures()["whole_run"]
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
    whole, parts = (study_of(SCORES, SUCCESS, size).figures() for size in (10, 1))
    for name, value in whole.items():
        assert parts[name] == pytest.approx(value, nan_ok=True), name


def test_without_labels_nothing_labelled_is_said() -> None:
    found = study_of(SCORES, None, 4).figures()
    assert {"spread", "bound", "moved", "ess", "reach"} <= set(found)
    assert not {"gap", "auroc", "shift", "score_right"} & set(found)
    assert set(found["whole_run"]) == {"moved"}


def test_reach_is_that_of_the_tilts_of_all_steps() -> None:
    """By beta: the mass that the whole run moves, from the sum of a particle's scores."""
    reach = study_of(SCORES, None, 4).figures()["reach"]
    total = SCORES.double().sum(1)
    for beta in (0.05, 1.0, 8.0):
        moved = alignment.moved(alignment.even(total), total, beta)
        assert reach[beta] == pytest.approx(float(moved.mean()))
    assert reach["hard"] == pytest.approx(5 / 6)  # from one in six to all on the best


def test_suggested_beta_undoes_the_scale_of_the_guide() -> None:
    assert study_of(SCORES, None, 4).suggested_beta() is not None
    loud, quiet = (study_of(scale * SCORES, None, 4).suggested_beta() for scale in (1.0, 0.1))
    assert loud is not None
    assert quiet is not None
    assert 4 <= quiet / loud <= 25
    assert study_of(torch.zeros(10, 4, 6), None, 4).suggested_beta() is None
    assert study_of(1e-4 * SCORES, None, 4).suggested_beta() is None
