"""The cells of a board, their neighbours and lines, for the search and the generators."""

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from tiltrm.tasks.pencil.puzzle import beside

Marks = tuple[bool, ...]  # of the cells of a board in reading order

ROUND_A_CELL = ((-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1))


class CellBoard(NamedTuple):
    """The cells of a board and their neighbours."""

    width: int
    height: int
    beside: tuple[tuple[int, ...], ...]

    @property
    def cells(self) -> int:
        return self.width * self.height

    def around(self, cell: int) -> list[int | None]:
        """The eight cells round a cell, clockwise from the upper left; None outside the board."""
        row, column = divmod(cell, self.width)
        places = ((row + down, column + right) for down, right in ROUND_A_CELL)
        return [
            r * self.width + c if 0 <= r < self.height and 0 <= c < self.width else None
            for r, c in places
        ]

    def squares(self) -> Iterable[tuple[int, int, int, int]]:
        """The cells of each square of 2 x 2."""
        for cell in range(self.cells - self.width):
            if cell % self.width < self.width - 1:
                yield cell, cell + 1, cell + self.width, cell + self.width + 1

    def lines(self) -> Iterable[list[int]]:
        """The rows and the columns."""
        for row in range(self.height):
            yield list(range(row * self.width, (row + 1) * self.width))
        for column in range(self.width):
            yield list(range(column, self.cells, self.width))

    def parts(self, cells: Collection[int]) -> list[list[int]]:
        """The connected parts of some cells, in order of their first cells."""
        left = set(cells)
        found = []
        for first in sorted(left):
            if first in left:
                found.append(self.reach(first, left))
                left.difference_update(found[-1])
        return found

    def reach(self, first: int, cells: Collection[int]) -> list[int]:
        """The cells that are connected with the first, nearest first."""
        order, seen = [first], {first}
        for cell in order:
            for other in self.beside[cell]:
                if other in cells and other not in seen:
                    seen.add(other)
                    order.append(other)
        return order

    def border(self, part: Collection[int]) -> list[int]:
        """The cells beside a part that are not in it."""
        inside = set(part)
        return sorted({other for cell in part for other in self.beside[cell]} - inside)


@lru_cache
def board_of(width: int, height: int) -> CellBoard:
    """The board of a size."""
    cells = range(width * height)
    return CellBoard(width, height, tuple(tuple(beside(c, width, height)) for c in cells))


def segments(line: Sequence[int], walls: Collection[int]) -> Iterable[list[int]]:
    """The cells of a line between walls."""
    segment: list[int] = []
    for cell in line:
        if cell in walls:
            if segment:
                yield segment
            segment = []
        else:
            segment.append(cell)
    if segment:
        yield segment


def spans(line: Sequence[int], walled: Collection[tuple[int, int]]) -> Iterable[Sequence[int]]:
    """The shortest runs of a line that cross two borders."""
    crossed = [at for at in range(len(line) - 1) if (line[at], line[at + 1]) in walled]
    for first, last in pairwise(crossed):
        yield line[first : last + 2]


def rooms_of(labels: Sequence[int]) -> list[tuple[int, ...]]:
    """The cells of each room."""
    rooms: list[list[int]] = [[] for _ in range(max(labels) + 1)]
    for cell, room in enumerate(labels):
        rooms[room].append(cell)
    return [tuple(room) for room in rooms]
