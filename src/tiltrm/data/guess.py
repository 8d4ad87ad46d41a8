"""Which task a puzzle belongs to, told from its text or its size."""

from collections.abc import Sequence

from tiltrm.errors import DataError
from tiltrm.tasks import MAZE, STANDARD, Sudoku, Task

LOOK_AT = 64  # lines: two mazes


def by_cells(cells: int) -> Task:
    """The standard task of this many cells."""
    for task in STANDARD:
        if task.cells == cells:
            return task
    sizes = ", ".join(f"{task.cells} ({task.name})" for task in STANDARD)
    raise DataError(f"expected puzzles of {sizes} cells, got {cells}; name the task")


def by_texts(texts: Sequence[str]) -> Task:
    """The standard task of one-line puzzles, some of which may be bad."""
    sizes = {task.cells: task for task in STANDARD}
    known = (sizes[len(text)] for text in texts if len(text) in sizes)
    return next(known, None) or by_lines(texts)


def by_lines(lines: Sequence[str]) -> Task:
    """The standard task of plain text: a maze has no character of its own but # S G o."""
    sample = lines[:LOOK_AT]
    characters = set().union(*sample)
    if characters <= set("# SGo\r\n") and characters & set("SG"):
        return MAZE
    toy = Sudoku(2)
    widths = [width for line in sample if (width := toy.width(toy.clean(line)))]
    return toy if widths and widths[0] in (toy.side, toy.cells) else Sudoku(3)
