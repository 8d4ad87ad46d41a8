"""The tasks: Sudoku 9x9, its 4x4 toy, and the 30x30 maze."""

from tiltrm.errors import SettingsError
from tiltrm.tasks.base import Symmetry, Task
from tiltrm.tasks.maze import MAZE, Judgement, Maze
from tiltrm.tasks.sudoku import SUDOKU, Sudoku

__all__ = [
    "MAZE",
    "STANDARD",
    "SUDOKU",
    "Judgement",
    "Maze",
    "Sudoku",
    "Symmetry",
    "Task",
    "by_name",
]

STANDARD: tuple[Task, ...] = (SUDOKU, MAZE, Sudoku(2))


def by_name(name: str) -> Task:
    """The standard task of this name; raises SettingsError."""
    for task in STANDARD:
        if task.name == name:
            return task
    known = ", ".join(task.name for task in STANDARD)
    raise SettingsError(f"expected a task among {known}, got {name!r}")
