"""Puzzles as people publish them: the optional methods of a task, and their defaults.

A task whose puzzles may be smaller than its board, or of several types, has the methods `on_board`
and `answer_text` or `type_of`; one whose puzzles have addresses has `address`. A task whose answers
cannot be checked without labels has `has_rules = False`. One whose cells are colours has
`token_colours`, the colour of each token or None.
"""

from typing import Any

import torch
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.tasks.base import PAD, Task


def on_board(task: Task, puzzles: Tensor) -> Tensor:
    """(..., cell) -> (..., cell) bool: the cells of each puzzle; all unless the task says."""
    own: Any = getattr(task, "on_board", None)
    return torch.ones_like(puzzles, dtype=torch.bool) if own is None else own(puzzles)


def answer_text(task: Task, puzzle: Tensor, answer: Tensor) -> str:
    """One character for each cell of the puzzle."""
    own: Any = getattr(task, "answer_text", None)
    return task.decode(answer) if own is None else own(puzzle, answer)


def type_of(task: Task, puzzle: Tensor) -> str:
    """The name of the puzzle's type: that of the task, unless it has several types."""
    own: Any = getattr(task, "type_of", None)
    return task.name if own is None else own(puzzle)


def has_types(task: Task) -> bool:
    """Whether puzzles of the task are of several types."""
    return hasattr(task, "type_of")


def address_of(task: Task, puzzle: Tensor) -> str | None:
    """The address of a puzzle on a site for puzzles; None where it has none."""
    own: Any = getattr(task, "address", None)
    return (own(puzzle) or None) if own is not None else None


def token_colours(task: Task) -> tuple[str | None, ...] | None:
    """The colours of the tokens 0, 1, ...; None where cells are characters."""
    found: tuple[str | None, ...] | None = getattr(task, "token_colours", None)
    return found


def has_rules(task: Task) -> bool:
    """Whether the rules of the task tell a solution from other answers."""
    return bool(getattr(task, "has_rules", True))


def keeps_rules(task: Task, puzzles: Tensor, answers: Tensor) -> Tensor:
    """Two (..., cell) that broadcast -> (...) bool: whether the rules say nothing against it.

    For a task without rules: whether the answer has the form of one.
    """
    if has_rules(task):
        return task.is_solved(puzzles, answers)
    return task.violations(puzzles, answers) == 0


def require_rules(task: Task, what: str) -> None:
    """Raise SettingsError if the task has no rules, which `what` needs."""
    if not has_rules(task):
        raise SettingsError(
            f"{what} needs a task with rules that tell a solution from other answers, got "
            f"{task.name}, which has none; leave it out"
        )


def labels_on_board(task: Task, puzzles: Tensor, answers: Tensor) -> Tensor:
    """Labels with pads outside the puzzle's board, where `exactly_right` does not look."""
    return torch.where(on_board(task, puzzles), answers, PAD)
