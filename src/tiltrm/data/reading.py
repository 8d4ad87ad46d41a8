"""One way in for every format: a file, a folder, or the name of a public dataset."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path

from torch import Tensor

from tiltrm.data import files, guess, hub, npy, table, text
from tiltrm.data.puzzles import Puzzles
from tiltrm.errors import DataError, PuzzleError, SettingsError
from tiltrm.tasks.base import Task


def read(
    path_or_name: files.Name,
    task: Task | None = None,
    split: str | None = None,
    limit: int | None = None,
    *,
    default: str = "test",
) -> Puzzles:
    """Puzzles of a CSV or text file, of a folder, or of a dataset ('sudoku-extreme/test').

    `split` names a part of a folder or dataset, `default` the part where none is named. `limit`
    stops after so many puzzles. The task is told from the content where None.
    """
    if limit is not None and limit < 1:
        raise SettingsError(f"limit must be at least 1, got {limit}")
    path = _locate(path_or_name, split, default)
    with _naming(path):
        if os.path.isdir(path):
            found = npy.read(path, task, limit)
        else:
            found = _read_file(path, task, limit)
    return replace(found, file=str(path))


def _read_file(path: Path, task: Task | None, limit: int | None) -> Puzzles:
    first, lines = _open(path)
    if table.is_header(first):
        return table.read(lines, task, limit)
    if "," in first.partition("#")[0]:  # no puzzle has a comma, but a comment may
        raise DataError(f"expected a CSV with a column 'question', got {first[:80]!r}")
    if task is None:
        whole = list(lines)
        return text.read(whole, guess.by_lines(whole), limit)
    return text.read(lines, task, limit)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Put the name of the file in front of its errors."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def _locate(path_or_name: files.Name, split: str | None, default: str) -> Path:
    """The file or NPY folder that is meant."""
    name = os.fspath(path_or_name)
    if os.path.isdir(name):
        return _in_folder(Path(name), split, default)
    if os.path.exists(name):
        return Path(name)
    dataset, _, part = name.rpartition("/")
    for repository, chosen in ((hub.repository(name), split), (hub.repository(dataset), part)):
        if repository is not None:
            return hub.fetch(repository, chosen or default)
    known = ", ".join(hub.REPOSITORIES)
    raise DataError(f"expected a file, a folder or a dataset ({known}), got {name[:200]!r}")


def _in_folder(folder: Path, split: str | None, default: str) -> Path:
    if split is None and os.path.exists(folder / npy.DESCRIPTION):
        return folder
    part = split or default
    choices = (folder / part, folder / f"{part}.csv", folder / f"{part}.csv.gz")
    for choice in choices:
        if os.path.exists(choice):
            return choice
    wanted = ", ".join(choice.name for choice in choices)
    raise DataError(
        f"{folder}: expected one of {wanted} in this folder, got none; name the file or folder "
        "itself"
    )


def _open(path: files.Name) -> tuple[str, Iterator[str]]:
    """The first line and all lines of a file, read once, so that a pipe will do."""
    lines = files.lines(path)
    first = next(lines, "")
    return first, chain([first], lines)


def read_lines(
    source: Path | str, task: Task | None = None
) -> list[tuple[str, Tensor | PuzzleError]]:
    """Every puzzle with its tokens (cell,) or with its own error, so that the others still run.

    A Path is a file (text, or a CSV whose questions are taken); a str is the text itself.
    """
    if isinstance(source, Path):
        with _naming(source):
            return _from_file(source, task)
    return _from_text(source.split("\n"), task)


def _from_file(path: Path, task: Task | None) -> list[tuple[str, Tensor | PuzzleError]]:
    first, lines = _open(path)
    if not table.is_header(first):
        return _from_text(list(lines), task)
    texts = [row["question"] for row in table.rows(lines)]
    task = task or guess.by_texts(texts)
    return [_try(entry, task) for entry in texts]


def _from_text(lines: list[str], task: Task | None) -> list[tuple[str, Tensor | PuzzleError]]:
    task = task or guess.by_lines(lines)
    return [_try(entry, task) for entry in text.blocks(lines, task)]


def _try(entry: str, task: Task) -> tuple[str, Tensor | PuzzleError]:
    try:
        return entry, task.encode(entry)
    except PuzzleError as error:
        return entry, error
