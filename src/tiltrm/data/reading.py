"""One entry point for every format: a file, a folder, or the name of a public dataset."""

import importlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

from torch import Tensor

from tiltrm.data import arc_puzzles, guess, npy, text_files
from tiltrm.data.arc_files import is_arc_file, read_arc_tasks
from tiltrm.data.puzzles import Puzzles
from tiltrm.data.streams import PathName
from tiltrm.errors import DataError, PuzzleError, SettingsError
from tiltrm.tasks.arc import Arc, MiniArc
from tiltrm.tasks.base import Task

HUB = {  # public datasets by their short names
    "sudoku-extreme": "sapientinc/sudoku-extreme",
    "maze-hard": "sapientinc/maze-30x30-hard-1k",
}
MAX_ENTRIES = 4 * 10**6  # puzzles; the largest public set has 3.8 million
BAD_IN_A_ROW = 1000  # puzzles that cannot be read before the file is refused
Entry = tuple[str, Tensor | PuzzleError]  # the text of a puzzle; its tokens (cell,) or its error


def read(
    path_or_name: PathName,
    task: Task | None = None,
    split: str | None = None,
    limit: int | None = None,
    *,
    default: str = "test",
    max_bytes: int | None = None,
    skip_sizes: bool = False,
    names: Sequence[str] | None = None,
) -> Puzzles:
    """Puzzles of a CSV or text file, of a folder, or of a dataset ('sudoku-extreme/test').

    Of ARC tasks in JSON, the test inputs, and if outputs are known for some, only those.

    task: guessed from the content if None.
    split: a part of a folder or dataset; `default` names the part if None.
    limit: the largest number of puzzles to read.
    max_bytes: the most bytes of text to read, after decompression (streams.MAX_BYTES).
    skip_sizes: whether to leave out puzzles of a size that the task does not hold, and count them.
    names: of a model's puzzle ids, which number the tasks of ARC; without them their order does.
    """
    if limit is not None and limit < 1:
        raise SettingsError(f"limit must be at least 1, got {limit}")
    if max_bytes is not None and max_bytes < 1:
        raise SettingsError(f"max_bytes must be at least 1, got {max_bytes}")
    limit = None if limit is None else min(limit, sys.maxsize)
    if split is None and is_arc_file(path_or_name):
        return _read_arc(Path(path_or_name), task, limit, max_bytes, names)
    path = _locate(path_or_name, split, default)
    with _naming(path):
        is_folder = os.path.isdir(path)
        if is_folder:
            found = npy.read(path, task, limit, max_bytes)
        else:
            found = _read_file(path, task, limit, max_bytes, skip_sizes=skip_sizes)
    return replace(found, file=str(path))


def _read_arc(
    path: Path, task: Task | None, limit: int | None, max_bytes: int | None,
    names: Sequence[str] | None,
) -> Puzzles:  # fmt: skip
    tasks = read_arc_tasks(path, max_bytes)
    own = task or arc_puzzles.guess_task(tasks)
    if not isinstance(own, MiniArc | Arc):
        raise DataError(
            f"{path}: expected puzzles of {own.name}, got ARC tasks; add --task "
            f"{arc_puzzles.guess_task(tasks).name}"
        )
    if names is None:
        numbers = arc_puzzles.puzzle_numbers(own, tasks)
        names = [""] * min(numbers.values()) + list(numbers)
    answered = [each for each in tasks if each.outputs is not None]
    with _naming(path):
        found = arc_puzzles.input_puzzles(own, answered or tasks, names)
    return replace(found.take(slice(limit)), file=str(path))


def read_lines(
    source: Path | str, task: Task | None = None, *, max_bytes: int | None = None
) -> list[Entry]:
    """Every puzzle with its tokens (cell,) or its own error, so that one bad puzzle stops nothing.

    source: a Path is a file (text, or the questions of a CSV); a str is the text itself.
    """
    return list(stream_lines(source, task, max_bytes=max_bytes))


