"""ARC tasks of a JSON file, of a folder of JSON files, or of the peers' preprocessed folder.

A file holds one task, {"train": [{"input": ROWS, "output": ROWS}, ...], "test": [...]}, or many of
them by name. A test without an output is a question whose answer nobody gave; the outputs may also
stand in the file NAME_solutions.json beside NAME_challenges.json, as Kaggle publishes them.
Proved by tests/data/test_arc_files.py.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tiltrm.data.arc_folders import ArcTask, is_arc_folder, read_npy_tasks
from tiltrm.data.npy import DESCRIPTION
from tiltrm.data.streams import PathName, open_bounded
from tiltrm.errors import DataError, PuzzleError
from tiltrm.tasks.arc.grids import ColourGrid, check_grid

SUFFIXES = (".json", ".json.gz")
__all__ = ["ArcTask", "arc_json", "is_arc_file", "load_json", "read_arc_tasks"]
MAX_TASKS = 1_000_000  # of one file
CHALLENGES, SOLUTIONS = "challenges", "solutions"


def is_arc_file(path: PathName) -> bool:
    """Whether a file or folder looks like ARC tasks in JSON. It may still be wrong inside."""
    if os.path.isdir(path):
        if os.path.exists(Path(path) / DESCRIPTION):  # one split of preprocessed puzzles
            return False
        return is_arc_folder(Path(path)) or bool(_json_files(Path(path)))
    if not os.path.isfile(path):  # a pipe could be read only once
        return False
    try:
        with open_bounded(path) as stream:
            return stream.peek(64)[:64].removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"
    except DataError:
        return False


def read_arc_tasks(path: PathName, max_bytes: int | None = None) -> list[ArcTask]:
    """The tasks of a file or folder, in its order; DataError for the first bad one."""
    path = Path(path)
    if not path.is_dir():
        return _tasks_of_file(path, max_bytes)
    if is_arc_folder(path):
        return read_npy_tasks(path, max_bytes)
    files = _json_files(path)
    if not files:
        raise DataError(f"{path}: expected a folder of ARC tasks in JSON files, got none")
    found = [task for file in files for task in _tasks_of_file(file, max_bytes)]
    twice = [name for name, count in Counter(task.name for task in found).items() if count > 1]
    if twice:
        raise DataError(f"{path}: expected every task once, got {twice[0][:80]!r} in several files")
    return found


def arc_json(tasks: Iterable[ArcTask]) -> dict[str, Any]:
    """The content of a file of these tasks, ready for JSON."""
    found = {}
    for task in tasks:
        tests: list[dict[str, Any]] = [{"input": grid} for grid in task.tests]
        for test, output in zip(tests, task.outputs or (), strict=False):
            test["output"] = output
        pairs = [{"input": grid, "output": output} for grid, output in task.demonstrations]
        found[task.name] = {"train": pairs, "test": tests}
    return found


def _json_files(folder: Path) -> list[Path]:
    try:
        return sorted(file for file in folder.iterdir() if file.name.endswith(SUFFIXES))
    except OSError as error:
        raise DataError(f"{folder}: expected a readable folder, got: {error.strerror}") from error


def _tasks_of_file(path: Path, max_bytes: int | None) -> list[ArcTask]:
    found = load_json(path, max_bytes)
    stem = path.name
    for suffix in reversed(SUFFIXES):
        stem = stem.removesuffix(suffix)
    try:
        if "train" in found or "test" in found:
            return [_task(stem, found)]
        if not found:
            raise DataError("expected ARC tasks by name, got an empty object")
        if len(found) > MAX_TASKS:
            raise DataError(f"expected at most {MAX_TASKS:,} tasks, got {len(found):,}")
        tasks = [_task(name, about) for name, about in found.items()]
        return _with_solutions(tasks, path, max_bytes)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def load_json(path: Path, max_bytes: int | None = None) -> dict[str, Any]:
    """The object in a JSON file of bounded size, plain or gzip; DataError if there is none."""
    try:
        with open_bounded(path, max_bytes) as stream:
            content = stream.read()
        found = json.loads(content.decode("utf-8-sig"))
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    except (ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0][:160]
        raise DataError(f"{path}: expected ARC tasks in JSON, got: {reason}") from error
    if not isinstance(found, dict):
        raise DataError(
            f"{path}: expected an object with ARC tasks by name, got a {type(found).__name__}"
        )
    return found


def _task(name: str, about: object) -> ArcTask:
    if not isinstance(about, Mapping) or "test" not in about:
        raise DataError(
            f"task {name[:80]!r}: expected an object with 'train' and 'test', got {about!r:.60}"
        )
    try:
        demonstrations = tuple(
            (_grid(pair, "input", where), _grid(pair, "output", where))
            for where, pair in _numbered(about, "train", "demonstration")
        )
        tests = list(_numbered(about, "test", "test"))
        inputs = tuple(_grid(pair, "input", where) for where, pair in tests)
        outputs = None
        if all(isinstance(pair, Mapping) and pair.get("output") is not None for _, pair in tests):
            outputs = tuple(_grid(pair, "output", where) for where, pair in tests)
    except PuzzleError as error:
        raise DataError(f"task {name[:80]!r}: {error}") from error
    return ArcTask(name, demonstrations, inputs, outputs)


def _numbered(about: Mapping[str, Any], key: str, what: str) -> list[tuple[str, object]]:
    found = about.get(key)
    if not isinstance(found, list) or not found:
        got = f"{found!r:.60}" if found else "none"
        raise PuzzleError(f"expected at least one {what} in {key!r}, got {got}")
    return [(f"{what} {number}", pair) for number, pair in enumerate(found, 1)]


def _grid(pair: object, key: str, where: str) -> ColourGrid:
    if not isinstance(pair, Mapping) or key not in pair:
        raise PuzzleError(f"expected an {key!r} in {where}, got {pair!r:.60}")
    return check_grid(pair[key], f"the {key} of {where}")


def _with_solutions(tasks: list[ArcTask], path: Path, max_bytes: int | None) -> list[ArcTask]:
    """The tasks with the outputs of the file of solutions beside a file of challenges."""
    beside = path.with_name(path.name.replace(CHALLENGES, SOLUTIONS))
    if CHALLENGES not in path.name or not beside.is_file():
        return tasks
    found = load_json(beside, max_bytes)
    return [replace(task, outputs=_solution(task, found.get(task.name), beside)) for task in tasks]


def _solution(task: ArcTask, grids: object, file: Path) -> tuple[ColourGrid, ...] | None:
    if grids is None:
        return task.outputs
    where = f"task {task.name[:80]!r} in {file.name}"
    if not isinstance(grids, list) or len(grids) != len(task.tests):
        raise DataError(f"{where}: expected {len(task.tests)} outputs, got {grids!r:.60}")
    try:
        return tuple(check_grid(rows, f"output {n}") for n, rows in enumerate(grids, 1))
    except PuzzleError as error:
        raise DataError(f"{where}: {error}") from error
