"""The shared vocabulary of the pencil puzzles, and puzzles and answers as 10 x 10 tokens.

See the docstring of the package for the layout.
"""

from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import NamedTuple

import torch
from torch import Tensor

from tiltrm.errors import PuzzleError, SizeError
from tiltrm.tasks.base import PAD
from tiltrm.tasks.pencil.puzzle import (
    HEYAWAKE,
    LARGEST,
    LIGHTUP,
    NO_CLUE,
    NURIKABE,
    SMALLEST,
    SUDOKU,
    TAPA,
    UNKNOWN,
    Clue,
    Kind,
    PencilPuzzle,
    edges,
)

SIDE = LARGEST
CELLS = SIDE * SIDE

BLANK = 1  # a cell to be filled in; in an answer, a cell outside the board
DIGITS = 1  # a Sudoku digit d is the id DIGITS + d, as in the task sudoku
UNSHADED, SHADED, LIGHT = 11, 12, 13
ANSWER_IDS = 14  # all that a model has to decode are the ids below this one

BLACK = 14  # Light Up: a black cell without a number; the number n is BLACK + 1 + n
ISLAND = 20  # Nurikabe: the clue '?'; the number n is ISLAND + n
LARGEST_ISLAND = 45
ROOM = 66  # Heyawake: ROOM + NUMBERS * borders + number
NUMBERS = 9  # of a room: none, 0 .. 6, and MORE
MORE = 8  # a room of the number 6 + n has MORE in n of its cells and 6 in the others
UP, LEFT, RIGHT, DOWN = 1, 2, 4, 8  # bits of the borders of a cell
WALL = 210  # Tapa: WALL + the place in TAPA_CLUES


def _tapa_clues() -> tuple[Clue, ...]:
    """All clues of Tapa as sorted numbers, '?' last: runs of 8 cells with gaps between them."""
    clues: list[Clue] = [(UNKNOWN,), *((number,) for number in range(9))]
    for count in (2, 3, 4):
        for numbers in combinations_with_replacement((1, 2, 3, 4, 5, UNKNOWN), count):
            if sum(max(number, 1) for number in numbers) + count <= 8:
                clues.append(numbers)
    return tuple(clues)


TAPA_CLUES = _tapa_clues()
VOCABULARY = WALL + len(TAPA_CLUES)

QUESTION_IDS = {  # the ids that a question of each type may hold on its board
    SUDOKU: range(BLANK, UNSHADED),
    LIGHTUP: range(BLACK, ISLAND),
    NURIKABE: range(ISLAND, ISLAND + LARGEST_ISLAND + 1),
    HEYAWAKE: range(ROOM, ROOM + 16 * NUMBERS),
    TAPA: range(WALL, VOCABULARY),
}


def mark(kind: Kind) -> int:
    """The id of a cell that an answer marks: a light, or a shaded cell."""
    return LIGHT if kind == LIGHTUP else SHADED


def sorted_clue(clue: Clue) -> Clue:
    """Numbers in rising order and '?' last, as a Tapa clue means the same in any order."""
    return tuple(sorted(clue, key=lambda number: (number == UNKNOWN, number)))


def encode(puzzle: PencilPuzzle) -> Tensor:
    """A puzzle -> (cell,) uint8 in the upper left corner of the board; raises PuzzleError."""
    width, height = puzzle.width, puzzle.height
    require_size(puzzle.kind, width, height)
    if puzzle.kind == HEYAWAKE:
        ids = _room_ids(puzzle)
    else:
        ids = [_clue_id(puzzle.kind, clue) for clue in puzzle.clues]
    return lay(ids, width, height, PAD)


def lay(ids: Sequence[int], width: int, height: int, outside: int) -> Tensor:
    """Ids of a board in reading order -> (cell,) uint8."""
    board = torch.full((SIDE, SIDE), outside, dtype=torch.uint8)
    board[:height, :width] = torch.tensor(ids, dtype=torch.uint8).view(height, width)
    return board.flatten()


def require_size(kind: Kind, width: int, height: int) -> None:
    """SizeError where a board is too small or too large."""
    if not (min(width, height) >= SMALLEST and max(width, height) <= LARGEST):
        raise SizeError(
            f"expected a {kind.name} board of {SMALLEST} x {SMALLEST} to {LARGEST} x {LARGEST}, "
            f"got {width} x {height}"
        )


def _clue_id(kind: Kind, clue: Clue) -> int:
    if not clue:
        return BLANK
    number = clue[0]
    if kind == TAPA and sorted_clue(clue) in TAPA_CLUES:
        return WALL + TAPA_CLUES.index(sorted_clue(clue))
    if kind == LIGHTUP and UNKNOWN <= number <= 4:
        return BLACK + 1 + number
    if kind == NURIKABE and (number == UNKNOWN or 1 <= number <= LARGEST_ISLAND):
        return ISLAND + max(number, 0)
    if kind == SUDOKU and 1 <= number <= 9:
        return DIGITS + number
    allowed = {
        TAPA: "runs that fit round a cell",
        LIGHTUP: "numbers 0 to 4",
        NURIKABE: f"numbers 1 to {LARGEST_ISLAND}",
        SUDOKU: "digits 1 to 9",
    }
    shown = " ".join("?" if each == UNKNOWN else str(each) for each in clue)
    raise PuzzleError(f"expected {allowed[kind]} in {kind.name}, got {shown}")