def stream_lines(
    source: Path | str, task: Task | None = None, *, max_bytes: int | None = None
) -> Iterator[Entry]:
    """The entries of `read_lines` one by one; the text is never in memory as a whole.

    DataError after MAX_ENTRIES puzzles, and after BAD_IN_A_ROW bad ones that follow each other:
    such a file holds something else. Proved by tests/data/test_hostile_files.py.
    """
    if isinstance(source, Path):
        with _naming(source):
            yield from _bounded(_entries_of_file(source, task, max_bytes))
    else:
        yield from _bounded(_entries_of_text(source.split("\n"), task))


def _bounded(entries: Iterable[Entry]) -> Iterator[Entry]:
    bad = 0
    for number, entry in enumerate(entries, 1):
        if number > MAX_ENTRIES:
            raise DataError(f"expected at most {MAX_ENTRIES:,} puzzles, got more; split the file")
        bad = bad + 1 if isinstance(entry[1], PuzzleError) else 0
        if bad == BAD_IN_A_ROW:
            raise DataError(
                f"expected puzzles, got {bad:,} bad ones in a row (puzzle {number}: {entry[1]}); "
                "name another file, or its task with --task"
            )
        yield entry


def _read_file(
    path: Path, task: Task | None, limit: int | None, max_bytes: int | None, *, skip_sizes: bool
) -> Puzzles:
    first, lines = _open(path, max_bytes)
    if text_files.is_csv_header(first):
        return text_files.read_csv(lines, task, limit, skip_sizes=skip_sizes)
    if "," in first.partition("#")[0]:  # no puzzle has a comma, but a comment may
        raise DataError(f"expected a CSV with a column 'question', got {first[:80]!r}")
    return text_files.read_text(lines, task, limit, skip_sizes=skip_sizes)


def _entries_of_file(path: Path, task: Task | None, max_bytes: int | None) -> Iterator[Entry]:
    first, lines = _open(path, max_bytes)
    if not text_files.is_csv_header(first):
        yield from _entries_of_text(lines, task)
        return
    texts = (row["question"] for row in text_files.csv_rows(lines))
    head = list(islice(texts, text_files.CHUNK))
    if task is not None:
        guess.check_task(task, head)
    own = task or guess.by_texts(head)
    for text in chain(head, texts):
        yield _try_encode(text, own)


def _entries_of_text(lines: Iterable[str], task: Task | None) -> Iterator[Entry]:
    stream = iter(lines)
    head = list(islice(stream, text_files.CHUNK))
    own = task or guess.by_lines(head)
    texts = text_files.blocks(chain(head, stream), own)
    some = list(islice(texts, text_files.CHUNK))
    if task is not None:
        guess.check_task(task, some, lambda other: text_files.blocks(head, other))
    for text in chain(some, texts):
        yield _try_encode(text, own)


def _try_encode(text: str, task: Task) -> Entry:
    try:
        return text, task.encode(text)
    except PuzzleError as error:
        return text, error


def _open(path: PathName, max_bytes: int | None) -> tuple[str, Iterator[str]]:
    """The first line and all lines of a file; it is read once, so a pipe works too."""
    lines = text_files.lines(path, max_bytes)
    first = next(lines, "")
    return first, chain([first], lines)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Put the name of the file in front of its errors."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def _locate(path_or_name: PathName, split: str | None, default: str) -> Path:
    """The file or NPY folder of this name, downloaded if it is a dataset."""
    name = os.fspath(path_or_name)
    if os.path.isdir(name):
        return _in_folder(Path(name), split, default)
    if os.path.exists(name):
        return Path(name)
    dataset, _, part = name.rpartition("/")
    for candidate, chosen in ((name, split), (dataset, part)):
        if candidate in (*HUB, *HUB.values()):
            return _download(HUB.get(candidate, candidate), chosen or default)
    known = ", ".join(HUB)
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


def _download(repository: str, split: str) -> Path:
    """One split's CSV from the dataset hub or its cache; needs the extra [hub]."""
    try:
        hub = importlib.import_module("huggingface_hub")
    except ImportError as error:
        raise DataError(
            f"expected the package huggingface_hub to download {repository}, got none; "
            "run: pip install tiltrm[hub]"
        ) from error
    try:
        return Path(hub.hf_hub_download(repository, f"{split}.csv", repo_type="dataset"))
    except Exception as error:  # the hub raises many kinds of errors, also of its HTTP library
        reason = str(error).partition("\n")[0]
        raise DataError(f"expected to download {split} of {repository}, got: {reason}") from error
