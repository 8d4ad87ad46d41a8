"""Validation of the model in training: exact accuracy by depth, and quality of the halting head."""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tiltrm.data import Puzzles
from tiltrm.model.base import State
from tiltrm.model.trm import TRM
from tiltrm.solving.threshold import threshold, where_settled
from tiltrm.statistics import auroc, calibration_error
from tiltrm.tasks.base import PAD, exactly_right
from tiltrm.train import distributed
from tiltrm.train.distributed import SINGLE_PROCESS, World
from tiltrm.train.supervision import embed

MARKS = (3, 12, 24)  # outer steps at which the accuracy is noted, besides the last


class ValidationReport(NamedTuple):
    """Deterministic accuracy and the quality of the halting head on a fixed set of puzzles."""

    exact: dict[int, float]  # outer step -> share of puzzles right
    cells: float  # share of labelled cells right at the last step
    halt_accuracy: float  # how often sign(halt logit) tells right from wrong
    halt_auroc: float  # NaN where all puzzles are right, or all wrong
    halt_calibration: float  # expected calibration error of sigmoid(halt logit), 10 bins
    halt_bce: float
    decide_above: float = math.nan  # the stopping threshold on the halt logit; NaN: none was found

    @property
    def final(self) -> float:
        """The exact accuracy at the last outer step, by which the best weights are chosen."""
        return self.exact[max(self.exact)]


@torch.no_grad()
def validate(
    model: TRM, puzzles: Puzzles, *, outer_steps: int, batch: int, dtype: torch.dtype,
    world: World = SINGLE_PROCESS,
) -> ValidationReport:  # fmt: skip
    """Run the model on every puzzle, each process on a share of them."""
    device = model.embedding.device
    marks = sorted({*(mark for mark in MARKS if mark < outer_steps), outer_steps})
    count = len(puzzles)
    # One row per puzzle: for every step the halt logit of a settled answer, then for every step
    # whether the answer is right, then the share of right cells and the last halt logit.
    found = torch.zeros(count, 2 * outer_steps + 2, dtype=torch.float64, device=device)
    mine = torch.arange(world.rank, count, world.size)
    for rows in mine.split(min(batch, max(1, len(mine)))):
        questions = puzzles.questions[rows].to(device)
        labels = puzzles.labels()[rows].to(device)
        spare = min(batch, len(mine)) - len(rows)  # pads to one shape, which is compiled once
        padded = F.pad(questions, (0, 0, 0, spare), value=1)
        with torch.autocast(device.type, dtype, enabled=dtype != torch.float32):
            found[rows.to(device)] = _follow(model, padded, labels, outer_steps, dtype)
    return _report(marks, distributed.total(found, world).cpu())


def _follow(
    model: TRM, questions: Tensor, labels: Tensor, outer_steps: int, dtype: torch.dtype
) -> Tensor:
    """The rows that `validate` collects, for one batch; rows beyond len(labels) are padding."""
    rows = len(labels)
    inputs = embed(model, questions, dtype)
    state = State(*(half.to(dtype) for half in model.start(inputs)))
    halts, steps = [], []
    for _ in range(outer_steps):
        state = model.step(inputs, state)
        steps.append(model.decode(state.answer[:rows]).argmax(-1))
        halts.append(model.halt_logit(state.answer[:rows]))
    halt, answers = torch.stack(halts, 1).double(), torch.stack(steps, 1)
    right = exactly_right(answers, labels[:, None]).double()
    labelled = labels != PAD
    cells = ((answers[:, -1] == labels) & labelled).sum(-1) / labelled.sum(-1).clamp(min=1)
    asked = where_settled(halt, answers)
    return torch.cat((asked, right, cells.double()[:, None], halt[:, -1:]), dim=1)


def _report(marks: list[int], found: Tensor) -> ValidationReport:
    asked, solved = found[:, :-2].chunk(2, dim=1)
    cells, halt, final = found[:, -2], found[:, -1], solved[:, -1] > 0
    chosen = threshold(asked, solved > 0)
    return ValidationReport(
        exact={n: float(solved[:, n - 1].mean()) for n in marks},
        cells=float(cells.mean()),
        halt_accuracy=float(((halt > 0) == final).double().mean()),
        halt_auroc=auroc(halt, final),
        halt_calibration=calibration_error(torch.sigmoid(halt), final),
        halt_bce=float(F.binary_cross_entropy_with_logits(halt, final.double())),
        decide_above=math.nan if chosen is None else chosen.above,
    )
