"""What tasks share whose blanks are to be filled: id 1 is the blank, the ids after it are clues."""

from collections.abc import Sequence

import torch
from torch import Tensor

from tiltrm.errors import PuzzleError
from tiltrm.tasks.base import Task, TaskDefaults, place

BLANK = 1


class Blanks:
    """The part of a task that does not depend on its rules."""

    @property
    def defaults(self) -> TaskDefaults:
        """Those of a task that nothing was tuned for."""
        return TaskDefaults()

    def given(self: Task, puzzle: Tensor) -> Tensor:
        """The cells that are not blank."""
        return (puzzle > BLANK) & (puzzle < self.vocabulary)

    def is_solved(self: Task, puzzle: Tensor, answer: Tensor) -> Tensor:
        """Whether the answer keeps the clues and breaks no rule."""
        return self.violations(puzzle, answer) == 0

    def symmetries(
        self: Task, tokens: Tensor, answers: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Puzzles and answers moved by one random symmetry for each puzzle."""
        symmetry = self.symmetry(len(tokens), generator)
        return symmetry.apply(tokens), symmetry.apply(answers)

    def clean(self, line: str) -> str:
        """The line without a comment, which '#' opens, and without spaces at its ends."""
        return line.partition("#")[0].strip()


def filled(task: Task, tokens: Tensor, *, answer: bool) -> Tensor:
    """(..., cell) -> (...) bool: all ids are clues, or blanks where it is no answer."""
    given = task.given(tokens)
    return (given if answer else given | (tokens == BLANK)).all(-1)


def require_filled(ids: Sequence[int], side: int) -> None:
    """PuzzleError where an answer has a blank."""
    if BLANK in ids:
        where = place(ids.index(BLANK), side)
        raise PuzzleError(f"expected an answer with no blank, got a blank at {where}")
