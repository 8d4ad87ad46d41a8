"""How much of a verdict hangs on which puzzles happened to be in the sample: a streaming bootstrap.

Every puzzle gets a Poisson(1) weight in every replicate, drawn from the puzzle's own key, so that
sums can be kept chunk by chunk and neither order nor chunks matter. Replicate 0 weighs all alike.
"""

import math

import torch
from torch import Tensor

from tiltrm.explore.keys import derive, uniforms

REPLICATES = 200
BOOTSTRAP = 0x626F6F74  # sets these draws apart from those of the exploration
LARGEST = 12  # a Poisson(1) beyond this has a chance of 1e-11


def poisson(keys: Tensor, count: int) -> Tensor:
    """Poisson(1) numbers from keys by inversion: (row,) -> (row, count) float64."""
    chance = torch.tensor([math.exp(-1) / math.factorial(k) for k in range(LARGEST)]).double()
    return torch.searchsorted(chance.cumsum(0), uniforms(keys, count)).double()


class Bootstrap:
    """Weighted sums of one vector a puzzle, under every replicate."""

    def __init__(self, replicates: int = REPLICATES) -> None:
        self.replicates = replicates
        self.sums: Tensor | None = None  # (replicate + 1, number)
        self.puzzles = 0

    def add(self, keys: Tensor, values: Tensor) -> None:
        """keys: (puzzle,); values: (puzzle, number)."""
        drawn = poisson(derive(keys.cpu(), BOOTSTRAP), self.replicates)
        weights = torch.cat((torch.ones(len(drawn), 1).double(), drawn), 1)
        new = weights.T @ values.double().cpu()
        self.sums = new if self.sums is None else self.sums + new
        self.puzzles += len(values)

    def replicate_sums(self) -> Tensor:
        """The sums, the plain ones first: (replicate + 1, number)."""
        assert self.sums is not None, "nothing was added"
        return self.sums
