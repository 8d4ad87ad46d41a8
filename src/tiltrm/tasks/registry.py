"""Tasks by name: the standard ones, and those that users register.

A name in a checkpoint or a stored result never loads code; it finds a task registered before.
Proved by tests/tasks/test_registry.py.
"""

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from tiltrm.errors import SettingsError
from tiltrm.tasks.arc import ARC, MINI_ARC
from tiltrm.tasks.base import TOKENS, Task, TaskDefaults
from tiltrm.tasks.check import check_attributes, check_task
from tiltrm.tasks.maze import MAZE, MAZE_UNIQUE
from tiltrm.tasks.pencil import PENCIL
from tiltrm.tasks.pencil import TASKS as PENCIL_TASKS
from tiltrm.tasks.sudoku import SUDOKU, Sudoku

STANDARD: tuple[Task, ...] = (SUDOKU, MAZE, *PENCIL_TASKS, PENCIL, Sudoku(2))
# Unique mazes are never guessed from a file, and ARC tasks from JSON only.
NAMED: tuple[Task, ...] = (MAZE_UNIQUE, MINI_ARC, ARC, *STANDARD)
OPTIONAL = ("defaults",)
NEEDED = tuple(name for name in vars(Task) if not name.startswith("_") and name not in OPTIONAL)


class TaskSource(NamedTuple):
    """The Python code that defines a task, so that it can be sent to another process."""

    where: str  # FILE.py or MODULE, as the user wrote it
    name: str  # of the task in it
    content: bytes | None  # of the file; None for a module, which every machine must have


_registered: dict[str, tuple[Task, TaskSource | None]] = {}


def by_name(name: str) -> Task:
    """The standard or registered task of this name; raises SettingsError."""
    known = {task.name: task for task in (*NAMED, *(own for own, _ in _registered.values()))}
    if name in known:
        return known[name]
    raise SettingsError(
        f"expected a task among {', '.join(known)}, got {name!r}; for a task of your own use "
        "--task FILE.py:NAME"
    )


def defaults_of(task: Task | str) -> TaskDefaults:
    """The defaults of a task or of a known name; those of any task where it has none."""
    if isinstance(task, str):
        known = {each.name: each for each in (*NAMED, *(own for own, _ in _registered.values()))}
        return defaults_of(known[task]) if task in known else TaskDefaults()
    return getattr(task, "defaults", TaskDefaults())


def source_of(name: str) -> TaskSource | None:
    """The source of the task of this name; None if it is standard or made by a program."""
    return _registered[name][1] if name in _registered else None


def register(task: Task, source: TaskSource | None = None) -> Task:
    """Make a task known by its name in this process, and return it; raises SettingsError."""
    if isinstance(task, type):
        raise SettingsError(
            f"expected a task, got the class {task.__name__}; name an object of it, such as "
            f"{task.__name__.upper()} = {task.__name__}(...)"
        )
    missing = [name for name in NEEDED if not hasattr(task, name)]
    if missing:
        raise SettingsError(
            f"expected a task, got {task!r:.60} without {', '.join(missing)}; start from "
            "tiltrm.tasks.Grid"
        )
    check_attributes(task)
    if task.cells != task.side**2 or not 2 < task.vocabulary <= TOKENS:
        raise SettingsError(
            f"a task must have side x side cells and 3 to {TOKENS} ids, got {task.name} with "
            f"{task.cells} cells, side {task.side} and {task.vocabulary} ids"
        )
    if task.name in (other.name for other in NAMED):
        raise SettingsError(
            f"expected a name of its own for a task, got {task.name!r}, which is taken"
        )
    _registered[task.name] = task, source
    return task


def adopt(spec: str) -> Task:
    """Register the task of FILE.py:NAME or MODULE:NAME. This runs the file."""
    where, _, name = spec.rpartition(":")
    try:
        content = Path(where).read_bytes() if where.endswith(".py") else None
    except OSError as error:
        raise SettingsError(
            f"{where}: expected Python with a task, got: {error.strerror}"
        ) from error
    return register_source(TaskSource(where, name, content))


def register_source(source: TaskSource) -> Task:
    """Register the task of a source, here or in another process. This runs its code."""
    where, name, _ = source
    try:
        found: Any = getattr(_module(source), name, None)
    except (Exception, SystemExit) as error:  # the file may raise anything
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise SettingsError(f"{where}: expected Python with a task, got {reason}") from error
    if found is None:
        raise SettingsError(f"{where}: expected a task called {name!r}, got nothing of that name")
    try:
        task = register(found, source)
        check_task(task)
    except SettingsError as error:
        _registered.pop(getattr(found, "name", ""), None)
        raise SettingsError(f"{where}: {error}") from error
    return task


def _module(source: TaskSource) -> ModuleType:
    if source.content is None:
        return importlib.import_module(source.where)
    module = ModuleType(f"tiltrm_task_{Path(source.where).stem}")
    module.__file__ = source.where
    sys.modules[module.__name__] = module  # dataclasses and pickle look it up there
    exec(compile(source.content, source.where, "exec"), vars(module))
    return module
