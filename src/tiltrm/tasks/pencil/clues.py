"""Clues that a guess may add to a pencil puzzle: a cell of the answer, or the number of a room.

The cells of a Heyawake show their rooms, so none of them can show whether it is shaded. How many
cells of a room are shaded is a clue of the puzzle itself. Proved by
tests/tasks/pencil/test_pencil_clues.py.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from tiltrm.tasks.base import PAD
from tiltrm.tasks.grid import CellClues
from tiltrm.tasks.pencil import boards
from tiltrm.tasks.pencil.rules import in_room, room_labels, room_number
from tiltrm.tasks.pencil.tokens import CELLS, MORE, SHADED


@dataclass(frozen=True)
class PencilClues(CellClues):
    """Values of blank cells; of a Heyawake, the numbers of rooms that have none."""

    def in_answers(self, puzzles: Tensor, answers: Tensor) -> Tensor:
        """The first cell of a room stands for all of it."""
        found = super().in_answers(puzzles, answers).long()
        own = in_room(puzzles).any(-1)
        if own.any():
            found[own] = _numbers(puzzles[own].long(), answers[own])
        return found

    def add(self, puzzles: Tensor, cells: Tensor, clues: Tensor) -> Tensor:
        """A number is shown by every cell of its room."""
        filled = super().add(puzzles, cells, clues)
        own = in_room(clues)
        if own.any():
            boards_of, first = puzzles[own].long(), cells[own][:, None]
            labels = room_labels(boards_of)
            shown = room_number(clues[own].long())[:, None] - room_number(boards_of)
            same = labels == labels.gather(-1, first)
            filled[own] = torch.where(same, boards_of + shown, boards_of).to(filled.dtype)
        return filled


def _numbers(puzzles: Tensor, answers: Tensor) -> Tensor:
    """(board, cell) and (board, particle, cell) -> ids of first cells with a number, else PAD.

    A number above 6 is shown by two kinds of cells, so it is not guessed.
    """
    labels, cells = room_labels(puzzles), torch.arange(CELLS, device=puzzles.device)
    first = torch.full((len(puzzles), boards.LABELS), CELLS, device=puzzles.device)
    first.scatter_reduce_(-1, labels, cells.expand_as(labels), "amin")
    opens = (first.gather(-1, labels) == cells) & in_room(puzzles) & (room_number(puzzles) == 0)
    each = labels[:, None].expand(answers.shape)
    count = boards.sum_by(each, answers == SHADED).gather(-1, each)
    return torch.where(opens[:, None] & (count < MORE - 1), puzzles[:, None] + 1 + count, PAD)
