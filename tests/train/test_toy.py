"""The whole of training on a task that a CPU learns in seconds."""

from pathlib import Path

import pytest
import torch

from tiltrm.data import Puzzles
from tiltrm.model import load
from tiltrm.model.base import evaluations_per_step
from tiltrm.model.build import Model
from tiltrm.solving import solve
from tiltrm.solving.threshold import follow, threshold
from tiltrm.tasks import Sudoku
from tiltrm.tasks.base import exactly_right
from tiltrm.train.settings import load_preset
from tiltrm.train.trainer import Trainer
from tiltrm.train.validation import ValidationReport

from . import toys


def rows(puzzles: Puzzles) -> set[bytes]:
    return {row.numpy().tobytes() for row in puzzles.questions}


@pytest.mark.usefixtures("one_thread")
def test_a_toy_learns_to_solve_puzzles_it_never_saw(tmp_path: Path) -> None:
    every = toys.puzzles(3000)
    held_out, train = every.take(slice(0, 300)), every.take(slice(300, None))
    assert not rows(held_out) & rows(train)
    task = Sudoku(2)
    assert all(task.solutions(task.decode(question)) == 1 for question in held_out.questions)
    run = Trainer(load_preset("sudoku4", "toy"), train, held_out, tmp_path, device="cpu")
    report = run.run()
    assert report.final > 0.95
    assert report.halt_accuracy > 0.95
    assert run.clock.seconds + run.clock.aside < 120
    best = load(tmp_path / "best")
    inputs = best.embed(held_out.questions)
    state = best.start(inputs)
    with torch.no_grad():
        for _ in range(6):
            state = best.step(inputs, state)
        answers = best.decode(state.answer).argmax(-1)
    assert exactly_right(answers, held_out.labels()).double().mean() > 0.95
    assert task.is_solved(held_out.questions, answers).double().mean() > 0.95
    _knows_when_it_is_sure(best, held_out, report)


def _knows_when_it_is_sure(best: Model, held_out: Puzzles, report: ValidationReport) -> None:
    """Adaptive solving, by the threshold that the run found, is as good at a smaller price."""
    assert best.decide_above == report.decide_above
    asked, answers = follow(best, held_out.questions, outer_steps=6)
    found = threshold(asked, exactly_right(answers, held_out.labels()[:, None]))
    assert found is not None
    assert found.above == pytest.approx(report.decide_above, abs=0.2)  # in float32, not in training
    result = solve(best, held_out.questions)
    assert exactly_right(result.answers, held_out.labels()).double().mean() > report.final - 0.01
    assert result.evaluations.double().mean() < 6 * evaluations_per_step(best)
