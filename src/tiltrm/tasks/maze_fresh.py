"""Random mazes by the thousand, all at once, on any device; the same kind as maze_generate's."""

from collections.abc import Iterator

import torch
from torch import Generator, Tensor

from tiltrm.errors import SettingsError
from tiltrm.tasks.maze_generate import TRIES, WALLS, least_cells
from tiltrm.tasks.maze_rules import distances
from tiltrm.tasks.maze_text import FREE, GOAL, START, WALL

TOGETHER = {"cuda": 8192, "cpu": 256}  # mazes tried at once


def fresh(side: int, count: int, generator: Generator, at_least: int | None = None) -> Tensor:
    """Questions (maze, cell) uint8 whose shortest paths have `at_least` cells, as in Maze-Hard.

    A function of the generator's state. Proved by tests/tasks/test_maze.py::test_fresh_mazes.
    """
    wanted = least_cells(side, at_least)
    found: list[Tensor] = []
    missing = count
    for kept in _tries(side, wanted, generator):
        found.append(kept[:missing])
        missing -= len(found[-1])
        if missing == 0:
            return torch.cat(found)
    raise SettingsError(f"expected a shortest path that fits {side}x{side} cells, got {wanted}")


def _tries(side: int, wanted: int, generator: Generator) -> Iterator[Tensor]:
    """Those of a batch of random mazes that are hard enough, batch after batch."""
    device = generator.device
    together = TOGETHER.get(device.type, TOGETHER["cpu"])
    barren = 0
    while barren < TRIES:
        low, high = WALLS
        share = low + (high - low) * torch.rand(together, 1, 1, generator=generator, device=device)
        free = torch.rand(together, side, side, generator=generator, device=device) >= share
        far = far_end(one_of(free, generator), free)
        steps = distances(far, free)
        goals = (steps + 1 >= wanted) & ~far
        chosen = one_of(goals, generator)
        swapped = torch.rand(together, 1, 1, generator=generator, device=device) < 0.5
        maze = torch.where(free, FREE, WALL)
        maze = torch.where(far, torch.where(swapped, GOAL, START), maze)
        maze = torch.where(chosen, torch.where(swapped, START, GOAL), maze)
        kept = maze.flatten(1)[goals.flatten(1).any(-1)].to(torch.uint8)
        barren = 0 if len(kept) else barren + together
        yield kept


def far_end(cell: Tensor, free: Tensor) -> Tensor:
    """The farthest cell from the farthest cell from this one, nearly a diameter away."""
    for _ in range(2):
        cell = first(distances(cell, free))
    return cell


def first(values: Tensor) -> Tensor:
    """The place of the largest value in every grid: (maze, row, column) bool."""
    flat = values.flatten(1)
    place = flat.argmax(-1, keepdim=True)
    return torch.zeros_like(flat, dtype=torch.bool).scatter_(1, place, True).view(values.shape)


def one_of(flags: Tensor, generator: Generator) -> Tensor:
    """One of the set places of every grid by chance; any place where none is set."""
    drawn = torch.rand(flags.shape, generator=generator, device=generator.device)
    return first(torch.where(flags, drawn, -1.0))
