"""The last cloud of every puzzle of a search, for votes outside the search."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tiltrm.explore.cloud import StepInfo
from tiltrm.explore.keys import derive, puzzle_keys

Answer = bytes  # the tokens of a whole answer, a byte a cell


class FinalCloud(NamedTuple):
    """The particles that a search of one puzzle ended with, on the CPU."""

    answers: Tensor  # (particle, cell) uint8
    weights: Tensor  # (particle,) float64, of sum 1; all 0 in a dead cloud
    halting: Tensor  # (particle,) float64, halt probabilities
    earlier: Counter[Answer]  # the weights of answers at the steps before the last, summed


class CloudRecorder:
    """A `watch` of `run_search` that keeps the last cloud of every puzzle.

    Puzzles are found by their random keys, so equal puzzles share a cloud.
    Proved by tests/solving/test_final_clouds.py.
    """

    def __init__(self) -> None:
        self._clouds: dict[int, FinalCloud] = {}

    def __call__(self, info: StepInfo) -> None:
        answers = info.context.answers.cpu()
        weights = info.log_weights.double().exp().cpu()
        # As elsewhere not torch.sigmoid, whose last bit depends on the place in the batch.
        halting = torch.exp(F.logsigmoid(info.context.halt_logit().double())).nan_to_num(0.0).cpu()
        for row, key in enumerate(info.context.problem.keys.tolist()):
            before = self._clouds.get(key)
            earlier: Counter[Answer] = Counter() if before is None else before.earlier
            if before is not None:
                given = zip(before.answers.numpy(), before.weights.tolist(), strict=True)
                for answer, weight in given:
                    if weight > 0.0:
                        earlier[answer.tobytes()] += weight
            self._clouds[key] = FinalCloud(answers[row], weights[row], halting[row], earlier)

    def clouds(self, puzzles: Tensor, seed: int) -> Sequence[FinalCloud]:
        """The clouds of these puzzles (puzzle, cell), which were searched with this seed."""
        return [self._clouds[key] for key in derive(puzzle_keys(puzzles), seed).tolist()]
