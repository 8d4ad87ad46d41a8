"""Symmetry voting: every view is undone before the votes are counted."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from tiltrm.data import Puzzles
from tiltrm.errors import SettingsError
from tiltrm.evaluate.measure import Judge
from tiltrm.evaluate.symmetry_voting import symmetry_vote
from tiltrm.explore import Exploration, explore
from tiltrm.model.base import State
from tiltrm.model.trm import TRM
from tiltrm.solving.methods import FIXED
from tiltrm.tasks import MAZE, SUDOKU, Symmetry
from tiltrm.tasks.base import views
from tiltrm.tasks.grid import BLANK

from .toys import TASK, Copying

ONE = Exploration(particles=1, noise=0.0, outer_steps=3, beta=0.0, entropy_every=0)


def cast(model: Any, puzzles: Puzzles, labels: Tensor | None = None, **more: Any) -> Any:
    settings = {"copies": 6, "select": "majority", "seed": 0, **more}
    known = puzzles.labels() if labels is None else labels
    return symmetry_vote(model, Judge(TASK, puzzles.questions, known), ONE, **settings)


@pytest.mark.parametrize("task", [SUDOKU, MAZE, TASK])
def test_views_are_different_and_the_first_is_the_puzzle(task: Any) -> None:
    seen = views(task, 8, 1)
    rows = torch.cat((seen.source, seen.names), 1)
    assert len(rows.unique(dim=0)) == 8
    assert torch.equal(seen.source[0], torch.arange(task.cells))
    assert torch.equal(seen.names[0], torch.arange(task.vocabulary))


def test_a_task_has_only_so_many() -> None:
    with pytest.raises(SettingsError, match="at most 8"):
        views(MAZE, 9, 0)


def test_an_equivariant_model_agrees_with_itself(puzzles: Puzzles) -> None:
    found = cast(Copying(), puzzles, labels=puzzles.questions)
    assert torch.equal(found.answers, puzzles.questions)
    assert torch.equal(found.confidence, torch.ones(12))
    assert bool(found.oracle.all())
    assert found.evaluations.tolist() == [6 * 3 * 3] * 12


def test_a_wrong_undo_is_seen(puzzles: Puzzles, monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in (Symmetry.apply, lambda self, tokens: tokens):
        monkeypatch.setattr(Symmetry, "undo", wrong)
        found = cast(Copying(), puzzles, labels=puzzles.questions)
        assert float(found.confidence.max()) < 1.0


def test_the_vote_by_hand(toy: TRM, puzzles: Puzzles) -> None:
    """A model that is not equivariant: view by view, undone, counted."""
    seen = views(TASK, 6, 5)
    answers, halts = [], []
    for copy in range(6):
        one = Symmetry(seen.source[copy : copy + 1], seen.names[copy : copy + 1])
        turned = one.apply(puzzles.questions[None])[0]
        result = explore(toy, turned, ONE)
        answers.append(one.undo(result.answers[None])[0])
        halts.append(result.halt_probability)
    for select in ("majority", "best_score"):
        found = cast(toy, puzzles, select=select, seed=5)
        for row in range(12):
            given = [tuple(view[row].tolist()) for view in answers]
            halt = [float(view[row]) for view in halts]
            votes = [given.count(answer) if select == "majority" else 0 for answer in given]
            best = max(range(6), key=lambda copy: (votes[copy], halt[copy], -copy))
            assert tuple(found.answers[row].tolist()) == given[best]
            assert float(found.halt_probability[row]) == halt[best]
            share = votes[best] / 6 if select == "majority" else halt[best]
            assert float(found.confidence[row]) == pytest.approx(share)
    labels = answers[3]
    assert bool(cast(toy, puzzles, labels=labels, seed=5).oracle.all())


def test_one_copy_is_the_deterministic_model(toy: TRM, puzzles: Puzzles) -> None:
    plain = explore(toy, puzzles.questions, replace(FIXED["deterministic"], outer_steps=3))
    assert torch.equal(cast(toy, puzzles, copies=1).answers, plain.answers)


class Fragile(Copying):
    """Breaks on the views whose first cell is empty, and answers all others with the question."""

    def refine(self, inputs: Tensor, state: State) -> Tensor:
        new = super().refine(inputs, state)
        return torch.where(inputs[..., :1, :] == BLANK, math.nan, new)

    def decode(self, answer: Tensor) -> Tensor:
        return super().decode(answer.nan_to_num(0.0))


def test_a_copy_that_broke_has_no_vote_and_counts_as_dissent(puzzles: Puzzles) -> None:
    questions = puzzles.questions.clone()
    questions[0] = BLANK  # every copy of it breaks
    first = views(TASK, 6, 0).apply(questions.expand(6, -1, -1))[..., 0]  # (copy, puzzle)
    alive = (first != BLANK).sum(0).tolist()
    assert alive[0] == 0
    assert any(0 < count < 6 for count in alive)
    found = symmetry_vote(Fragile(), Judge(TASK, questions, questions),
                          replace(ONE, on_degenerate="abstain"), copies=6, select="majority",
                          seed=0)  # fmt: skip
    assert found.confidence.tolist() == pytest.approx([count / 6 for count in alive])
    assert found.oracle is not None
    assert found.oracle.tolist() == [count > 0 for count in alive]
    for row, count in enumerate(alive):
        assert torch.equal(found.answers[row], questions[row] if count else 0 * questions[row])
