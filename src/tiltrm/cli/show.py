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


def exit_code(record: PuzzleRecord) -> int:
    """2 for a bad puzzle, 1 for an answer that breaks the rules, 0 otherwise."""
    if record.error is not None:
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
    verdict = "valid solution" if record.solved_by_rules else "breaks a rule"
    reason = record.decided_by or ""
    counted = COUNTED.get(record.solutions, "")
    return (
        f"{'abstained' if record.abstained else verdict}{counted}; "
        f"confidence {record.confidence:.3f}; {STOPPED.get(reason, reason)}; "
        f"{record.evaluations:,} evaluations; {record.seconds:.2f} s"
    )