def _room_ids(puzzle: PencilPuzzle) -> list[int]:
    width, height = puzzle.width, puzzle.height
    sides = [
        UP * (cell < width)
        | LEFT * (cell % width == 0)
        | RIGHT * (cell % width == width - 1)
        | DOWN * (cell >= width * (height - 1))
        for cell in range(puzzle.cells)
    ]
    for (cell, other), border in zip(edges(width, height), puzzle.borders, strict=True):
        if border:
            sides[cell] |= RIGHT if other == cell + 1 else DOWN
            sides[other] |= LEFT if other == cell + 1 else UP
    sizes = [puzzle.rooms.count(room) for room in range(len(puzzle.room_numbers))]
    left = [0] * len(sizes)  # cells of each room that still have to show MORE
    shown = [0] * len(sizes)
    for room, clue in enumerate(puzzle.room_numbers):
        number = clue[0] if clue else UNKNOWN
        shown[room] = min(number, MORE - 2) + 1
        left[room] = max(0, number - (MORE - 2))
        if left[room] > sizes[room]:
            raise PuzzleError(
                f"expected at most {sizes[room]} in a room of {sizes[room]} cells, got {number}"
            )
    ids = []
    for cell, room in enumerate(puzzle.rooms):
        number = MORE if left[room] else shown[room]
        left[room] -= left[room] > 0
        ids.append(ROOM + NUMBERS * sides[cell] + number)
    return ids


class Rectangle(NamedTuple):
    """A rectangle of cells."""

    top: int
    left: int
    height: int
    width: int


def box(inside: Tensor) -> Rectangle | None:
    """(cell,) bool -> the rectangle of all cells that are set; None where they are no rectangle."""
    grid = inside.view(SIDE, SIDE)
    rows, columns = grid.any(1).nonzero().flatten(), grid.any(0).nonzero().flatten()
    if not len(rows):
        return None
    top, left = int(rows[0]), int(columns[0])
    height, width = int(rows[-1]) - top + 1, int(columns[-1]) - left + 1
    return Rectangle(top, left, height, width) if int(grid.sum()) == height * width else None


def decode(kind: Kind, tokens: Tensor) -> PencilPuzzle:
    """(cell,) -> the puzzle, wherever it stands on the board; raises PuzzleError."""
    place = box(tokens != PAD)
    if place is None:
        raise PuzzleError(f"expected the tokens of a {kind.name} board, got no rectangle of cells")
    top, left, height, width = place
    grid = tokens.view(SIDE, SIDE)[top : top + height, left : left + width]
    ids = [int(token) for token in grid.flatten()]
    for token in ids:
        if token not in QUESTION_IDS[kind] and (token != BLANK or kind == HEYAWAKE):
            raise PuzzleError(f"expected the tokens of {kind.name}, got the id {token}")
    if kind == HEYAWAKE:
        return _rooms(ids, width, height)
    return PencilPuzzle(kind, width, height, tuple(_clue(kind, token) for token in ids))


def _clue(kind: Kind, token: int) -> Clue:
    if token == BLANK:
        return NO_CLUE
    if kind == TAPA:
        return TAPA_CLUES[token - WALL]
    if kind == LIGHTUP:
        return (token - BLACK - 1,)
    if kind == NURIKABE:
        return (token - ISLAND or UNKNOWN,)
    return (token - DIGITS,)


def _rooms(ids: Sequence[int], width: int, height: int) -> PencilPuzzle:
    sides = [(token - ROOM) // NUMBERS for token in ids]
    borders = tuple(
        bool(sides[cell] & (RIGHT if other == cell + 1 else DOWN))
        for cell, other in edges(width, height)
    )
    bare = PencilPuzzle(HEYAWAKE, width, height, (), borders)
    clues = [NO_CLUE] * len(ids)
    for room in range(max(bare.rooms) + 1):
        numbers = [(ids[c] - ROOM) % NUMBERS for c, r in enumerate(bare.rooms) if r == room]
        if numbers[0]:
            number = min(*numbers, MORE - 1) - 1 + numbers.count(MORE)
            clues[bare.rooms.index(room)] = (number,)
    return PencilPuzzle(HEYAWAKE, width, height, tuple(clues), borders)


def encode_answer(kind: Kind, marks: Sequence[bool], width: int, height: int) -> Tensor:
    """Marked cells of a board in reading order -> (cell,) uint8; BLANK outside the board."""
    require_size(kind, width, height)
    return lay([mark(kind) if each else UNSHADED for each in marks], width, height, BLANK)
