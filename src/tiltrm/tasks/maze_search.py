"""Breadth-first search in batches of mazes, on any device.

A grid is (..., row, column) bool. Steps go up, down, left and right.
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

CHECK_EVERY = 8  # steps between two checks for the end, each of which waits for the device


def neighbours(grid: Tensor) -> Tensor:
    """How many of its four neighbours are set, for every cell: (..., row, column) int8."""
    count = torch.zeros_like(grid, dtype=torch.int8)
    count[..., 1:, :] += grid[..., :-1, :]
    count[..., :-1, :] += grid[..., 1:, :]
    count[..., :, 1:] += grid[..., :, :-1]
    count[..., :, :-1] += grid[..., :, 1:]
    return count


def flood(start: Tensor, free: Tensor) -> Iterator[Tensor]:
    """The cells within 0, 1, 2, ... steps of the start through free cells, until no cell is new.

    The last grid repeats at most CHECK_EVERY times.
    """
    reached = start
    yield reached
    while True:
        before = reached
        for _ in range(CHECK_EVERY):
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
    """Fewest steps from start to goal: (...) int64, -1 if there is no path."""
    steps = torch.zeros(free.shape[:-2], dtype=torch.int64, device=free.device)
    arrived = torch.zeros_like(steps, dtype=torch.bool)
    for reached in flood(start, free):
        arrived = (reached & goal).flatten(-2).any(-1)
        steps += ~arrived
    return torch.where(arrived, steps, -1)


def distances(goal: Tensor, free: Tensor) -> Tensor:
    """Fewest steps to the goal: (..., row, column) int16, -1 if there is no path."""
    steps = torch.zeros(free.shape, dtype=torch.int16, device=free.device)
    reached = goal
    for reached in flood(goal, free):
        steps += ~reached
    return torch.where(reached, steps, -1)


def path_counts(start: Tensor, free: Tensor) -> Tensor:
    """Shortest paths from the start to every cell, 2 for several: (..., row, column) int8.

    0 for cells that cannot be reached. Proved by tests/tasks/test_maze_unique.py.
    """
    counts = start.to(torch.int8)
    edge, reached = counts, start
    while bool(edge.any()):
        ways = torch.zeros_like(edge)
        ways[..., 1:, :] += edge[..., :-1, :]
        ways[..., :-1, :] += edge[..., 1:, :]
        ways[..., :, 1:] += edge[..., :, :-1]
        ways[..., :, :-1] += edge[..., :, 1:]
        edge = torch.where(free & ~reached, ways.clamp(max=2), 0)
        reached = reached | (edge > 0)
        counts = counts + edge
    return counts


def descent(start: Tensor, steps: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """A shortest path from the start by descending distances, without its ends: bool grid.

    steps: distances to the goal. Of several neighbours that are nearer by one, the path takes the
    first of down, left, right, up; with a generator, a random one.
    """
    wide = steps.shape[-1] + 2  # with a border of walls
    walls = F.pad(steps, (1, 1, 1, 1), value=-1).reshape(-1, wide * wide)
    at_start = F.pad(start, (1, 1, 1, 1)).reshape(-1, wide * wide)
    moves = torch.tensor([wide, -1, 1, -wide], device=steps.device)
    known = at_start.any(-1, keepdim=True)
    at = torch.where(known, at_start.int().argmax(-1, keepdim=True), wide + 1)  # (maze, 1)
    left = torch.where(known, walls.gather(1, at), 0)
    path = torch.zeros_like(at_start)
    for _ in range(int(left.max()) - 1 if left.numel() else 0):
        nearer = walls.gather(1, at + moves) == left - 1  # (maze, move)
        going = left > 1
        wish = nearer.float()
        if generator is not None:
            wish = wish * torch.rand(wish.shape, generator=generator, device=wish.device).add_(1.0)
        at = torch.where(going, at + moves[wish.argmax(-1, keepdim=True)], at)
        left = torch.where(going, left - 1, left)
        path = path.scatter(1, at, path.gather(1, at) | going)
    return path.view(*start.shape[:-2], wide, wide)[..., 1:-1, 1:-1]
