"""Named splits with checksums of their content, and folds of a split."""

import hashlib
from typing import NamedTuple

import torch
from torch import Tensor

from tiltrm.data.puzzles import Puzzles
from tiltrm.errors import DataError, SettingsError


class Split(NamedTuple):
    """The number of puzzles of a named split, and the checksum of their content."""

    rows: int
    sha256: str


SPLITS: dict[str, Split] = {
    "sudoku-extreme/train": Split(
        1000, "6e20ac1bf298f1fb5eb75e17025e5d4b96e5fc9c293061829caca63642af86ee"
    ),
    "sudoku-extreme/val": Split(
        500, "c1a4e3ee19a8de69e06b182987079b4ed02977661b536f72df68d17f4864a752"
    ),
    "sudoku-extreme/test": Split(
        10000, "43e89364b48fc614f4b799f897310a044a5e281fd99b7e1f070ab4626047f385"
    ),
    "sudoku-extreme/extra": Split(
        4500, "f1d7523cbc792c58339488644e9e0b9e70adb27f1fe74109220a766e2eb4681b"
    ),
    "maze-hard/train": Split(
        1000, "2e785b1bfb95603731059e18269f66ef8f69a46c50c10658282795955809adbc"
    ),
    "maze-hard/test": Split(
        1000, "fe7942f5725dfec9e7e290a69728d9661ff84dce1835f99d0ce8d3a3e50c8a00"
    ),
}


def checksum(puzzles: Puzzles) -> str:
    """SHA-256 of the lines 'question,answer' (without answers: 'question'), blanks as '.'.

    It does not depend on the format or compression. For a CSV with the columns source, question,
    answer, rating it is `tail -n +2 FILE | cut -d, -f2,3 | sha256sum`.
    """
    digest = hashlib.sha256()
    columns = (
        [puzzles.questions] if puzzles.answers is None else [puzzles.questions, puzzles.answers]
    )
    for row in zip(*columns, strict=True):
        digest.update(",".join(map(puzzles.task.decode, row)).encode() + b"\n")
    return digest.hexdigest()


def token_checksum(puzzles: Puzzles) -> str:
    """SHA-256 of the tokens, a byte or two each: for sets that would take long to write as text."""
    digest = hashlib.sha256()
    wide = torch.uint8 if puzzles.task.vocabulary <= 256 else torch.int16
    for column in (puzzles.questions, puzzles.answers):
        if column is not None:
            digest.update(column.to("cpu", wide).contiguous().numpy().tobytes())
    return digest.hexdigest()


def verify(puzzles: Puzzles, name: str) -> None:
    """Raise DataError unless these puzzles are the named split, row for row."""
    if name not in SPLITS:
        raise SettingsError(f"expected a split among {', '.join(SPLITS)}, got {name!r}")
    split = SPLITS[name]
    if len(puzzles) != split.rows:
        raise DataError(f"{name}: expected {split.rows} puzzles, got {len(puzzles)}")
    found = checksum(puzzles)
    if found != split.sha256:
        raise DataError(f"{name}: expected content with SHA-256 {split.sha256}, got {found}")


def folds(puzzles: int, count: int = 5) -> list[Tensor]:
    """A disjoint partition of range(puzzles) into folds of nearly equal size (paper, App. A).

    A fold takes every count-th puzzle, so that the order of a file does not skew the folds.
    """
    if not 1 <= count <= puzzles:
        raise SettingsError(f"expected between 1 and {puzzles} folds, got {count}")
    return [torch.arange(first, puzzles, count) for first in range(count)]
