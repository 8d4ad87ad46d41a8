"""The results of `solve`: a Solution for programs and notebooks, a PuzzleRecord per puzzle."""

import html
import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.explore.result import SearchResult
from tiltrm.explore.search import NOT_DECIDED, TIMED_OUT, UNDECIDED
from tiltrm.solving.risk import trust
from tiltrm.tasks import Task
from tiltrm.tasks.arc import Arc, MiniArc
from tiltrm.tasks.arc.draw import NO_RECTANGLE, PALETTE
from tiltrm.tasks.published import (
    address_of,
    answer_text,
    has_rules,
    keeps_rules,
    on_board,
    type_of,
)

KEYS = (  # of the JSON object, in this order
    "puzzle", "answer", "solved_by_rules", "confidence", "entropy", "halt_probability",
    "evaluations", "seconds", "abstained", "error", "decided_by", "solutions", "task", "address",
)  # fmt: skip
DIGITS = 6  # of the numbers in JSON
SHOWN = 6  # puzzles that a notebook shows
STOPPED = {
    "halting": "stopped by the halting head",
    "agreement": "stopped by agreement of the particles",
    "rules": "stopped at a valid solution",
    UNDECIDED: "not decided within its steps",
    TIMED_OUT: "not decided within its time",
}


@dataclass(frozen=True, repr=False)
class Solution(SearchResult):
    """The answers, how far to trust them, why each puzzle stopped, and what it cost."""

    puzzles: Tensor | None = field(default=None, compare=False)  # (puzzle, cell)
    task: Task | None = field(default=None, compare=False)

    def __len__(self) -> int:
        return len(self.answers)

    def __repr__(self) -> str:
        if len(self) == 1:
            return f"Solution({self.describe(0)})"
        reasons = sorted(set(self.decided_by), key=self.decided_by.count, reverse=True)
        counted = ", ".join(f"{self.decided_by.count(name)} {STOPPED[name]}" for name in reasons)
        return (
            f"Solution({len(self)} puzzles: {counted}; mean confidence "
            f"{float(self.confidence.mean()):.3f}; "
            f"{float(self.evaluations.double().mean()):,.1f} evaluations a puzzle)"
        )

    def describe(self, row: int) -> str:
        """One line on the puzzle at `row`: valid or not, how sure, why it stopped, its cost."""
        return (
            f"{self._validity(row)}confidence {float(self.confidence[row]):.3f}; "
            f"{STOPPED.get(self.decided_by[row], self.decided_by[row])}; "
            f"{int(self.evaluations[row]):,} evaluations"
        )

    def _validity(self, row: int) -> str:
        if bool(self.degenerate[row]):
            return "abstained; "
        if self.task is None or self.puzzles is None or not has_rules(self.task):
            return ""
        valid = bool(self.task.is_solved(self.puzzles[row], self.answers[row]))
        return "valid solution; " if valid else "breaks a rule; "

    def _repr_html_(self) -> str:
        """The grids with their doubt, for a notebook."""
        if self.task is None or self.puzzles is None:
            return f"<pre>{html.escape(repr(self))}</pre>"
        shown = [
            '<figure style="display:inline-block;max-width:22em;margin:.5em">'
            + self.task.picture(self.puzzles[row], self.answers[row], self.cell_confidence[row])
            + f"<figcaption>{html.escape(self.describe(row))}</figcaption></figure>"
            for row in range(min(len(self), SHOWN))
        ]
        more = f"<p>and {len(self) - SHOWN} more</p>" if len(self) > SHOWN else ""
        return "".join(shown) + more

    def plot(self, rows: int = 1) -> Any:
        """A matplotlib figure of the first puzzles: answers, shaded by doubt in each cell."""
        if self.task is None:
            raise SettingsError("plot needs a solution whose task is known; pass task= to solve")
        try:
            from matplotlib import pyplot
        except ModuleNotFoundError as error:
            raise SettingsError(
                "plot needs matplotlib, which is not here; pip install 'tiltrm[report]'"
            ) from error
        count, side = min(rows, len(self)), self.task.side
        figure, axes = pyplot.subplots(1, count, figsize=(4 * count, 4.4), squeeze=False)
        for row, panel in enumerate(axes[0]):
            panel.set(xticks=[], yticks=[])
            panel.set_title(self.describe(row).replace("; ", "\n"), fontsize=8)
            if isinstance(self.task, MiniArc | Arc):
                self._plot_colours(panel, self.task, row)
                continue
            doubt = 1.0 - self.cell_confidence[row].view(-1, side)
            panel.imshow(doubt.numpy(), cmap="Oranges", vmin=0.0, vmax=1.0)
            puzzle = self.answers[row] if self.puzzles is None else self.puzzles[row]
            text = answer_text(self.task, puzzle, self.answers[row])
            cells = on_board(self.task, puzzle).nonzero().flatten().tolist()
            for cell, character in zip(cells, text, strict=True):
                panel.text(cell % side, cell // side, character, ha="center", va="center")
        return figure

    def _plot_colours(self, panel: Any, task: MiniArc | Arc, row: int) -> None:
        """The grid of an ARC answer in its colours."""
        from matplotlib.colors import ListedColormap

        puzzle = self.answers[row] if self.puzzles is None else self.puzzles[row]
        grid = task.answer_grid(puzzle, self.answers[row])
        if grid is None:
            panel.text(0.5, 0.5, NO_RECTANGLE, ha="center", va="center")
        else:
            panel.imshow(grid, cmap=ListedColormap(PALETTE), vmin=-0.5, vmax=9.5)


class Cells(NamedTuple):
    """The arguments of `Task.render` and `Task.picture`; the clues alone without an answer."""

    puzzle: Tensor  # (cell,)
    answer: Tensor | None = None  # (cell,)
    confidence: Tensor | None = None  # (cell,)


@dataclass(frozen=True, eq=False)
class PuzzleRecord:
    """One puzzle: the fields of its JSON object (KEYS), and a few more for people.

    A puzzle that cannot be read or has no solution has its `error` and no answer. Where the solver
    abstains there is no answer. `seconds` is the puzzle's share of its batch's time by evaluations.
    """

    puzzle: str  # on one line; as it came where it cannot be read
    answer: str | None = None
    solved_by_rules: bool | None = None  # None where the task has no rules, too
    confidence: float | None = None  # that the whole answer is right
    entropy: list[float] | None = None  # in [0, 1], for each character of the answer
    halt_probability: float | None = None
    evaluations: int | None = None
    seconds: float | None = None
    abstained: bool | None = None
    error: str | None = None
    decided_by: str | None = None  # a stopping rule's name; "budget" or "time" where none decided
    solutions: int | None = None  # of the puzzle, 2 for several; None where nobody counted
    task: str | None = None  # its type, where a task has several
    address: str | None = None  # where it is published, if its type has addresses
    outer_steps: int | None = None  # of all its stages so far
    particles: int | None = None  # of its last cloud
    grid: Cells | None = None

    def as_json(self) -> str:
        """The object on one line, always with the same keys."""
        return json.dumps({key: getattr(self, key) for key in KEYS}, allow_nan=False)


def puzzle_record(
    task: Task, puzzle: Tensor, result: SearchResult, row: int, rate: float,
    abstain: float | None = None, trusted_above: float | None = None,
) -> PuzzleRecord:  # fmt: skip
    """The record of one row of a result; `rate` is seconds per evaluation.

    The answer is withheld if its confidence is below `abstain` or it breaks a rule, or if its
    trust is not above `trusted_above` (`tiltrm.solving.call.risk_rung`).
    """
    answer = result.answers[row]
    evaluations = int(result.evaluations[row])
    confidence = float(result.confidence[row])
    kept = bool(keeps_rules(task, puzzle, answer))
    doubtful = abstain is not None and (confidence < abstain or not kept)
    decided = torch.tensor(result.decided_by[row] not in NOT_DECIDED)
    own = trust(decided, result.halt_probability[row], torch.tensor(kept))
    risky = trusted_above is not None and float(own) <= trusted_above
    withheld = bool(result.degenerate[row]) or doubtful or risky
    entropy = result.terminal_entropy[row][on_board(task, puzzle)]
    return PuzzleRecord(
        puzzle=task.decode(puzzle),
        answer=None if withheld else answer_text(task, puzzle, answer),
        solved_by_rules=kept if has_rules(task) and not withheld else None,
        confidence=round(confidence, DIGITS),
        entropy=[round(value, DIGITS) for value in entropy.tolist()],
        halt_probability=round(float(result.halt_probability[row]), DIGITS),
        evaluations=evaluations,
        seconds=round(rate * evaluations, DIGITS),
        abstained=withheld,
        decided_by=result.decided_by[row],
        task=type_of(task, puzzle),
        address=address_of(task, puzzle),
        outer_steps=int(result.outer_steps[row]),
        particles=int(result.particles[row]),
        grid=Cells(puzzle) if withheld else Cells(puzzle, answer, result.cell_confidence[row]),
    )
