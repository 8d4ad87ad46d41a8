"""The submission file that Kaggle's ARC competitions take: two attempts for each test input.

{"task": [{"attempt_1": ROWS, "attempt_2": ROWS}, ...], ...}, one object for every test input in
its order. Proved by tests/data/test_arc_submission.py.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tiltrm.data.arc_files import ArcTask, load_json
from tiltrm.errors import DataError, PuzzleError
from tiltrm.folders import write_whole
from tiltrm.tasks.arc.grids import ColourGrid, check_grid

Attempts = tuple[ColourGrid, ...]  # for one test input, the first counts for pass@1
Submission = Mapping[str, Sequence[Attempts]]  # by task, one entry a test input
KEYS = ("attempt_1", "attempt_2")


def write_submission(path: Path, found: Submission) -> None:
    """Write the file whole or not at all; DataError if that fails."""
    content = {
        name: [dict(zip(KEYS, attempts, strict=True)) for attempts in inputs]
        for name, inputs in found.items()
    }
    try:
        write_whole(path, json.dumps(content) + "\n")
    except OSError as error:
        raise DataError(f"{path}: expected to write there, got: {error.strerror}") from error


def read_submission(path: Path) -> dict[str, list[Attempts]]:
    """The attempts of a submission file; DataError if it is none."""
    found = {}
    for name, inputs in load_json(path).items():
        if not isinstance(inputs, list) or not inputs:
            raise DataError(
                f"{path}: task {name[:80]!r}: expected a list of attempts, got {inputs!r:.60}"
            )
        found[name] = [_attempts(path, name, number, one) for number, one in enumerate(inputs, 1)]
    return found


def _attempts(path: Path, name: str, number: int, one: object) -> Attempts:
    where = f"{path}: task {name[:80]!r}, test {number}"
    if not isinstance(one, Mapping) or not set(KEYS) <= set(one):
        raise DataError(f"{where}: expected {' and '.join(KEYS)}, got {one!r:.60}")
    try:
        return tuple(check_grid(one[key], key) for key in KEYS)
    except PuzzleError as error:
        raise DataError(f"{where}: {error}") from error


class Scores(NamedTuple):
    """Whether each task is right: with its first attempts, and with either."""

    first: dict[str, bool]
    either: dict[str, bool]


def score(tasks: Sequence[ArcTask], found: Submission) -> Scores:
    """pass@1 and pass@2 of every task whose outputs are known: all of its test inputs are right.

    A task that the submission lacks is wrong.
    """
    scores = Scores({}, {})
    for task in tasks:
        if task.outputs is None:
            continue
        given = found.get(task.name, ())
        pairs = list(zip(task.outputs, given, strict=False))
        whole = len(given) == len(task.outputs)
        scores.first[task.name] = whole and all(right == own[0] for right, own in pairs)
        scores.either[task.name] = whole and all(right in own[:2] for right, own in pairs)
    return scores
