"""The record that every reader returns, and the check of its answers."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from tiltrm.errors import DataError
from tiltrm.tasks.base import Task


@dataclass(frozen=True)
class Puzzles:
    """Puzzles of one task, in the order of their file."""

    task: Task
    questions: Tensor  # (puzzle, cell) uint8
    answers: Tensor | None = None  # (puzzle, cell) uint8
    ratings: Tensor | None = None  # (puzzle,) float64: difficulty, as the dataset gives it
    sources: tuple[str, ...] | None = None  # per puzzle, the list that it comes from
    file: str | None = None  # that they were read from, named in errors
    skipped: int = 0  # puzzles of the file of a size that the task does not hold

    def __post_init__(self) -> None:
        shape = (len(self.questions), self.task.cells)
        if self.questions.shape != shape:
            raise DataError(
                f"expected questions of shape {shape}, got {tuple(self.questions.shape)}"
            )
        if self.answers is not None and self.answers.shape != shape:
            raise DataError(f"expected answers of shape {shape}, got {tuple(self.answers.shape)}")
        for name, column in (("ratings", self.ratings), ("sources", self.sources)):
            if column is not None and len(column) != len(self):
                raise DataError(f"expected {len(self)} {name}, got {len(column)}")

    def __len__(self) -> int:
        return len(self.questions)

    def take(self, index: Tensor | slice) -> "Puzzles":
        """The puzzles at these indices, with all their columns."""
        places = torch.arange(len(self))[index]
        return replace(
            self,
            questions=self.questions[places],
            answers=None if self.answers is None else self.answers[places],
            ratings=None if self.ratings is None else self.ratings[places],
            sources=None
            if self.sources is None
            else tuple(self.sources[place] for place in places.tolist()),
        )

    def labels(self) -> Tensor:
        """The answers; DataError if the file had none."""
        if self.answers is None:
            where = "" if self.file is None else f"{self.file}: "
            raise DataError(
                f"{where}expected puzzles with answers, got none; read a file that has them"
            )
        return self.answers


def check_answers(task: Task, questions: Tensor, answers: Tensor, *, first: int = 1) -> None:
    """Raise DataError if an answer breaks the rules; puzzles are counted from `first`."""
    bad = (task.violations(questions, answers) > 0).nonzero()
    if len(bad):
        number = int(bad[0]) + first
        raise DataError(
            f"answer of puzzle {number}: expected a solution of its question, got one that breaks "
            f"the rules; correct or drop the row ({len(bad)} such)"
        )
