"""Which task a puzzle belongs to, judged by its text or its size."""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from tiltrm.errors import DataError, PuzzleError
from tiltrm.tasks import MAZE, STANDARD, SUDOKU, Sudoku, Task
from tiltrm.tasks.pencil import PENCIL, address
from tiltrm.tasks.pencil import TASKS as PENCIL_TASKS

LOOK_AT = 64  # lines: two mazes
ADDRESSED = (*PENCIL_TASKS, PENCIL)  # recognised by addresses only: their sizes vary
SIZED = tuple(task for task in STANDARD if task not in ADDRESSED)


def by_cells(cells: int) -> Task:
    """The standard task of this many cells."""
    for task in SIZED:
        if task.cells == cells:
            return task
    sizes = ", ".join(f"{task.cells} ({task.name})" for task in SIZED)
    raise DataError(f"expected puzzles of {sizes} cells, got {cells}; name the task")


def by_addresses(texts: Iterable[str]) -> Task | None:
    """The task of the addresses among the texts: that of their type, or of all types.

    None where there is no address.
    """
    found = [text for text in texts if address.is_address(text)]
    kinds = {kind for text in found if (kind := address.kind_in(text)) is not None}
    if len(kinds) == 1:
        name = kinds.pop().name
        return next(task for task in (SUDOKU, *PENCIL_TASKS) if task.name == name)
    return PENCIL if found else None


def by_questions(texts: Sequence[str]) -> Task:
    """The standard task of the questions of a table; the first of them says its size."""
    return by_addresses(texts) or by_cells(len(texts[0]))


def by_texts(texts: Sequence[str]) -> Task:
    """The standard task of one-line puzzles, some of which may be bad."""
    sizes = {task.cells: task for task in SIZED}
    known = (sizes[len(text)] for text in texts if len(text) in sizes)
    return by_addresses(texts) or next(known, None) or by_lines(texts)


def by_lines(lines: Sequence[str]) -> Task:
    """The standard task of plain text: a maze is written with the characters # S G o alone."""
    sample = lines[:LOOK_AT]
    if (named := by_addresses(lines)) is not None:
        return named
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
        if other != task and any(_belongs(other, text) for text in islice(divided, LOOK_AT)):
            raise DataError(
                f"expected puzzles of {task.name}, got puzzles that look like {other.name}; "
                f"add --task {other.name}"
            )


def _belongs(task: Task, text: str) -> bool:
    """Whether a text is a puzzle of the task, and shows it."""
    return (task not in ADDRESSED or address.is_address(text)) and _fits(task, text)


def _fits(task: Task, text: str) -> bool:
    try:
        task.encode(text)
    except PuzzleError:
        return False
    return True
