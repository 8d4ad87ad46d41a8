"""What ships solves puzzles that it never saw, with nothing set."""

import pytest
import torch

import tiltrm
from tiltrm.tasks import MAZE, SUDOKU, Task


@pytest.mark.parametrize(
    ("name", "task", "reason", "most", "sure"),
    [("sudoku-extreme", SUDOKU, "halting", 700, 0.98), ("maze-hard", MAZE, "agreement", 500, 0.9)],
)
def test_generated_puzzles_are_solved(
    name: str, task: Task, reason: str, most: int, sure: float
) -> None:
    """A maze has many shortest paths."""
    puzzles = torch.stack([task.generate(seed)[0] for seed in (1, 2)])
    found = tiltrm.solve(tiltrm.load(name), [task.decode(puzzle) for puzzle in puzzles])
    assert task.is_solved(puzzles, found.answers).all()
    assert found.decided_by == (reason, reason)
    assert found.confidence.min() > sure
    assert 0 < int(found.evaluations.max()) < most
