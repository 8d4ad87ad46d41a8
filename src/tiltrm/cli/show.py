"""A solved puzzle for people (the grid and one line) or for programs (one JSON object a line)."""

import os
import re
import shutil
import sys

from torch import Tensor

from tiltrm.solving.solution import STOPPED, PuzzleRecord
from tiltrm.tasks import Task

FINE, UNSOLVED, BAD = 0, 1, 2
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
COUNTED: dict[int | None, str] = {
    0: " (the puzzle has no solution)", 2: " (the puzzle has several solutions)",
}  # fmt: skip
SINGLE = (None, 1)  # solutions of a puzzle that was not counted, or that is as it should be


def exit_code(record: PuzzleRecord) -> int:
    """2 for a bad puzzle, 1 for an answer that breaks the rules, 0 otherwise.

    A puzzle with no solution or with several is a bad one.
    """
    if record.error is not None or record.solutions not in SINGLE:
        return BAD
    return UNSOLVED if record.solved_by_rules is False else FINE


class Printer:
    """Prints one record after the other, each at once."""

    def __init__(self, task: Task, *, as_json: bool, colour: bool) -> None:
        self.task, self.as_json = task, as_json
        self.colour = colour and sys.stdout.isatty() and not os.environ.get("NO_COLOR")

    def __call__(self, record: PuzzleRecord, number: int) -> None:
        """`number` names a bad puzzle, counted from 1."""
        if self.as_json:
            print(record.as_json(), flush=True)
        elif record.grid is None:
            print(f"tiltrm solve: puzzle {number}: {record.error}", file=sys.stderr)
        else:
            grid = rendered(self.task, *record.grid, colour=self.colour)
            print(f"{grid}\n{summary(record)}", flush=True)


def rendered(task: Task, *cells: Tensor | None, colour: bool) -> str:
    """The grid for this terminal: in the task's narrower form where the usual one would wrap."""
    text = task.render(*cells, colour=colour)  # type: ignore[arg-type]
    columns = shutil.get_terminal_size().columns
    widest = max(len(COLOURS.sub("", line)) for line in text.split("\n"))
    if not sys.stdout.isatty() or widest <= columns:
        return text
    return task.render(*cells, colour=colour, width=columns)  # type: ignore[arg-type]


def summary(record: PuzzleRecord) -> str:
    """One line: valid or not, how sure, why it stopped, and what it cost."""
    reason = record.decided_by or ""
    return (
        f"{_verdict(record)}; confidence {record.confidence:.3f}; {STOPPED.get(reason, reason)}; "
        f"{record.evaluations:,} evaluations; {record.seconds:.2f} s"
    )


def _verdict(record: PuzzleRecord) -> str:
    if record.abstained:
        return f"abstained{COUNTED.get(record.solutions, '')}"
    if record.solved_by_rules is None:
        return "an answer, which no rules can check"
    if record.solved_by_rules:
        return "valid solution" + (", one of several" if record.solutions == 2 else "")
    counted = COUNTED.get(record.solutions, "")
    return f"no valid solution found: the answer breaks a rule{counted}"
