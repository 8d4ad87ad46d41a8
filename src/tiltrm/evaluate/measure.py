"""What is measured of a method's answers, as columns with a row a puzzle."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from tiltrm.explore import Exploration
from tiltrm.explore.cloud import Clock, Cloud, StepInfo, take
from tiltrm.explore.guides import Score
from tiltrm.explore.keys import derive
from tiltrm.explore.select import Candidates
from tiltrm.explore.step import RESAMPLING, tilted
from tiltrm.tasks import Maze, Task

Columns = Mapping[str, Tensor | Sequence[Any] | None]


@dataclass(frozen=True)
class Outcome:
    """What a method gives for a batch of puzzles; None where it has nothing of the kind."""

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


def columns(
    outcome: Outcome, task: Task, tokens: Tensor, labels: Tensor, keys: Tensor, device: torch.device
) -> Columns:
    """The columns of a shard, on the CPU.

    tokens, labels: (puzzle, cell); keys: (puzzle,) rows of the split. Rules are checked on
    `device`: a maze takes some hundred steps of flooding.
    """
    right = outcome.answers == labels
    cells = outcome.terminal_entropy is not None
    nothing = right.new_zeros(len(right), 0)
    none = torch.zeros(len(right), 0, dtype=torch.float16)
    shortest, valid = _by_rules(task, tokens.to(device), outcome.answers.to(device))
    found: dict[str, Tensor | Sequence[Any] | None] = {
        "puzzle": keys.long(),
        "exact": right.all(-1),
        "oracle": outcome.oracle,
        "shortest": shortest,
        "valid": valid,
        "evaluations": outcome.evaluations.long(),
        "outer_steps": outcome.outer_steps.long(),
        "confidence": outcome.confidence.float(),
        "halt_probability": outcome.halt_probability.float(),
        "decided_by": list(outcome.decided_by),
        "exact_by_step": _or(outcome.exact_by_step, nothing),
        "oracle_by_step": _or(outcome.oracle_by_step, nothing),
        "terminal_entropy": _or(outcome.terminal_entropy, none).half(),
        "path_entropy": _or(outcome.path_entropy, none).half(),
        "cell_right": right if cells else nothing,
        "free": ~task.given(tokens) if cells else nothing,
        # The answer as what it is off the label by, so that a shard gives away no solution.
        "off": outcome.answers.short() - labels.short() if cells else nothing.short(),
    }
    return {name: v.cpu() if isinstance(v, Tensor) else v for name, v in found.items()}


def _or(value: Tensor | None, otherwise: Tensor) -> Tensor:
    return otherwise if value is None else value


def _by_rules(task: Task, tokens: Tensor, answers: Tensor) -> tuple[Tensor | None, Tensor]:
    """Whether no valid answer is shorter (None where that has no meaning), and whether valid."""
    if isinstance(task, Maze):
        judged = task.judge(tokens, answers, answers)
        return judged.shortest_valid, judged.valid
    return None, task.is_solved(tokens, answers)


class ByStep:
    """A `watch` of explore: would the answer be right if the exploration ended at this step?

    The cloud is finished as the last step finishes it: guide, weights, resampling, selection. So
    the last column is the result itself. Puzzles are found by their keys, since memory may run out
    and a chunk begin again. Proved by tests/evaluate/test_measure.py.
    """

    def __init__(
        self, settings: Exploration, guide: Score, labels: Tensor, keys: Tensor, seed: int
    ) -> None:
        """labels: (puzzle, cell) and keys: (puzzle,), all different, on the device of the run."""
        self.settings, self.labels = settings, labels
        self.roots, self.order = derive(keys, seed).sort()
        self.weigh = tilted(guide, settings.beta, settings.make_potential())
        self.asks = settings.make_potential().asks
        self.resample = settings.make_resample()
        shape = (len(keys), settings.outer_steps)
        self.exact = torch.zeros(shape, dtype=torch.bool, device=keys.device)
        self.oracle = torch.zeros_like(self.exact)

    def __call__(self, info: StepInfo) -> None:
        step, keys = info.context.clock.step, info.context.question.keys
        places = self.order[torch.searchsorted(self.roots, keys)]
        labels = self.labels[places]
        final = self._finished(info)
        chosen = self.settings.make_select(labels)(final)
        right = (final.answers == labels[:, None]).all(-1) & final.alive
        self.exact[places, step - 1] = right.gather(1, chosen[:, None])[:, 0]
        self.oracle[places, step - 1] = right.any(-1)

    def _finished(self, info: StepInfo) -> Candidates:
        """The cloud as it would be handed over, had this been the last step."""
        context, log_weights, score = info.context, info.log_weights, info.score
        step = context.clock.step
        if not self.asks(*context.clock) and self._guide_matters():
            last = replace(context, clock=Clock(step, step))
            weighed = self.weigh(Cloud(context.state, log_weights, score), last)
            log_weights, score = weighed.log_weights, weighed.score
        keys = derive(context.question.keys, RESAMPLING, step)
        ancestors, log_weights = self.resample(log_weights, keys)
        return Candidates(take(context.answers, ancestors), log_weights, take(score, ancestors))

    def _guide_matters(self) -> bool:
        """Without a tilt the vote does not look at the score."""
        return self.settings.beta > 0 or self.settings.select != "map"
