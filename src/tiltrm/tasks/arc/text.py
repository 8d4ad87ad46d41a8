"""The text of one ARC question: 'NUMBER: 00500/01210', a digit for each cell, '/' between rows.

NUMBER is that of the puzzle in the model's table. A question that was augmented says how before
the colon: 'NUMBER t3 0213456789: ...' (turn and colours of `Augmentation`), and one whose grid is
not in the upper left corner by how many rows and columns it was moved: 'NUMBER +2+5: ...'.
"""

import re
from typing import NamedTuple

from tiltrm.errors import PuzzleError
from tiltrm.tasks.arc.augmentation import Augmentation, parse_name
from tiltrm.tasks.arc.grids import ColourGrid, read_rows
from tiltrm.tasks.arc.tokens import BLACK, LARGEST_ID, VOCABULARY

_HEAD = re.compile(
    r"([0-9]{1,10})(?:\s+t([0-7])\s+([0-9]{10}))?(?:\s+\+([0-9]{1,2})\+([0-9]{1,2}))?"
)


class QuestionText(NamedTuple):
    """What the text of a question says."""

    grid: ColourGrid
    number: int | None  # of the puzzle
    augmentation: Augmentation
    corner: tuple[int, int]  # row and column of the grid's upper left cell


def read_question(text: str) -> QuestionText:
    """The parts of a question's text; raises PuzzleError."""
    head, colon, rows = text.rpartition(":")
    if not colon:
        return QuestionText(read_rows(rows), None, Augmentation(), (0, 0))
    found = _HEAD.fullmatch(head.strip())
    number, turn, colours, down, right = found.groups() if found else (None,) * 5
    own = parse_name(f"|||t{turn or 0}|||{colours or '0123456789'}")
    if number is None or own[0] or int(number) > LARGEST_ID:
        raise PuzzleError(
            "expected a number, perhaps a turn and ten different colours, perhaps a place before "
            f"the colon, as in '7: ...', '7 t3 0213456789: ...' or '7 +2+5: ...', got {head[:40]!r}"
        )
    return QuestionText(read_rows(rows), int(number), own[1], (int(down or 0), int(right or 0)))


def symbol(token: int) -> str:
    """The digit of a colour; '?' for any other token."""
    return str(token - BLACK) if BLACK <= token < VOCABULARY else "?"


def text_width(line: str, cells: int) -> int:
    """Cells that a line seems to hold: all of them if it has a colon or a slash."""
    return cells if ":" in line or "/" in line else len("".join(line.split()))
