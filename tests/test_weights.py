"""What ships solves puzzles that it never saw, with nothing set."""

import pytest

import tiltrm
from tiltrm.tasks import MAZE, SUDOKU, Task


@pytest.mark.parametrize(
    ("name", "task", "most", "sure"),
    [("sudoku-extreme", SUDOKU, 700, 0.98), ("maze-hard", MAZE, 200, 0.95)],
)
def test_generated_puzzles_are_solved(name: str, task: Task, most: int, sure: float) -> None:
    puzzles, answers = zip(*(task.generate(seed) for seed in (1, 2)), strict=True)
    found = tiltrm.solve(tiltrm.load(name), [task.decode(puzzle) for puzzle in puzzles])
    for answer, truth in zip(found.answers, answers, strict=True):
        assert task.decode(answer) == task.decode(truth)
    assert found.decided_by == ("halting", "halting")
    assert found.confidence.min() > sure
    assert 0 < int(found.evaluations.max()) < most
