"""Questions and answers as text: addresses, and a plain form of one row a line.

In the plain form cells are parted by spaces, or are single characters; '.' is a cell without a
clue. Light Up: '#' is a black cell, or its number. Nurikabe: a number or '?'. Tapa: the numbers of
a clue together, as in 13 or 1?. Heyawake: a name of letters for the room, and in one of its cells
also the number, as in b3; borders that end inside a room can be written in an address only.
Answers are '#' shaded, 'o' light, '.' neither. Rows may also be parted by '/' in one line.
"""

import re
from math import isqrt
from string import ascii_letters

from tiltrm.errors import PuzzleError
from tiltrm.tasks.pencil import address
from tiltrm.tasks.pencil.puzzle import (
    HEYAWAKE,
    LIGHTUP,
    NO_CLUE,
    NURIKABE,
    TAPA,
    UNKNOWN,
    Clue,
    Kind,
    PencilPuzzle,
    between_rooms,
    enclosed,
    room_clues,
)

EMPTY = "."
_CLUES = {
    LIGHTUP: ("#|[0-4]", "'.', '#' or 0 to 4"),
    NURIKABE: (r"\?|[0-9]{1,3}", "'.', '?' or a number"),
    TAPA: (r"[0-8?]{1,4}", "'.' or up to four numbers or '?'"),
    HEYAWAKE: ("([a-zA-Z]+)([0-9]{0,2})", "a room like b, and its number once, like b3"),
}


def read(kind: Kind, text: str) -> PencilPuzzle:
    """A question from an address or the plain form; raises PuzzleError."""
    if address.is_address(text):
        puzzle = address.read(text)
        if puzzle.kind != kind:
            raise PuzzleError(f"expected a {kind.name}, got the address of a {puzzle.kind.name}")
        return puzzle
    rows = rows_of(text)
    cells = [cell for row in rows for cell in row]
    width, height = len(rows[0]), len(rows)
    if kind == HEYAWAKE:
        return _read_rooms(cells, width, height)
    return PencilPuzzle(kind, width, height, tuple(_read_clue(kind, cell) for cell in cells))


def rows_of(text: str) -> list[list[str]]:
    """The cells of each row; raises PuzzleError where rows differ in length."""
    lines = [line.strip() for line in re.split(r"[/\n]", text)]
    rows = [line.split() if re.search(r"\s", line) else list(line) for line in lines if line]
    if not rows:
        raise PuzzleError("expected an address or rows of cells, got nothing")
    for number, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            raise PuzzleError(
                f"expected {len(rows[0])} cells in every row, got {len(row)} in row {number}"
            )
    return rows


def _read_clue(kind: Kind, cell: str) -> Clue:
    if cell in (EMPTY, "-"):
        return NO_CLUE
    pattern, allowed = _CLUES[kind]
    if not re.fullmatch(pattern, cell):
        raise PuzzleError(f"expected {allowed} in a {kind.name}, got {cell!r:.20}")
    numbers = cell if kind == TAPA else [cell]
    return tuple(UNKNOWN if each in ("?", "#") else int(each) for each in numbers)


def _read_rooms(cells: list[str], width: int, height: int) -> PencilPuzzle:
    pattern, allowed = _CLUES[HEYAWAKE]
    found = [re.fullmatch(pattern, cell) for cell in cells]
    names: dict[str, int] = {}
    labels: list[int] = []
    for cell, match in zip(cells, found, strict=True):
        if match is None:
            raise PuzzleError(f"expected {allowed} in a heyawake, got {cell!r:.20}")
        labels.append(names.setdefault(match[1], len(names)))
    borders = between_rooms(labels, width, height)
    rooms = enclosed(borders, width, height)
    numbers: list[Clue] = [NO_CLUE] * (max(rooms) + 1)
    for room, match in zip(rooms, found, strict=True):
        if match is not None and match[2]:
            if numbers[room] not in (NO_CLUE, (int(match[2]),)):
                raise PuzzleError(f"expected one number in the room {match[1]}, got two")
            numbers[room] = (int(match[2]),)
    return PencilPuzzle(HEYAWAKE, width, height, room_clues(rooms, numbers), borders)


def write(puzzle: PencilPuzzle) -> str:
    """The plain form of a question."""
    cells = [_write_clue(puzzle, cell) for cell in range(puzzle.cells)]
    rows = range(0, puzzle.cells, puzzle.width)
    return "\n".join(" ".join(cells[row : row + puzzle.width]) for row in rows)


def _write_clue(puzzle: PencilPuzzle, cell: int) -> str:
    unknown = "#" if puzzle.kind == LIGHTUP else "?"
    numbers = "".join(unknown if each == UNKNOWN else str(each) for each in puzzle.clues[cell])
    if puzzle.kind == HEYAWAKE:
        return room_name(puzzle.rooms[cell]) + numbers
    return numbers or EMPTY


def room_name(room: int) -> str:
    """a to z, A to Z, then two letters."""
    more, letter = divmod(room, len(ascii_letters))
    return (ascii_letters[more - 1] if more else "") + ascii_letters[letter]


def read_answer(kind: Kind, text: str) -> tuple[list[bool], int, int]:
    """An answer -> the marked cells, width and height; in one line without '/' if it is square."""
    joined = "".join(text.split(" "))
    if not re.search(r"[/\n]", joined.strip()) and isqrt(len(joined)) ** 2 == len(joined):
        side = isqrt(len(joined))
        joined = "\n".join(joined[at : at + side] for at in range(0, len(joined), side or 1))
    rows = rows_of(joined)
    own = "o" if kind == LIGHTUP else "#"
    cells = [cell for row in rows for cell in row]
    for cell in cells:
        if cell not in (own, EMPTY):
            raise PuzzleError(
                f"expected {own!r} or '.' in an answer to a {kind.name}, got {cell!r:.20}"
            )
    return [cell == own for cell in cells], len(rows[0]), len(rows)
