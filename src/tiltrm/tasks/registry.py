"""Tasks by their names: the standard ones, and those that somebody brings along.

A name in a checkpoint or a stored result never loads code; it finds what was registered before.
Proved by tests/tasks/test_registry.py.
"""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from tiltrm.errors import SettingsError
from tiltrm.tasks.base import TOKENS, Task
from tiltrm.tasks.maze import MAZE
from tiltrm.tasks.sudoku import SUDOKU, Sudoku

STANDARD: tuple[Task, ...] = (SUDOKU, MAZE, Sudoku(2))
NEEDED = tuple(name for name in vars(Task) if not name.startswith("_"))
_registered: dict[str, Task] = {}


def by_name(name: str) -> Task:
    """The standard or registered task of this name; raises SettingsError."""
    known = {task.name: task for task in (*STANDARD, *_registered.values())}
    if name in known:
        return known[name]
    raise SettingsError(
        f"expected a task among {', '.join(known)}, got {name!r}; one's own is --task FILE.py:NAME"
    )


def register(task: Task) -> Task:
    """Make a task known by its name in this process, and return it; SettingsError if it is none."""
    missing = [name for name in NEEDED if not hasattr(task, name)]
    if missing:
        raise SettingsError(
            f"expected a task, got {task!r:.60} without {', '.join(missing)}; begin with "
            "tiltrm.tasks.Grid"
        )
    if task.cells != task.side**2 or not 2 < task.vocabulary <= TOKENS:
        raise SettingsError(
            f"a task must have side x side cells and 3 to {TOKENS} ids, got {task.name} with "
            f"{task.cells} cells, side {task.side} and {task.vocabulary} ids"
        )
    if task.name in (other.name for other in STANDARD):
        raise SettingsError(
            f"expected a name of its own for a task, got {task.name!r}, which is taken"
        )
    _registered[task.name] = task
    return task


def adopt(spec: str) -> Task:
    """Register the task of FILE.py:NAME or MODULE:NAME. This runs the file."""
    where, _, name = spec.rpartition(":")
    try:
        found: Any = getattr(_module(where), name, None)
    except Exception as error:  # whatever a file of somebody's raises
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise SettingsError(f"{where}: expected Python with a task, got {reason}") from error
    if found is None:
        raise SettingsError(f"{where}: expected a task called {name!r}, got nothing of that name")
    return register(found)


def _module(where: str) -> ModuleType:
    if not where.endswith(".py"):
        return importlib.import_module(where)
    if not Path(where).is_file():
        raise FileNotFoundError("no such file")
    name = f"tiltrm_task_{Path(where).stem}"
    found = importlib.util.spec_from_file_location(name, where)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module  # where a dataclass looks for its own module
    found.loader.exec_module(module)
    return module
