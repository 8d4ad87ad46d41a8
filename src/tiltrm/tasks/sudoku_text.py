"""Sudoku as text: what a puzzle may look like, and which error a bad one gets."""

from itertools import combinations

from tiltrm.errors import PuzzleError
from tiltrm.tasks.base import place
from tiltrm.tasks.blanks import BLANK

BLANKS = ".0_*"
SEPARATORS = frozenset("|-+")
BOX_DRAWING = range(0x2500, 0x2580)  # so that a grid printed by `render` reads back


def characters(side: int) -> str:
    """Those of the ids 1, 2, ...: the blank and the digits."""
    return "." + "123456789"[:side]


def alphabet(side: int) -> dict[str, int]:
    """Character -> id. Several characters are a blank."""
    digits = {str(digit): digit + BLANK for digit in range(1, side + 1)}
    return digits | dict.fromkeys(BLANKS, BLANK)


def read(text: str, side: int) -> list[int]:
    """The ids of the cells; raises PuzzleError on a foreign character or a wrong length."""
    known = alphabet(side)
    ids: list[int] = []
    for character in text:
        if character in known:
            ids.append(known[character])
        elif not _is_separator(character):
            where = place(len(ids), side) if len(ids) < side * side else f"cell {len(ids) + 1}"
            raise PuzzleError(
                f"expected digits 1 to {side} and '.' for a blank, got {character!r} at {where}"
            )
    if len(ids) != side * side:
        hint = "; write blanks as '.', since '-' is a ruling" if "-" in text else ""
        raise PuzzleError(f"expected {side * side} cells, got {len(ids)}{hint}")
    return ids


def _is_separator(character: str) -> bool:
    return character.isspace() or character in SEPARATORS or ord(character) in BOX_DRAWING


def width(line: str) -> int:
    """Cells that a line seems to hold, '-' counted unless the line is nothing but a ruling."""
    if all(_is_separator(character) for character in line):
        return 0
    return sum(character == "-" or not _is_separator(character) for character in line)


def check(ids: list[int], box: int, what: str = "clues") -> None:
    """Raise PuzzleError where a digit stands twice in a row, column or box, the cells named."""
    side = box * box
    clues = [cell for cell in range(side * side) if ids[cell] > BLANK]
    for first, second in combinations(clues, 2):
        if ids[first] == ids[second]:
            unit = _shared_unit(first, second, box)
            if unit:
                digit = ids[first] - BLANK
                raise PuzzleError(f"{what} conflict: {digit} twice in {unit}; correct one of them")


def _shared_unit(first: int, second: int, box: int) -> str:
    """The row, column or box that holds both cells, in words; empty where none does."""
    side = box * box
    (row, column), (other_row, other_column) = divmod(first, side), divmod(second, side)
    if row == other_row:
        return f"row {row + 1} (columns {column + 1} and {other_column + 1})"
    if column == other_column:
        return f"column {column + 1} (rows {row + 1} and {other_row + 1})"
    number = row // box * box + column // box
    if number == other_row // box * box + other_column // box:
        return f"box {number + 1} ({place(first, side)} and {place(second, side)})"
    return ""
