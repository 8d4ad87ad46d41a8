"""The public CSV files: columns question, answer and perhaps source, rating."""

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import torch
from torch import Tensor

from tiltrm.data import encode, guess
from tiltrm.data.puzzles import Puzzles
from tiltrm.errors import DataError
from tiltrm.tasks.base import Task

CHUNK = 10_000  # rows encoded at once: as text they take twenty times the memory


def is_header(line: str) -> bool:
    """Whether the first line of a file makes it a table of puzzles."""
    try:
        return "question" in _names(next(csv.reader([line]), []))
    except csv.Error:
        return False


def _names(header: Sequence[str]) -> list[str]:
    return [name.strip().lower() for name in header]


def rows(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """The rows of a CSV file by the names of its columns; raises DataError on a broken one."""
    reader = csv.reader(lines, strict=True)
    try:
        header = _names(next(reader, []))
        if "question" not in header or len(set(header)) < len(header):
            raise DataError(f"expected a CSV with one column 'question', got {header[:8]}")
        for row in filter(None, reader):  # a blank line is an empty row
            if len(row) != len(header):
                where = f"line {reader.line_num}"
                raise DataError(f"{where}: expected {len(header)} columns, got {len(row)}")
            yield dict(zip(header, row, strict=True))
    except csv.Error as error:
        raise DataError(f"line {reader.line_num}: expected CSV, got: {error}") from error


def read(lines: Iterable[str], task: Task | None = None, limit: int | None = None) -> Puzzles:
    """A CSV file as Puzzles; answers are checked against the rules."""
    source = islice(rows(lines), limit)
    parts: list[Puzzles] = []
    while chunk := list(islice(source, CHUNK)):
        task = task or guess.by_cells(len(chunk[0]["question"]))
        parts.append(_encode(chunk, task, sum(map(len, parts)) + 1))
    if not parts:
        raise DataError("expected at least one puzzle, got none")
    return _join(parts)


def _encode(chunk: Sequence[dict[str, str]], task: Task, first: int) -> Puzzles:
    questions = encode.tokens(task, [row["question"] for row in chunk], first=first)
    answers = None
    if "answer" in chunk[0]:
        texts = [row["answer"] for row in chunk]
        answers = encode.tokens(task, texts, first=first, answer=True)
        encode.check_answers(task, questions, answers, first=first)
    ratings = _ratings(chunk, first) if "rating" in chunk[0] else None
    sources = tuple(row["source"] for row in chunk) if "source" in chunk[0] else None
    return Puzzles(task, questions, answers, ratings, sources)


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
    """Parts of one file: all have the same columns."""
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
