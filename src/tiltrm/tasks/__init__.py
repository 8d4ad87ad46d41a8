"""The tasks: Sudoku 9x9 and 4x4, the 30x30 maze, and tasks that users register."""

from tiltrm.tasks.base import Symmetry, Task
from tiltrm.tasks.grid import Grid
from tiltrm.tasks.maze import MAZE, Judgement, Maze
from tiltrm.tasks.registry import STANDARD, adopt, by_name, register
from tiltrm.tasks.sudoku import SUDOKU, Sudoku

__all__ = [
    "MAZE",
    "STANDARD",
    "SUDOKU",
    "Grid",
    "Judgement",
    "Maze",
    "Sudoku",
    "Symmetry",
    "Task",
    "adopt",
    "by_name",
    "register",
]
