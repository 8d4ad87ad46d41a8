"""Text and CSV files of puzzles, plain or gzip; every failure is a DataError.

A CSV file has the columns question, answer and perhaps source, rating. A text file has one puzzle
a line, or one row of cells a line.
"""

import csv
import io
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice

import torch
from torch import Tensor

from tiltrm.data import guess
from tiltrm.data.puzzles import Puzzles, check_answers
from tiltrm.data.streams import PathName, open_bounded
from tiltrm.errors import DataError, PuzzleError, SizeError
from tiltrm.tasks.base import Task

MAX_LINE = 10**6  # characters: no puzzle is longer, and a bomb has no line ends
CHUNK = 10_000  # rows encoded at once: as text they take twenty times the memory


def lines(path: PathName, max_bytes: int | None = None) -> Iterator[str]:
    """The lines of a UTF-8 file with their line ends, decompressed if it is gzip.

    Errors do not name the file; the caller adds its name.
    Proved by tests/data/test_hostile_files.py.
    """
    with open_bounded(path, max_bytes) as stream:
        yield from _text_lines(stream)


def _text_lines(stream: io.BufferedReader) -> Iterator[str]:
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    while line := text.readline(MAX_LINE + 1):
        if len(line) > MAX_LINE:
            raise DataError(f"expected lines of at most {MAX_LINE} characters, got a longer one")
        yield line


def blocks(lines: Iterable[str], task: Task) -> Iterator[str]:
    """The texts of the puzzles in a text file, good or bad, each for `Task.encode`.

    A line with more than two rows of cells is a whole puzzle. Shorter lines are rows of a grid,
    which ends with its last row, at an empty line, or before a whole puzzle.
    """
    grid: list[str] = []
    for line in map(task.clean, lines):
        width = task.width(line)
        is_whole = width > 2 * task.side
        if grid and (is_whole or not line):
            yield "\n".join(grid)
            grid = []
        if is_whole:
            yield line
        elif width:
            grid.append(line)
            if len(grid) == task.side:
                yield "\n".join(grid)
                grid = []
    if grid:
        yield "\n".join(grid)


def read_text(
    lines: Iterable[str], task: Task | None = None, limit: int | None = None, *,
    skip_sizes: bool = False,
) -> Puzzles:  # fmt: skip
    """A text file as Puzzles; the first bad puzzle is an error.

    The text is never in memory as a whole.
    """
    stream = iter(lines)
    head = list(islice(stream, CHUNK))
    own = task or guess.by_lines(head)
    texts = islice(blocks(chain(head, stream), own), limit)
    parts: list[Tensor] = []
    skipped = seen = 0
    while chunk := list(islice(texts, CHUNK)):
        if task is not None and not seen:
            guess.check_task(task, chunk, lambda other: blocks(head, other))
        seen += len(chunk)
        held = [text for text in chunk if not (skip_sizes and _of_other_size(own, text))]
        skipped += len(chunk) - len(held)
        parts.append(encode_texts(own, held, first=seen - len(chunk) + 1))
    if not sum(map(len, parts)):
        if task is not None:
            guess.check_task(task, [], lambda other: blocks(head, other))
        raise DataError("expected at least one puzzle, got none")
    return Puzzles(own, torch.cat(parts), skipped=skipped)


def is_csv_header(line: str) -> bool:
    """Whether the first line of a file makes it a CSV file of puzzles."""
    try:
        return "question" in _column_names(next(csv.reader([line]), []))
    except csv.Error:
        return False


def _column_names(header: Sequence[str]) -> list[str]:
    return [name.strip().lower() for name in header]


def csv_rows(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """The rows of a CSV file by column name; DataError for a malformed row."""
    reader = csv.reader(lines, strict=True)
    try:
        header = _column_names(next(reader, []))
        if "question" not in header or len(set(header)) < len(header):
            raise DataError(f"expected a CSV with one column 'question', got {header[:8]}")
        for row in filter(None, reader):  # a blank line is an empty row
            if len(row) != len(header):
                where = f"line {reader.line_num}"
                raise DataError(f"{where}: expected {len(header)} columns, got {len(row)}")
            yield dict(zip(header, row, strict=True))
    except csv.Error as error:
        raise DataError(f"line {reader.line_num}: expected CSV, got: {error}") from error


def _of_other_size(task: Task, text: str) -> bool:
    """Whether a puzzle can be read but has a size that the task does not hold."""
    if task not in guess.ADDRESSED:
        return False
    try:
        task.encode(text)
    except SizeError:
        return True
    except PuzzleError:
        return False
    return False


def read_csv(
    lines: Iterable[str], task: Task | None = None, limit: int | None = None, *,
    skip_sizes: bool = False,
) -> Puzzles:  # fmt: skip
    """A CSV file as Puzzles; answers are checked against the rules."""
    source = islice(csv_rows(lines), limit)
    parts: list[Puzzles] = []
    skipped = seen = 0
    while chunk := list(islice(source, CHUNK)):
        questions = [row["question"] for row in chunk]
        if task is None:
            task = guess.by_questions(questions)
        elif not seen:
            guess.check_task(task, questions)
        seen += len(chunk)
        held = [row for row in chunk if not (skip_sizes and _of_other_size(task, row["question"]))]
        skipped += len(chunk) - len(held)
        if held:
            parts.append(_encode_rows(held, task, seen - len(chunk) + 1))
    if not parts:
        raise DataError("expected at least one puzzle, got none")
    return replace(_join(parts), skipped=skipped)


def _encode_rows(chunk: Sequence[dict[str, str]], task: Task, first: int) -> Puzzles:
    questions = encode_texts(task, [row["question"] for row in chunk], first=first)
    answers = None
    if "answer" in chunk[0]:
        texts = [row["answer"] for row in chunk]
        answers = encode_texts(task, texts, first=first, answer=True)
        check_answers(task, questions, answers, first=first)
    ratings = _ratings(chunk, first) if "rating" in chunk[0] else None
    sources = tuple(row["source"] for row in chunk) if "source" in chunk[0] else None
    return Puzzles(task, questions, answers, ratings, sources)


def encode_texts(
    task: Task, texts: Sequence[str], *, first: int = 1, answer: bool = False
) -> Tensor:
    """(puzzle, cell) uint8; DataError that names the first bad puzzle, counted from `first`."""
    try:
        return task.encode_all(texts, answer=answer)
    except PuzzleError:
        for number, text in enumerate(texts, first):
            try:
                task.encode(text, answer=answer)
            except PuzzleError as error:
                what = "answer of puzzle" if answer else "puzzle"
                raise DataError(f"{what} {number}: {error}") from error
        raise


def _ratings(chunk: Sequence[dict[str, str]], first: int) -> Tensor:
    numbers = []
    for number, row in enumerate(chunk, first):
        try:
            numbers.append(float(row["rating"]))
        except ValueError:
            numbers.append(math.nan)
        if not math.isfinite(numbers[-1]):
            got = row["rating"][:40]
            raise DataError(f"rating of puzzle {number}: expected a number, got {got!r}")
    return torch.tensor(numbers, dtype=torch.float64)


def _join(parts: Sequence[Puzzles]) -> Puzzles:
    """Parts of one file, which have the same columns."""
    answers = [part.answers for part in parts if part.answers is not None]
    ratings = [part.ratings for part in parts if part.ratings is not None]
    sources = [part.sources for part in parts if part.sources is not None]
    return Puzzles(
        parts[0].task,
        torch.cat([part.questions for part in parts]),
        torch.cat(answers) if answers else None,
        torch.cat(ratings) if ratings else None,
        tuple(name for part in sources for name in part) if sources else None,
    )
