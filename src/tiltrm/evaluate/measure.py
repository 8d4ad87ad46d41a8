"""Measurements of a method's answers, as columns with a row per puzzle."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tiltrm.explore import Exploration
from tiltrm.explore.choices import make_potential, make_resample, make_select
from tiltrm.explore.cloud import StepInfo
from tiltrm.explore.guides import Score
from tiltrm.explore.keys import derive
from tiltrm.explore.step import Tilt, final_candidates
from tiltrm.tasks import Maze, Task
from tiltrm.tasks.base import exactly_right
from tiltrm.tasks.published import keeps_rules, labels_on_board

Columns = Mapping[str, Tensor | Sequence[Any] | None]


@dataclass(frozen=True)
class Judge:
    """Says which answers are right: those that equal the labels.

    Without labels those that keep the rules, so that any solution of a puzzle with several is
    right. Cells outside a puzzle's board do not count (tiltrm.tasks.published).
    """

    task: Task
    tokens: Tensor  # (puzzle, cell)
    labels: Tensor | None  # (puzzle, cell)

    def right(self, answers: Tensor, rows: Tensor | slice = slice(None)) -> Tensor:
        """(row, ..., cell) -> (row, ...) bool, for these rows of the puzzles."""
        tokens = self._along(self.tokens[rows], answers)
        if self.labels is None:
            return self.task.is_solved(tokens, answers)
        labels = self._along(self.labels[rows], answers)
        return exactly_right(answers, labels_on_board(self.task, tokens, labels))

    def _along(self, values: Tensor, answers: Tensor) -> Tensor:
        """(row, cell) -> (row, 1, ..., cell), on the device of the answers."""
        middle = (1,) * (answers.dim() - 2)
        return values.to(answers.device).view(len(values), *middle, -1)

    def on(self, device: torch.device) -> "Judge":
        """The same on another device."""
        labels = None if self.labels is None else self.labels.to(device)
        return Judge(self.task, self.tokens.to(device), labels)


@dataclass(frozen=True)
class Measurement:
    """The results of a method on a batch of puzzles; None for those it does not have."""

    answers: Tensor  # (puzzle, cell) uint8
    confidence: Tensor  # (puzzle,)
    halt_probability: Tensor  # (puzzle,)
    evaluations: Tensor  # (puzzle,)
    outer_steps: Tensor  # (puzzle,)
    decided_by: Sequence[str]
    oracle: Tensor | None = None  # (puzzle,) bool
    exact_by_step: Tensor | None = None  # (puzzle, step) bool
    oracle_by_step: Tensor | None = None
    terminal_entropy: Tensor | None = None  # (puzzle, cell); the cells are kept where given
    path_entropy: Tensor | None = None


def columns(found: Measurement, judge: Judge, keys: Tensor, device: torch.device) -> Columns:
    """The columns of a shard, on the CPU.

    keys: (puzzle,) rows of the split. Rules are checked on `device`: a maze takes some hundred
    steps of flooding. Without labels no column says which cells are right.
    """
    task, tokens, labels = judge.task, judge.tokens, judge.labels
    cells = found.terminal_entropy is not None
    nothing = torch.zeros(len(tokens), 0, dtype=torch.bool)
    none = torch.zeros(len(tokens), 0, dtype=torch.float16)
    shortest, valid = _by_rules(task, tokens.to(device), found.answers.to(device))
    cell_right, off = nothing, nothing.short()
    if cells and labels is not None:
        # The answer as what it is off the label by, so that a shard gives away no solution.
        cell_right, off = found.answers == labels, found.answers.short() - labels.short()
    values: dict[str, Tensor | Sequence[Any] | None] = {
        "puzzle": keys.long(),
        "exact": valid if labels is None else judge.right(found.answers),
        "oracle": found.oracle,
        "shortest": shortest,
        "valid": valid,
        "evaluations": found.evaluations.long(),
        "outer_steps": found.outer_steps.long(),
        "confidence": found.confidence.float(),
        "halt_probability": found.halt_probability.float(),
        "decided_by": list(found.decided_by),
        "exact_by_step": _or(found.exact_by_step, nothing),
        "oracle_by_step": _or(found.oracle_by_step, nothing),
        "terminal_entropy": _or(found.terminal_entropy, none).half(),
        "path_entropy": _or(found.path_entropy, none).half(),
        "cell_right": cell_right,
        "free": ~task.given(tokens) if cells else nothing,
        "off": off,
    }
    return {name: v.cpu() if isinstance(v, Tensor) else v for name, v in values.items()}


def _or(value: Tensor | None, otherwise: Tensor) -> Tensor:
    return otherwise if value is None else value


def _by_rules(task: Task, tokens: Tensor, answers: Tensor) -> tuple[Tensor | None, Tensor]:
    """Whether no valid answer is shorter (None where that has no meaning), and whether valid."""
    if isinstance(task, Maze):
        judged = task.judge(tokens, answers, answers)
        return judged.shortest_valid, judged.valid
    return None, keeps_rules(task, tokens, answers)


class ByStep:
    """A `watch` of explore: would the answer be right if the exploration ended at this step?

    `final_candidates` ends the cloud as the last step does, so the last column is the result
    itself. Puzzles are found by their keys, since a chunk begins again when memory runs out.
    Proved by tests/evaluate/test_measure.py.
    """

    def __init__(
        self, settings: Exploration, guide: Score, judge: Judge, keys: Tensor, seed: int, *,
        last_only: bool = False,
    ) -> None:  # fmt: skip
        """judge and keys: (puzzle,), all different, on the device of the run.

        last_only: only the last step is judged.
        """
        self.settings, self.judge, self.last_only = settings, judge, last_only
        self.roots, self.order = derive(keys, seed).sort()
        self.weigh = Tilt(guide, settings.beta, make_potential(settings))
        self.resample = make_resample(settings)
        # Without a tilt the vote does not look at the score.
        self.ask_guide = settings.beta > 0 or settings.select != "map"
        shape = (len(keys), settings.outer_steps)
        self.exact = torch.zeros(shape, dtype=torch.bool, device=keys.device)
        self.oracle = torch.zeros_like(self.exact)

    def __call__(self, info: StepInfo) -> None:
        step, keys = info.context.clock.step, info.context.problem.keys
        if self.last_only and step < self.settings.outer_steps:
            return
        rows = self.order[torch.searchsorted(self.roots, keys)]
        labels = None if self.judge.labels is None else self.judge.labels[rows]
        final = final_candidates(info, self.weigh, self.resample, ask_guide=self.ask_guide)
        chosen = make_select(self.settings, labels)(final)
        right = self.judge.right(final.answers, rows) & final.alive
        self.exact[rows, step - 1] = right.gather(1, chosen[:, None])[:, 0]
        self.oracle[rows, step - 1] = right.any(-1)
