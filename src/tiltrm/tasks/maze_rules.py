"""Grids of booleans on any device: neighbours, and everything reachable from a start.

A grid is (..., row, column) bool. Steps go up, down, left and right.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

LOOK_EVERY = 8  # growths between two looks at the grid, each of which waits for the device


def neighbours(grid: Tensor) -> Tensor:
    """How many of its four neighbours are set, for every cell: (..., row, column) int8."""
    count = torch.zeros_like(grid, dtype=torch.int8)
    count[..., 1:, :] += grid[..., :-1, :]
    count[..., :-1, :] += grid[..., 1:, :]
    count[..., :, 1:] += grid[..., :, :-1]
    count[..., :, :-1] += grid[..., :, 1:]
    return count


def flood(start: Tensor, free: Tensor) -> Iterator[Tensor]:
    """The cells within 0, 1, 2, ... steps of the start through free cells, until none is new.

    The last grid repeats at most LOOK_EVERY times.
    """
    reached = start
    yield reached
    while True:
        before = reached
        for _ in range(LOOK_EVERY):
            reached = _grow(reached) & free
            yield reached
        if torch.equal(reached, before):
            return


def _grow(grid: Tensor) -> Tensor:
    grown = grid.clone()
    grown[..., 1:, :] |= grid[..., :-1, :]
    grown[..., :-1, :] |= grid[..., 1:, :]
    grown[..., :, 1:] |= grid[..., :, :-1]
    grown[..., :, :-1] |= grid[..., :, 1:]
    return grown


def reachable(start: Tensor, free: Tensor) -> Tensor:
    """Every cell that can be reached from the start; start cells must be free."""
    reached = start
    for reached in flood(start, free):  # noqa: B007 - the last one is the result
        pass
    return reached


def steps_between(start: Tensor, goal: Tensor, free: Tensor) -> Tensor:
    """Fewest steps from start to goal: (...) int64, -1 where there is no way."""
    steps = torch.zeros(free.shape[:-2], dtype=torch.int64, device=free.device)
    arrived = torch.zeros_like(steps, dtype=torch.bool)
    for reached in flood(start, free):
        arrived = (reached & goal).flatten(-2).any(-1)
        steps += ~arrived
    return torch.where(arrived, steps, -1)
