"""Plain text files: one puzzle a line, or one row of cells a line."""

from collections.abc import Iterable, Iterator
from itertools import islice

from tiltrm.data import encode
from tiltrm.data.puzzles import Puzzles
from tiltrm.errors import DataError
from tiltrm.tasks.base import Task


def blocks(lines: Iterable[str], task: Task) -> Iterator[str]:
    """The texts of the puzzles, good or bad, each for `Task.encode`.

    A line that holds more than two rows of cells is a puzzle of its own. Shorter lines are rows:
    a grid ends with its last row, at an empty line, or where a whole puzzle follows.
    """
    grid: list[str] = []
    rows = 0
    for line in map(task.clean, lines):
        width = task.width(line)
        is_whole = width > 2 * task.side
        if grid and (is_whole or not line):
            yield "\n".join(grid)
            grid, rows = [], 0
        if is_whole:
            yield line
        elif width:
            grid.append(line)
            rows += 1
            if rows == task.side:
                yield "\n".join(grid)
                grid, rows = [], 0
    if grid:
        yield "\n".join(grid)


def read(lines: Iterable[str], task: Task, limit: int | None = None) -> Puzzles:
    """A text file as Puzzles; the first bad puzzle is an error."""
    texts = list(islice(blocks(lines, task), limit))
    if not texts:
        raise DataError("expected at least one puzzle, got none")
    return Puzzles(task, encode.tokens(task, texts))
