"""Texts to tokens for the readers: errors carry the number of the puzzle in its file."""

from collections.abc import Sequence

from torch import Tensor

from tiltrm.errors import DataError, PuzzleError
from tiltrm.tasks.base import Task


def tokens(task: Task, texts: Sequence[str], *, first: int = 1, answer: bool = False) -> Tensor:
    """(puzzle, cell) uint8; raises DataError naming the first bad puzzle, counted from `first`."""
    try:
        return task.encode_all(texts, answer=answer)
    except PuzzleError:
        for number, text in enumerate(texts, first):
            try:
                task.encode(text, answer=answer)
            except PuzzleError as error:
                what = "answer of puzzle" if answer else "puzzle"
                raise DataError(f"{what} {number}: {error}") from error
        raise


def check_answers(task: Task, questions: Tensor, answers: Tensor, *, first: int = 1) -> None:
    """Raise DataError where an answer breaks the rules of its question."""
    bad = (task.violations(questions, answers) > 0).nonzero()
    if len(bad):
        number = int(bad[0]) + first
        raise DataError(
            f"answer of puzzle {number}: expected a solution of its question, got one that breaks "
            f"the rules; correct or drop the row ({len(bad)} such)"
        )
