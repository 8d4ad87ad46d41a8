"""ARC grids as rows of colours: their text, their checks, and their eight turns.

A turn has the number that TinyRecursiveModels gives it: 0 none, 1 to 3 quarter turns
counter-clockwise, 4 left and right exchanged, 5 top and bottom exchanged, 6 transposed,
7 transposed along the other diagonal. Proved by tests/tasks/arc/test_grids.py.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from tiltrm.errors import PuzzleError, SizeError

SIDE = 30  # cells in a row of the largest grid
COLOURS = 10
TURNS = 8
UNTURNED = (0, 3, 2, 1, 4, 5, 6, 7)  # the inverse of each turn

ColourGrid = tuple[tuple[int, ...], ...]


def check_grid(rows: object, what: str = "a grid") -> ColourGrid:
    """Rows of colours from a file; PuzzleError if they are no ARC grid, SizeError if too large."""
    if not isinstance(rows, Sequence) or isinstance(rows, str) or not rows:
        raise PuzzleError(f"expected {what} as rows of colours 0 to 9, got {rows!r:.60}")
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Sequence) or isinstance(row, str) or not row:
            raise PuzzleError(f"expected {what} as rows of colours 0 to 9, got {row!r:.60} as row "
                              f"{number}")  # fmt: skip
        bad = next((each for each in row if not _is_colour(each)), None)
        if bad is not None:
            raise PuzzleError(f"expected {what} of colours 0 to 9, got {bad!r:.40} in row {number}")
        if len(row) != len(rows[0]):
            raise PuzzleError(f"expected {what} with rows of one length, got {len(rows[0])} cells "
                              f"in row 1 and {len(row)} in row {number}")  # fmt: skip
    if len(rows) > SIDE or len(rows[0]) > SIDE:
        raise SizeError(f"expected {what} of at most {SIDE} x {SIDE} cells, got {len(rows)} rows "
                        f"of {len(rows[0])}")  # fmt: skip
    return tuple(tuple(row) for row in rows)


def _is_colour(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < COLOURS


def read_rows(text: str) -> ColourGrid:
    """'012/345' -> its rows; PuzzleError if it is no grid. Line ends part rows too."""
    lines = [line.strip() for line in text.replace("/", "\n").split("\n") if line.strip()]
    for number, line in enumerate(lines, 1):
        bad = next((each for each in line if not (each.isascii() and each.isdigit())), None)
        if bad is not None:
            raise PuzzleError(
                f"expected digits, with '/' between rows, got {bad!r} in row {number}"
            )
    return check_grid([[int(each) for each in line] for line in lines])


def write_rows(grid: Iterable[Iterable[int]]) -> str:
    """The text of `read_rows`: a digit for each cell, '/' between rows."""
    return "/".join("".join(map(str, row)) for row in grid)


def turn(grid: ColourGrid, number: int) -> ColourGrid:
    """The grid turned; `UNTURNED[number]` turns it back."""
    return tuple(map(tuple, _turned(np.array(grid), number).tolist()))


def recolour(grid: ColourGrid, colours: Sequence[int]) -> ColourGrid:
    """The grid with colour c replaced by colours[c]."""
    return tuple(tuple(colours[each] for each in row) for row in grid)


def _turned(grid: np.ndarray, number: int) -> np.ndarray:
    if number < 4:
        return np.rot90(grid, number)
    if number == 4:
        return np.fliplr(grid)
    if number == 5:
        return np.flipud(grid)
    return grid.T if number == 6 else np.fliplr(np.rot90(grid))


@lru_cache(maxsize=4)
def turn_sources(side: int) -> Tensor:
    """(turn, cell): the cell of a square grid that each cell of the turned grid comes from."""
    cells = np.arange(side * side).reshape(side, side)
    return torch.stack([torch.tensor(_turned(cells, number).copy()).flatten()
                        for number in range(TURNS)])  # fmt: skip
