"""Readers of puzzles, and the named splits."""

from tiltrm.data.puzzles import Puzzles
from tiltrm.data.reading import read, read_lines, stream_lines
from tiltrm.data.splits import SPLITS, Split, checksum, folds, verify

__all__ = [
    "SPLITS",
    "Puzzles",
    "Split",
    "checksum",
    "folds",
    "read",
    "read_lines",
    "stream_lines",
    "verify",
]
