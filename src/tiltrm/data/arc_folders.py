"""ARC tasks, and their reading from the preprocessed folders of TinyRecursiveModels and HRM.

Such a folder has identifiers.json, the names of the puzzles by number, and the splits train and
test with their NPY arrays. Augmented puzzles are left out here; their rows are puzzles of `arc` for
`tiltrm.data.read`. Proved by tests/data/test_arc_folders.py.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import torch

from tiltrm.data import npy
from tiltrm.data.puzzles import Puzzles
from tiltrm.errors import DataError
from tiltrm.tasks.arc import ARC
from tiltrm.tasks.arc.augmentation import parse_name
from tiltrm.tasks.arc.grids import ColourGrid

IDENTIFIERS = "identifiers.json"
SPLITS = ("train", "test")
MAX_IDENTIFIERS = 1 << 29  # bytes


@dataclass(frozen=True)
class ArcTask:
    """One ARC task: demonstrations, test inputs, and their outputs where they are known."""

    name: str
    demonstrations: tuple[tuple[ColourGrid, ColourGrid], ...]
    tests: tuple[ColourGrid, ...]
    outputs: tuple[ColourGrid, ...] | None = None

    @property
    def grids(self) -> tuple[ColourGrid, ...]:
        """All its grids."""
        pairs = (grid for pair in self.demonstrations for grid in pair)
        return (*pairs, *self.tests, *(self.outputs or ()))


def is_arc_folder(folder: Path) -> bool:
    """Whether a folder has the names and the splits of preprocessed ARC tasks."""
    files = (IDENTIFIERS, *(f"{split}/{npy.DESCRIPTION}" for split in SPLITS))
    return all((folder / file).is_file() for file in files)


def read_npy_tasks(folder: Path, max_bytes: int | None = None) -> list[ArcTask]:
    """The tasks of the test split, with their demonstrations; DataError if they do not fit."""
    names = _names(folder / IDENTIFIERS)
    plain = {number for number, name in enumerate(names) if not parse_name(name)[1].changes}
    pairs: dict[str, dict[int, list[tuple[ColourGrid, ColourGrid | None]]]] = {}
    for split in SPLITS:
        found = npy.read(folder / split, ARC, None, max_bytes)
        pairs[split] = _pairs(found, plain)
    tasks = []
    for number, asked in pairs["test"].items():
        if number >= len(names):
            raise DataError(
                f"{folder}: expected puzzle numbers below {len(names):,}, the names in "
                f"{IDENTIFIERS}, got {number}"
            )
        shown = [(grid, out) for grid, out in pairs["train"].get(number, ()) if out is not None]
        if not shown:
            raise DataError(
                f"{folder}: task {names[number][:80]!r}: expected at least one demonstration in "
                "'train', got none"
            )
        outputs = tuple(out for _, out in asked if out is not None)
        tasks.append(
            ArcTask(names[number], tuple(shown), tuple(grid for grid, _ in asked),
                    outputs if len(outputs) == len(asked) else None)
        )  # fmt: skip
    return tasks


def _names(path: Path) -> list[str]:
    try:
        with path.open("rb") as stream:
            found = json.loads(stream.read(MAX_IDENTIFIERS))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: expected a JSON list of names, got: {error}") from error
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise DataError(f"{path}: expected a JSON list of names, got something else")
    return found


def _pairs(
    puzzles: Puzzles, plain: set[int]
) -> dict[int, list[tuple[ColourGrid, ColourGrid | None]]]:
    """Inputs and outputs by puzzle number, for the puzzles without augmentation."""
    numbers = ARC.task_numbers(puzzles.questions)
    rows = torch.isin(numbers, torch.tensor(sorted(plain))).nonzero().flatten()
    found: dict[int, list[tuple[ColourGrid, ColourGrid | None]]] = {}
    for row in rows.tolist():
        question = puzzles.questions[row]
        grid = ARC.question_grid(question)
        assert grid is not None  # npy.read has checked the boards
        answer = None if puzzles.answers is None else puzzles.answers[row]
        output = None if answer is None else ARC.answer_grid(question, answer)
        found.setdefault(int(numbers[row]), []).append((grid, output))
    return found
