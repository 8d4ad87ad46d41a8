"""New puzzles out of known mazes: other ends in the same walls, or in a window cut out of them."""

import torch
from torch import Generator, Tensor

from tiltrm.tasks.maze_fresh import far_end, one_of
from tiltrm.tasks.maze_rules import distances
from tiltrm.tasks.maze_text import FREE, GOAL, START, WALL

EASY = 1 / 3  # share of the puzzles that may have a path of any length
HOPS = 3  # from end to end, so that all pairs of far ends come up


def moved(free: Tensor, at_least: int, generator: Generator) -> Tensor:
    """Mazes (maze, cell) uint8 with these free cells (maze, row, column) and ends by chance.

    One third have any two ends, the others a shortest path of `at_least` cells, or of as many as
    there are from where the search began. A free cell without a way out makes no maze.
    Proved by tests/tasks/test_maze.py::test_moved_ends.
    """
    easy = torch.rand(len(free), 1, 1, generator=generator, device=free.device) < EASY
    start = one_of(free, generator)
    start = torch.where(easy, start, far_end(start, free))
    for _ in range(HOPS):
        goal, steps = start, distances(start, free)
        most = steps.amax((-2, -1), keepdim=True)
        least = torch.where(easy, 1, most.clamp(max=at_least - 1))
        start = one_of(steps >= least.clamp(min=1), generator)
    maze = torch.where(free, FREE, WALL)
    maze = torch.where(goal, GOAL, torch.where(start, START, maze))
    return maze.flatten(1)[most.flatten() > 0].to(torch.uint8)


def windows(free: Tensor, side: int, generator: Generator) -> Tensor:
    """A square of `side` x `side` cells of every grid (maze, row, column), at a place by chance."""
    count, rows, columns = free.shape
    ahead = torch.arange(side, device=free.device)
    down, right = (
        torch.randint(size - side + 1, (count, 1), generator=generator, device=free.device) + ahead
        for size in (rows, columns)
    )
    each = torch.arange(count, device=free.device)[:, None, None]
    return free[each, down[:, :, None], right[:, None, :]]
