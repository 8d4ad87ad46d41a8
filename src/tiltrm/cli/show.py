"""A solved puzzle for people: the grid and one line; or for programs: an object a line."""

import os
import sys

from tiltrm.explore.adaptive import UNDECIDED
from tiltrm.solver import Solved
from tiltrm.tasks import Task

FINE, UNSOLVED, BAD = 0, 1, 2


def exit_code(solved: Solved) -> int:
    """2 for a bad puzzle, 1 for an answer that breaks the rules, 0 otherwise."""
    if solved.error is not None:
        return BAD
    return UNSOLVED if solved.solved_by_rules is False else FINE


class Printer:
    """Prints one record after the other, each at once."""

    def __init__(self, task: Task, *, as_json: bool, colour: bool) -> None:
        self.task, self.as_json = task, as_json
        self.colour = colour and sys.stdout.isatty() and not os.environ.get("NO_COLOR")

    def __call__(self, solved: Solved, number: int) -> None:
        """`number` names a bad puzzle, counted from 1."""
        if self.as_json:
            print(solved.as_json(), flush=True)
        elif solved.grid is None:
            print(f"tiltrm solve: puzzle {number}: {solved.error}", file=sys.stderr)
        else:
            grid = self.task.render(*solved.grid, colour=self.colour)
            print(f"{grid}\n{summary(solved)}", flush=True)


def summary(solved: Solved) -> str:
    """One line: solved or not, how sure, who decided, and what it cost."""
    verdict = "solved by the rules" if solved.solved_by_rules else "not solved by the rules"
    who = f"decided by {solved.decided_by}"
    if solved.decided_by == UNDECIDED:
        who = "ran to the end of its budget"
    return (
        f"{'abstained' if solved.abstained else verdict}; confidence {solved.confidence:.3f}; "
        f"{who}; {solved.evaluations:,} evaluations; {solved.seconds:.2f} s"
    )
