"""Preprocessed folders of HRM and TinyRecursiveModels: dataset.json and NPY arrays.

Token ids are the same as here. Only inputs and labels are read, except for ARC, whose puzzles also
have their numbers (puzzle_identifiers, puzzle_indices): in other tasks an example is a puzzle.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from tiltrm.data import guess
from tiltrm.data.puzzles import Puzzles, check_answers
from tiltrm.data.streams import MAX_BYTES
from tiltrm.errors import DataError
from tiltrm.tasks import STANDARD, Task
from tiltrm.tasks.arc import ARC
from tiltrm.tasks.arc.tokens import LARGEST_ID, id_tokens
from tiltrm.tasks.base import PAD

DESCRIPTION = "dataset.json"
MAX_DESCRIPTION = 10**6  # bytes
IGNORED = -100  # label that PyTorch's losses ignore, besides the folder's own ignore_label_id


def read(
    folder: Path, task: Task | None = None, limit: int | None = None, max_bytes: int | None = None
) -> Puzzles:
    """One split: a folder with dataset.json. Ignored labels are copied from the question."""
    about = _description(folder / DESCRIPTION)
    cells, vocabulary = _whole(about, "seq_len"), _whole(about, "vocab_size")
    if task is None:
        arc = (cells + ARC.id_cells, vocabulary) == (ARC.cells, ARC.vocabulary)
        task = ARC if arc else guess.by_cells(cells)
    id_cells = getattr(task, "id_cells", 0)
    if (cells + id_cells, vocabulary) != (task.cells, task.vocabulary):
        raise DataError(
            f"expected {task.cells - id_cells} cells and {task.vocabulary} ids for {task.name}, "
            f"got {cells} and {vocabulary}{_other_task(cells, vocabulary)}"
        )
    stems = [folder / name for name in _sets(about)]
    most = MAX_BYTES if max_bytes is None else max_bytes
    questions, labels = (
        torch.cat([_tokens(f"{stem}__{what}.npy", cells, limit, most) for stem in stems])[:limit]
        for what in ("inputs", "labels")
    )
    if len(questions) != len(labels) or not len(questions):
        raise DataError(f"expected as many labels as inputs, got {len(labels)}, {len(questions)}")
    ignored = labels == IGNORED
    if "ignore_label_id" in about and about["ignore_label_id"] is not None:
        ignored |= labels == _whole(about, "ignore_label_id")
    if id_cells:
        labels = F.pad(labels.masked_fill(ignored, PAD), (0, id_cells))
        questions = torch.cat((questions, _numbers(stems, len(questions))), 1)
        return _checked(task, questions, None if ignored.all() else labels)
    answers = None if ignored.all() else torch.where(ignored, questions, labels)
    return _checked(task, questions, answers)


def _numbers(stems: Sequence[Path], rows: int) -> Tensor:
    """The puzzle numbers of the first examples, as id cells: (example, 4) int16."""
    found = []
    for stem in stems:
        numbers, starts = (
            _array(f"{stem}__{what}.npy", 1).astype(np.int64)
            for what in ("puzzle_identifiers", "puzzle_indices")
        )
        if len(starts) != len(numbers) + 1 or (np.diff(starts) < 0).any() or starts[0] != 0:
            raise DataError(
                f"{stem}__puzzle_indices.npy: expected {len(numbers) + 1} rising numbers from 0, "
                "one more than puzzle_identifiers, got others"
            )
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() <= LARGEST_ID:
            raise DataError(f"{stem}__puzzle_identifiers.npy: expected puzzle numbers, got others")
        if starts[-1] > MAX_BYTES:
            raise DataError(
                f"{stem}__puzzle_indices.npy: expected fewer examples, got {starts[-1]}"
            )
        found.append(np.repeat(numbers, np.diff(starts)))
    every = np.concatenate(found)[:rows]
    if len(every) != rows:
        raise DataError(f"expected a puzzle number for {rows} inputs, got {len(every)}")
    return torch.stack([id_tokens(number) for number in every.tolist()]).to(torch.int16)


def _other_task(cells: int, vocabulary: int) -> str:
    """Advice for a folder of another standard task."""
    names = [t.name for t in STANDARD if (t.cells, t.vocabulary) == (cells, vocabulary)]
    return f"; add --task {names[0]}" if names else ""


def _checked(task: Task, questions: Tensor, answers: Tensor | None) -> Puzzles:
    for what, tokens in (("inputs", questions), ("labels", answers)):
        if tokens is None:
            continue
        bad = (~task.well_formed(tokens, answer=tokens is answers)).nonzero()
        if len(bad):
            number = int(bad[0]) + 1
            raise DataError(f"{what}: expected {task.name} tokens, got others in row {number}")
    if answers is not None:
        check_answers(task, questions, answers)
        answers = answers.to(torch.uint8)
    return Puzzles(task, questions.to(torch.uint8), answers)


def _description(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as stream:
            found = json.loads(stream.read(MAX_DESCRIPTION))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"expected a readable {DESCRIPTION}, got: {error}") from error
    if not isinstance(found, dict):
        raise DataError(f"expected {DESCRIPTION} to hold an object, got {type(found).__name__}")
    return found


def _whole(about: dict[str, Any], name: str) -> int:
    value = about.get(name)
    if not isinstance(value, int) or abs(value) >= 2**31:
        raise DataError(f"expected a whole number {name!r} in {DESCRIPTION}, got {value!r:.40}")
    return value


def _sets(about: dict[str, Any]) -> list[str]:
    sets = about.get("sets", ["all"])
    if not isinstance(sets, list) or not sets or not all(map(_is_plain, sets)):
        raise DataError(f"expected 'sets' in {DESCRIPTION} to be names, got {sets!r:.80}")
    return sets


def _is_plain(name: object) -> bool:
    """A file name that stays in its folder."""
    return isinstance(name, str) and Path(name).name == name


def _array(path: str, dimensions: int) -> np.ndarray[Any, Any]:
    """An array of whole numbers, mapped into memory."""
    try:
        # Mapped, not read: a header that promises more than the file holds allocates nothing.
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # numpy's header parser raises many kinds of errors
        raise DataError(f"expected an NPY array, got: {error}") from error
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "iu":
        raise DataError(f"{path}: expected an NPY array of integers, got another kind")
    if dimensions == 1 and found.ndim != 1:
        raise DataError(f"{path}: expected an array of one dimension, got {found.shape}")
    return found


def _tokens(path: str, cells: int, limit: int | None, max_bytes: int) -> Tensor:
    """An array of ids: (puzzle, cell) int16."""
    found = _array(path, 2)
    if found.ndim != 2 or found.shape[1] != cells or not len(found):
        raise DataError(f"{path}: expected an array of (puzzle, {cells}), got {found.shape}")
    part = found[:limit]
    if part.size > max_bytes:
        raise DataError(
            f"{path}: expected at most {max_bytes:,} numbers, got {part.size:,}; split the file, "
            "or allow more with --max-bytes"
        )
    low, high = part.min(), part.max()
    if low < -(2**15) or high >= 2**15:
        raise DataError(f"{path}: expected token ids, got numbers from {low} to {high}")
    return torch.from_numpy(part.astype(np.int16))
