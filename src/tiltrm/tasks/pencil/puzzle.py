"""One pencil puzzle as people publish it: its type, its size, its clues and its borders.

Clues are tuples of numbers, one tuple a cell: () is no clue, UNKNOWN a clue without its number. A
black cell of Light Up without a number is (UNKNOWN,); Tapa has up to four numbers in a cell. The
clue of a Heyawake room stands in the first cell of the room, in reading order. Borders and not
rooms are stored, since a border may end inside a room and still counts for the rule on lines.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from tiltrm.errors import PuzzleError

Clue = tuple[int, ...]

UNKNOWN = -1  # the number of a clue that is published as '?'
NO_CLUE: Clue = ()
SMALLEST, LARGEST = 4, 10  # sides of the boards that the tasks hold


class Kind(NamedTuple):
    """A type of puzzle: its name, its number among the types, its names in addresses."""

    name: str
    number: int
    addresses: tuple[str, ...]  # the first of them is written


SUDOKU = Kind("sudoku", 0, ("sudoku",))
LIGHTUP = Kind("lightup", 1, ("lightup", "akari", "bijutsukan"))
NURIKABE = Kind("nurikabe", 2, ("nurikabe",))
HEYAWAKE = Kind("heyawake", 3, ("heyawake",))
TAPA = Kind("tapa", 4, ("tapa",))
KINDS = (SUDOKU, LIGHTUP, NURIKABE, HEYAWAKE, TAPA)


@dataclass(frozen=True)
class PencilPuzzle:
    """A puzzle of width x height cells in reading order; `borders` is empty but for Heyawake."""

    kind: Kind
    width: int
    height: int
    clues: tuple[Clue, ...]
    borders: tuple[bool, ...] = ()  # between the pairs of `edges`

    @property
    def cells(self) -> int:
        return self.width * self.height

    @cached_property
    def rooms(self) -> tuple[int, ...]:
        """The room of each cell: 0, 1, ... in order of their first cells."""
        return enclosed(self.borders, self.width, self.height)

    @cached_property
    def room_numbers(self) -> tuple[Clue, ...]:
        """The clue of each room."""
        firsts = (self.rooms.index(room) for room in range(max(self.rooms) + 1))
        return tuple(self.clues[first] for first in firsts)


def kind_of(name: str) -> Kind:
    """The type of this name, as addresses and tables write it; raises PuzzleError."""
    for kind in KINDS:
        if name in kind.addresses:
            return kind
    known = ", ".join(kind.name for kind in KINDS)
    raise PuzzleError(f"expected a puzzle among {known} (also akari), got {name!r:.40}")


def beside(cell: int, width: int, height: int) -> list[int]:
    """The neighbours of a cell: up, left, right and down."""
    row, column = divmod(cell, width)
    steps = (
        (row > 0, -width),
        (column > 0, -1),
        (column < width - 1, 1),
        (row < height - 1, width),
    )
    return [cell + step for inside, step in steps if inside]


def edges(width: int, height: int) -> Iterator[tuple[int, int]]:
    """Pairs of neighbours: first those side by side, then those one above the other."""
    for cell in range(width * height):
        if cell % width < width - 1:
            yield cell, cell + 1
    for cell in range(width * (height - 1)):
        yield cell, cell + width


def enclosed(borders: Sequence[bool], width: int, height: int) -> tuple[int, ...]:
    """The rooms between the borders, numbered 0, 1, ... in order of their first cells."""
    doors: list[list[int]] = [[] for _ in range(width * height)]
    for (cell, other), border in zip(edges(width, height), borders, strict=True):
        if not border:
            doors[cell].append(other)
            doors[other].append(cell)
    rooms = [-1] * len(doors)
    count = 0
    for first in range(len(doors)):
        if rooms[first] >= 0:
            continue
        rooms[first], stack = count, [first]
        while stack:
            for other in doors[stack.pop()]:
                if rooms[other] < 0:
                    rooms[other] = count
                    stack.append(other)
        count += 1
    return tuple(rooms)


def between_rooms(rooms: Sequence[int], width: int, height: int) -> tuple[bool, ...]:
    """Borders between cells of different rooms, and no others."""
    return tuple(rooms[cell] != rooms[other] for cell, other in edges(width, height))


def room_clues(rooms: Sequence[int], numbers: Sequence[Clue]) -> tuple[Clue, ...]:
    """Clues by cell from clues by room: each in the first cell of its room."""
    clues = [NO_CLUE] * len(rooms)
    for room, clue in enumerate(numbers):
        clues[rooms.index(room)] = clue
    return tuple(clues)
