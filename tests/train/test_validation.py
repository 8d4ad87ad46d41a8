"""Reports against running every puzzle alone and counting."""

import math

import pytest
import torch
import torch.nn.functional as F

from tiltrm.data import Puzzles
from tiltrm.model.base import step
from tiltrm.model.trm import TRM
from tiltrm.train.validation import MARKS, validate

from . import toys


@torch.no_grad()
def alone(model: TRM, table: Puzzles, steps: int) -> tuple[list[list[int]], list[float]]:
    """Tokens and halt logit of each puzzle after so many outer steps."""
    answers, halts = [], []
    for question in table.questions:
        inputs = model.embed(question[None])
        state = model.start(inputs)
        for _ in range(steps):
            state = step(model, inputs, state)
        answers.append(model.decode(state.answer).argmax(-1)[0].tolist())
        halts.append(float(model.halt_logit(state.answer)))
    return answers, halts


@pytest.mark.parametrize("batch", [1, 4, 100])
def test_report_by_counting(model: TRM, batch: int) -> None:
    """Half of the labels are what the model says after 5 steps, so half of it is right."""
    questions = toys.puzzles().questions[:10]
    table = Puzzles(toys.TASK, questions, toys.puzzles().labels()[:10].clone())
    answers, halts = alone(model, table, 5)
    table.labels()[:5] = torch.tensor(answers[:5], dtype=torch.uint8)
    table.labels()[7, 3:] = 0  # a pad is no cell
    report = validate(model, table, outer_steps=5, batch=batch, dtype=torch.float32)
    shares = {}
    for n in (3, 5):
        said, _ = alone(model, table, n)
        pairs = list(zip(said, table.labels().tolist(), strict=True))
        same = [[a == b for a, b in zip(*pair, strict=True) if b] for pair in pairs]
        shares[n] = sum(all(cells) for cells in same) / 10
    assert report.exact == pytest.approx(shares)
    assert report.final == pytest.approx(0.5)
    assert report.cells == pytest.approx(sum(sum(c) / len(c) for c in same) / 10)
    right = torch.tensor([all(cells) for cells in same])
    logits = torch.tensor(halts)
    assert report.halt_accuracy == pytest.approx(float(((logits > 0) == right).float().mean()))
    bce = F.binary_cross_entropy_with_logits(logits, right.float())
    assert report.halt_bce == pytest.approx(float(bce), rel=1e-4)
    wins = [p > n for p in logits[right].tolist() for n in logits[~right].tolist()]
    assert report.halt_auroc == pytest.approx(sum(wins) / len(wins))


def test_auroc_is_unknown_where_nothing_is_right(model: TRM) -> None:
    report = validate(
        model, toys.puzzles().take(slice(0, 4)), outer_steps=1, batch=8, dtype=torch.float32
    )
    assert report.exact == {1: 0.0}
    assert math.isnan(report.halt_auroc)


def test_marks_below_the_last_step(model: TRM) -> None:
    table = toys.puzzles().take(slice(0, 2))
    report = validate(model, table, outer_steps=12, batch=8, dtype=torch.float32)
    assert list(report.exact) == [mark for mark in MARKS if mark <= 12]
