"""Entropy: by loops, zero contraction where nothing moves, givens out, AUROC by counting pairs."""

import math
from itertools import product

import pytest
import torch
from torch import Tensor

from tiltrm.diagnose.entropy import Uncertainty, along_path, puzzle_mean

DRAW = torch.Generator().manual_seed(0)
PUZZLES, STEPS, PARTICLES, CELLS, TOKENS = 12, 3, 4, 5, 4


def recorded() -> tuple[Tensor, Tensor]:
    answers = torch.randint(0, TOKENS, (PUZZLES, STEPS, PARTICLES, CELLS), generator=DRAW)
    raw = torch.randn(PUZZLES, STEPS, PARTICLES, generator=DRAW).double()
    return answers.to(torch.uint8), torch.log_softmax(raw, -1)


def loop_entropy(tokens: list[int], weights: list[float]) -> float:
    total = 0.0
    for token in range(TOKENS):
        p = sum(w for t, w in zip(tokens, weights, strict=True) if t == token)
        total -= p * math.log(p) if p else 0.0
    return total / math.log(TOKENS)


def test_terminal_and_path_entropy_by_loops() -> None:
    answers, log_weights = recorded()
    terminal, path = along_path(answers, log_weights, TOKENS)
    for p, c in product(range(PUZZLES), range(CELLS)):
        each = [
            loop_entropy(answers[p, n, :, c].tolist(), log_weights[p, n].exp().tolist())
            for n in range(STEPS)
        ]
        assert float(terminal[p, c]) == pytest.approx(each[-1], abs=1e-6)
        assert float(path[p, c]) == pytest.approx(sum(each) / STEPS, abs=1e-6)


def test_contraction_is_zero_where_nothing_moves_and_positive_where_the_cloud_sharpens() -> None:
    answers, log_weights = recorded()
    still = answers[:, :1].expand_as(answers), log_weights[:, :1].expand_as(log_weights)
    sharp = answers.clone()
    sharp[:, -1] = 1  # all agree at the end
    for (clouds, weights), sign in ((still, 0), ((sharp, log_weights), 1)):
        terminal, path = along_path(clouds, weights, TOKENS)
        study = Uncertainty()
        study.add(terminal, path, clouds[:, -1, 0], torch.ones(PUZZLES, CELLS).bool(), None)
        got = study.figures()["mean"]["contraction"]
        assert got == pytest.approx(0.0, abs=1e-7) if sign == 0 else got > 0.1


def test_the_histogram_of_contraction_spans_from_minus_one_to_one() -> None:
    terminal = torch.tensor([1.0, 0.8, 0.5, 0.3, 0.0])[:, None]
    path = torch.tensor([0.0, 0.3, 0.5, 0.8, 1.0])[:, None]  # contraction -1, -.5, 0, .5, 1
    answers = torch.ones(5, 1).long()
    study = Uncertainty()
    study.add(terminal, path, answers, torch.ones(5, 1).bool(), answers)
    found = study.figures()["contraction"]
    assert [place for place, count in enumerate(found["solved"]["histogram"]) if count] == [
        0, 10, 20, 30, 39,
    ]  # fmt: skip
    assert sum(found["unsolved"]["histogram"]) == 0


def test_aurocs_count_pairs_of_free_cells() -> None:
    terminal, path = torch.rand(2, PUZZLES, CELLS, generator=DRAW).mul(8).round().div(8)
    answers = torch.randint(0, 2, (PUZZLES, CELLS), generator=DRAW)
    labels = torch.zeros_like(answers)
    free = torch.rand(PUZZLES, CELLS, generator=DRAW) < 0.6
    study = Uncertainty()
    for part in (slice(0, 5), slice(5, None)):
        study.add(terminal[part], path[part], answers[part], free[part], labels[part])
    found = study.figures()
    for name, value, among in (
        ("terminal", terminal, free), ("path", path, free),
        ("terminal, all cells", terminal, torch.ones_like(free)),
    ):  # fmt: skip
        wrong = value[among & (answers != labels)].tolist()
        right = value[among & (answers == labels)].tolist()
        won = [(w > r) + 0.5 * (w == r) for w in wrong for r in right]
        assert found["token_auroc"][name] == pytest.approx(sum(won) / len(won))
    assert found["token_auroc"]["terminal"] != found["token_auroc"]["terminal, all cells"]


def test_wrong_cells_with_high_entropy_score_high() -> None:
    entropy = torch.tensor([[0.1, 0.2, 0.9]]).expand(2, 3)
    answers = torch.tensor([[1, 1, 0], [1, 1, 1]])
    study = Uncertainty()
    study.add(entropy, entropy, answers, torch.ones(2, 3).bool(), torch.ones(2, 3).long())
    found = study.figures()
    assert found["token_auroc"]["terminal"] == pytest.approx(0.9)  # 4.5 of 5 pairs
    assert found["binned_accuracy"]["terminal"][-1]["share"] == 0.5
    assert found["contraction"]["solved"]["puzzles"] == 1
    assert found["contraction"]["unsolved"]["mean"] == 0.0


def test_a_puzzles_mean_leaves_givens_out() -> None:
    free = torch.tensor([[True, False, True], [False, False, False]])
    value = torch.tensor([[0.2, 9.0, 0.4], [1.0, 1.0, 1.0]])
    assert puzzle_mean(value, free).tolist() == pytest.approx([0.3, 0.0])


def test_upper_decile_of_puzzles() -> None:
    entropy = (torch.arange(20) / 20)[:, None].expand(20, 2)
    labels = torch.ones(20, 2).long()
    answers = labels.clone()
    answers[18:] = 0
    study = Uncertainty()
    study.add(entropy, entropy, answers, torch.ones(20, 2).bool(), labels)
    whole = study.figures()["puzzles_by_entropy"]["terminal"]
    assert whole["abstain_on_top"] == {
        "share": 0.1, "threshold": pytest.approx(17 / 20), "coverage": 0.9, "accuracy": 1.0,
    }  # fmt: skip
    assert whole["auroc"] == 1.0
    assert sum(study.figures()["contraction"]["solved"]["histogram"]) == 18
