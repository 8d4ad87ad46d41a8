"""Files of generated puzzles: CSV with type, width, height, question, answer and seed.

A file is written in the order of the seeds and can be continued; the same seeds give the same
file on any number of processes. Puzzles that occurred before, and those of a file that is kept
for evaluation, are left out under all eight symmetries; Sudokus, which have other symmetries, are
left out where they are the same. The command is

    tiltrm data --task tapa --generate 20000 --out tapa.csv --without golden.csv
"""

import csv
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from tiltrm.errors import DataError
from tiltrm.tasks.pencil import address
from tiltrm.tasks.pencil.clauses import cp_model
from tiltrm.tasks.pencil.generate import generate
from tiltrm.tasks.pencil.puzzle import SUDOKU, Kind
from tiltrm.tasks.pencil.symmetry import Form, canonical
from tiltrm.tasks.pencil.tokens import encode, encode_answer
from tiltrm.tasks.sudoku import SUDOKU as SUDOKU_TASK

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


def make_row(kinds: Sequence[Kind], seed: int) -> PuzzleRow:
    """The puzzle of a seed; of several types in turn."""
    own, number = divmod(seed, len(kinds))
    kind = kinds[number]
    if kind == SUDOKU:
        question, filled = (SUDOKU_TASK.decode(each) for each in SUDOKU_TASK.generate(own))
        return PuzzleRow(kind.name, 9, 9, address.write_sudoku(question), filled, seed)
    puzzle, marks = generate(kind, own)
    sign = "o" if kind.name == "lightup" else "#"
    cells = "".join(sign if mark else "." for mark in marks)
    starts = range(0, puzzle.cells, puzzle.width)
    answer = "/".join(cells[at : at + puzzle.width] for at in starts)
    return PuzzleRow(kind.name, puzzle.width, puzzle.height, address.write(puzzle), answer, seed)


def forms(path: Path) -> set[tuple[Kind, Form]]:
    """The puzzles of a CSV file with a column `question`, each the same under all symmetries."""
    return {_form(row["question"]) for row in _rows(path)}


def _form(question: str) -> tuple[Kind, Form]:
    puzzle = address.read(question)
    if puzzle.kind == SUDOKU:  # symmetries of the square are not all that it has
        return SUDOKU, (puzzle.width, puzzle.height, puzzle.clues, ())
    return canonical(puzzle)


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
    kinds: Sequence[Kind], path: Path, count: int, *, first: int = 0, without: Iterable[Path] = (),
    workers: int | None = None, progress: Callable[[int], None] = lambda done: None,
) -> int:  # fmt: skip
    """Continue a file until it holds `count` puzzles; returns how many were left out.

    kinds: the types, in turn. first: the first seed. progress: called with the puzzles in the file
    at the beginning and after each of them.
    """
    cp_model()  # SettingsError where OR-Tools is missing, before there is a file
    taken = set().union(*(forms(other) for other in without))
    done, seed = _continue(path, first, kinds)
    taken |= forms(path) if done else set()
    left_out = 0
    progress(done)
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if not done:
            writer.writerow(COLUMNS)
        for row in _made(kinds, seed, workers or os.cpu_count() or 1) if done < count else ():
            form = _form(row.question)
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


def _continue(path: Path, first: int, kinds: Sequence[Kind]) -> tuple[int, int]:
    """Whole rows in a file and the next seed; a row that was cut off is removed.

    DataError where the file is not one of these, or of other types.
    """
    if not path.exists():
        return 0, first
    text = path.read_bytes()
    header = ",".join(COLUMNS).encode()
    if not header.startswith(text[: len(header)]):
        raise DataError(
            f"{path}: expected a file of generated puzzles to continue, got another; name a new one"
        )
    whole = text[: text.rfind(b"\n") + 1]
    if whole != text:
        path.write_bytes(whole)
    if not whole:
        return 0, first
    rows = list(_rows(path))
    wrong = {row["type"] for row in rows} - {kind.name for kind in kinds}
    if wrong or any(not str(row["seed"]).isdigit() for row in rows):
        wanted = ", ".join(kind.name for kind in kinds)
        raise DataError(
            f"{path}: expected puzzles of {wanted} with their seeds to continue, got "
            f"{', '.join(sorted(map(str, wrong))) or 'others'}; name a new file"
        )
    return len(rows), int(rows[-1]["seed"]) + 1 if rows else first


def _made(kinds: Sequence[Kind], seed: int, workers: int) -> Iterator[PuzzleRow]:
    """Rows in the order of their seeds, without an end."""
    if workers == 1:
        while True:
            yield make_row(kinds, seed)
            seed += 1
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(make_row, kinds, seed + n) for n in range(AHEAD * workers)]
        seed += len(waiting)
        try:
            while True:
                yield waiting.pop(0).result()
                waiting.append(pool.submit(make_row, kinds, seed))
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
