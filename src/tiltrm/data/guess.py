"""Which task a puzzle belongs to, judged by its text or its size."""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from tiltrm.errors import DataError, PuzzleError
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
    """The standard task of plain text: a maze is written with the characters # S G o alone."""
    sample = lines[:LOOK_AT]
    characters = set().union(*sample)
    if characters <= set("# SGo\r\n") and characters & set("SG"):
        return MAZE
    toy = Sudoku(2)
    widths = [width for line in sample if (width := toy.width(toy.clean(line)))]
    return toy if widths and widths[0] in (toy.side, toy.cells) else Sudoku(3)


def check_task(
    task: Task,
    texts: Sequence[str],
    texts_for: Callable[[Task], Iterable[str]] | None = None,
) -> None:
    """DataError if no text is a puzzle of `task` and one is a puzzle of another standard task.

    texts_for: the texts of the same file as another task divides it; `texts` if None.
    Proved by tests/data/test_reading.py::test_puzzles_of_another_task_are_recognised.
    """
    if any(_fits(task, text) for text in texts):
        return
    for other in STANDARD:
        divided = texts if texts_for is None else texts_for(other)
        if other != task and any(_fits(other, text) for text in islice(divided, LOOK_AT)):
            raise DataError(
                f"expected puzzles of {task.name}, got puzzles that look like {other.name}; "
                f"add --task {other.name}"
            )


def _fits(task: Task, text: str) -> bool:
    try:
        task.encode(text)
    except PuzzleError:
        return False
    return True
