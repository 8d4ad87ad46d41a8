"""Files of generated puzzles: CSV with type, width, height, question, answer and seed.

A file is written in the order of the seeds and can be continued; the same seeds give the same
file on any number of processes. Puzzles that occurred before, and those of a file that is kept
for evaluation, are left out under all eight symmetries.

    python -m tiltrm.tasks.pencil.dataset tapa --count 20000 --out tapa.csv --without golden.csv
"""

import argparse
import csv
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from tiltrm.errors import DataError, TiltrmError
from tiltrm.tasks.pencil import address
from tiltrm.tasks.pencil.generate import generate
from tiltrm.tasks.pencil.puzzle import SUDOKU, Kind, kind_of
from tiltrm.tasks.pencil.symmetry import Form, canonical
from tiltrm.tasks.pencil.tokens import encode, encode_answer

COLUMNS = ("type", "width", "height", "question", "answer", "seed")
AHEAD = 64  # puzzles in work for each process, so that none waits for a slow one


class PuzzleRow(NamedTuple):
    """A line of the file; the answer as rows parted by '/', 'o' or '#' for a marked cell."""

    type: str
    width: int
    height: int
    question: str
    answer: str
    seed: int


def make_row(kind: Kind, seed: int) -> PuzzleRow:
    """The puzzle of a seed."""
    puzzle, marks = generate(kind, seed)
    sign = "o" if kind.name == "lightup" else "#"
    cells = "".join(sign if mark else "." for mark in marks)
    starts = range(0, puzzle.cells, puzzle.width)
    answer = "/".join(cells[at : at + puzzle.width] for at in starts)
    return PuzzleRow(kind.name, puzzle.width, puzzle.height, address.write(puzzle), answer, seed)


def forms(path: Path) -> set[tuple[Kind, Form]]:
    """The puzzles of a CSV file with a column `question`, each the same under all symmetries.

    Sudokus are left out: their symmetries are others.
    """
    puzzles = (address.read(row["question"]) for row in _rows(path))
    return {canonical(puzzle) for puzzle in puzzles if puzzle.kind != SUDOKU}


def _rows(path: Path) -> Iterator[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            if "question" not in (reader.fieldnames or ()):
                raise DataError(f"{path}: expected a column 'question', got {reader.fieldnames}")
            yield from reader
    except OSError as error:
        raise DataError(f"{path}: expected a CSV file, got: {error.strerror}") from error


def write(
    kind: Kind, path: Path, count: int, *, first: int = 0, without: Iterable[Path] = (),
    workers: int | None = None, progress: Callable[[int], None] = lambda done: None,
) -> int:  # fmt: skip
    """Continue a file until it holds `count` puzzles; returns how many were left out.

    first: the first seed. progress: called with the puzzles in the file after each of them.
    """
    taken = set().union(*(forms(other) for other in without))
    done, seed = _continue(path, first)
    taken |= forms(path) if done else set()
    left_out = 0
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if not done:
            writer.writerow(COLUMNS)
        for row in _made(kind, seed, workers or os.cpu_count() or 1) if done < count else ():
            form = canonical(address.read(row.question))
            if form in taken:
                left_out += 1
                continue
            taken.add(form)
            writer.writerow(row)
            file.flush()
            done += 1
            progress(done)
            if done >= count:
                break
    return left_out


def _continue(path: Path, first: int) -> tuple[int, int]:
    """Whole rows in a file and the next seed; a row that was cut off is removed."""
    if not path.exists():
        return 0, first
    text = path.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    if whole != text:
        path.write_bytes(whole)
    if not whole:
        return 0, first
    rows = list(_rows(path))
    return len(rows), int(rows[-1]["seed"]) + 1 if rows else first


def _made(kind: Kind, seed: int, workers: int) -> Iterator[PuzzleRow]:
    """Rows in the order of their seeds, without an end."""
    if workers == 1:
        while True:
            yield make_row(kind, seed)
            seed += 1
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(make_row, kind, seed + n) for n in range(AHEAD * workers)]
        seed += len(waiting)
        try:
            while True:
                yield waiting.pop(0).result()
                waiting.append(pool.submit(make_row, kind, seed))
                seed += 1
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def read(path: Path, limit: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Questions and answers (puzzle, cell) uint8, and the numbers of their types (puzzle,)."""
    questions, answers, numbers = [], [], []
    for row in islice(_rows(path), limit):
        puzzle = address.read(row["question"])
        cells = row["answer"].replace("/", "")
        if len(cells) != puzzle.cells:
            raise DataError(f"{path}: expected an answer of {puzzle.cells} cells, got {len(cells)}")
        marks = [each in "#o" for each in cells]
        questions.append(encode(puzzle))
        answers.append(encode_answer(puzzle.kind, marks, puzzle.width, puzzle.height))
        numbers.append(puzzle.kind.number)
    if not questions:
        raise DataError(f"{path}: expected at least one puzzle, got none")
    return torch.stack(questions), torch.stack(answers), torch.tensor(numbers)


def main() -> None:
    """The command of the docstring."""
    parser = argparse.ArgumentParser(description="Generate a file of pencil puzzles.")
    parser.add_argument("type", help="lightup, nurikabe, heyawake or tapa")
    parser.add_argument("--count", type=int, required=True, help="puzzles in the finished file")
    parser.add_argument("--out", type=Path, required=True, help="CSV file, continued if it exists")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--without", type=Path, nargs="*", default=(), help="files to leave out")
    parser.add_argument("--workers", type=int, help="processes; all cores unless given")
    given = parser.parse_args()
    began = time.monotonic()

    def progress(done: int) -> None:
        if done % 20 == 0 or done == given.count:
            seconds = time.monotonic() - began
            print(f"\r{done}/{given.count} puzzles, {seconds:.0f} s", end="", file=sys.stderr)

    try:
        left_out = write(
            kind_of(given.type), given.out, given.count, first=given.first,
            without=given.without, workers=given.workers, progress=progress,
        )  # fmt: skip
    except TiltrmError as error:
        raise SystemExit(f"{error}") from error
    print(f"\n{left_out} puzzles left out", file=sys.stderr)


if __name__ == "__main__":
    main()
