"""The puzzle embedding of a run on ARC: a row for each puzzle id, trained by sparse SignSGD.

A step reads and updates only the rows of its batch, as the peers' codes do. For a row w whose
gradient, summed over the batch, is g: w <- (1 - rate * decay) * w - rate * sign(g).
Proved by tests/train/test_puzzle_table.py.
"""

import torch
from torch import Tensor, nn

from tiltrm.model.puzzle_ids import ids_in_cells
from tiltrm.train import distributed
from tiltrm.train.distributed import World
from tiltrm.train.settings import TrainSettings


class PuzzleTable:
    """The table, and the rows of the current batch as a parameter that collects their gradient."""

    def __init__(self, rows: int, settings: TrainSettings, world: World, device: torch.device):
        self.settings, self.world = settings.table, world
        self.id_cells, numbers = settings.model.id_cells, settings.model.width
        self.weights = torch.zeros(rows, numbers, device=device)  # the peers start from zero too
        share = world.rows(settings.batch)
        self.batch_rows = nn.Parameter(
            torch.zeros(share.stop - share.start, numbers, device=device)
        )

    @torch.no_grad()
    def gather(self, questions: Tensor) -> None:
        """Copy the rows of these questions (row, cell) into `batch_rows`."""
        self.batch_ids = ids_in_cells(questions, self.id_cells)
        self.batch_rows.copy_(self.weights[self.batch_ids])

    @torch.no_grad()
    def update(self, factor: float) -> None:
        """One step of SignSGD at `factor` times the rate on the rows that `gather` took."""
        if self.batch_rows.grad is None:
            raise RuntimeError("expected a backward pass between gather and update")
        ids = distributed.gather(self.batch_ids, self.world)
        slope = distributed.gather(self.batch_rows.grad, self.world)
        # A product sums the gradients of equal ids in a fixed order, without waiting for the
        # device. Equal ids then write equal rows.
        slope = (ids[:, None] == ids).to(slope.dtype) @ slope
        rate = factor * self.settings.rate
        kept = (1.0 - rate * self.settings.weight_decay) * self.weights[ids]
        self.weights[ids] = kept - rate * slope.sign()
        self.batch_rows.grad = None
