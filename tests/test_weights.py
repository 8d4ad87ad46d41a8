"""What ships solves puzzles that it never saw, with nothing set."""

import pytest

import tiltrm
from tiltrm.tasks import MAZE, SUDOKU, Task


@pytest.mark.parametrize(
    ("name", "task", "most"), [("sudoku-extreme", SUDOKU, 700), ("maze-hard", MAZE, 200)]
)
def test_generated_puzzles_are_solved(name: str, task: Task, most: int) -> None:
    puzzles, answers = zip(*(task.generate(seed) for seed in (1, 2)), strict=True)
    found = tiltrm.solve(tiltrm.load(name), [task.decode(puzzle) for puzzle in puzzles])
    for answer, truth in zip(found.answers, answers, strict=True):
        assert task.decode(answer) == task.decode(truth)
    assert found.decided_by == ("halting", "halting")
    assert found.confidence.min() > 0.95
    assert 0 < int(found.evaluations.max()) < most
