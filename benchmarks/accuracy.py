"""How many puzzles of a file adaptive solving gets right, and its cost, for benchmarks of speed."""

from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from tiltrm.data import read
from tiltrm.model.build import Model
from tiltrm.solving import solve, task_of


class Accuracy(NamedTuple):
    """Adaptive solving of so many puzzles."""

    right: int
    puzzles: int
    evaluations: float  # per puzzle

    def __str__(self) -> str:
        return (
            f"{self.right} of {self.puzzles} right, {self.evaluations:.1f} evaluations per puzzle"
        )


def accuracy(model: Model, data: Path, limit: int) -> Accuracy:
    """Solve the first puzzles of a file with labels."""
    puzzles = read(data, task_of(model, None), limit=limit)
    device = next(model.parameters()).device
    found = solve(model, puzzles.questions.to(device))
    assert puzzles.answers is not None
    right: Tensor = (found.answers.cpu() == puzzles.answers).all(-1)
    return Accuracy(int(right.sum()), len(right), float(found.evaluations.float().mean()))
