"""Random mazes: one at a time from a seed, in batches on a device, or from the walls of others."""

import math
import random
from collections import deque
from collections.abc import Iterator

import torch
from torch import Generator, Tensor

from tiltrm.errors import SettingsError
from tiltrm.tasks.maze_format import FREE, GOAL, START, WALL
from tiltrm.tasks.maze_search import descent, distances

WALLS = (0.28, 0.46)  # range of the share of walls; Maze-Hard holds .28 to .45, .37 on average
TRIES = 100_000
BATCH = {"cuda": 8192, "cpu": 256}  # mazes tried at once
EASY = 1 / 3  # share of the moved puzzles that may have a path of any length
HOPS = 3  # from end to end, so that all pairs of far ends occur


def generate(
    side: int, seed: int, at_least: int | None = None, *, unique: bool = False
) -> tuple[str, str]:
    """Question and answer of a maze whose shortest path has `at_least` cells, S and G counted.

    The default is 110 for side 30, as in Maze-Hard, and in proportion to the area elsewhere. With
    `unique`, no other path is as short: see `without_ties`.
    """
    wanted = least_cells(side, at_least)
    chance = random.Random(seed)
    for _ in range(TRIES):
        walls = chance.uniform(*WALLS)
        free = [chance.random() >= walls for _ in range(side * side)]
        ends = _ends(free, side, wanted, chance)
        if ends is not None and unique:
            maze = torch.tensor([FREE if is_free else WALL for is_free in free])
            maze[list(ends)] = torch.tensor([START, GOAL])
            order = torch.Generator().manual_seed(chance.getrandbits(62))
            free = (without_ties(maze[None], side, order)[0] != WALL).tolist()
        if ends is not None:
            return _text(free, side, *ends)
    raise SettingsError(f"expected a shortest path that fits {side}x{side} cells, got {wanted}")


def least_cells(side: int, at_least: int | None = None) -> int:
    """`at_least`, or the default number of cells of a shortest path for this side."""
    return at_least if at_least is not None else max(2, math.ceil(110 * side * side / 900))


def _ends(
    free: list[bool], side: int, wanted: int, chance: random.Random
) -> tuple[int, int] | None:
    """Two cells at least `wanted` cells apart, counting both, or None."""
    cells = [cell for cell, is_free in enumerate(free) if is_free]
    if not cells:
        return None
    far = chance.choice(cells)
    for _ in range(2):  # the farthest cell from the farthest cell is nearly a diameter away
        distance = _distances(free, side, far)
        far = max(distance, key=distance.__getitem__)
    distance = _distances(free, side, far)
    goals = [cell for cell, steps in distance.items() if steps + 1 >= wanted and cell != far]
    if not goals:
        return None
    ends = [far, chance.choice(goals)]
    chance.shuffle(ends)
    return ends[0], ends[1]


def _distances(free: list[bool], side: int, start: int) -> dict[int, int]:
    """Steps from the start to every cell that can be reached."""
    distance = {start: 0}
    queue = deque([start])
    while queue:
        cell = queue.popleft()
        for other in _beside(cell, side):
            if free[other] and other not in distance:
                distance[other] = distance[cell] + 1
                queue.append(other)
    return distance


def _beside(cell: int, side: int) -> list[int]:
    row, column = divmod(cell, side)
    steps = ((row > 0, -side), (row < side - 1, side), (column > 0, -1), (column < side - 1, 1))
    return [cell + step for inside, step in steps if inside]


def _text(free: list[bool], side: int, start: int, goal: int) -> tuple[str, str]:
    """The maze and the shortest path that the public labels would draw: see `Maze.answer`."""
    question = [" " if is_free else "#" for is_free in free]
    question[start], question[goal] = "S", "G"
    answer = list(question)
    left = _distances(free, side, goal)
    cell = start
    while left[cell] > 1:
        nearer = {c - cell for c in _beside(cell, side) if left.get(c) == left[cell] - 1}
        cell += next(step for step in (side, -1, 1, -side) if step in nearer)
        answer[cell] = "o"
    return "".join(question), "".join(answer)


def fresh(
    side: int, count: int, generator: Generator, at_least: int | None = None, *,
    unique: bool = False,
) -> Tensor:  # fmt: skip
    """Questions (maze, cell) uint8 like those of `generate`, in batches on the generator's device.

    A function of the generator's state. Proved by tests/tasks/test_maze.py::test_fresh_mazes.
    """
    wanted = least_cells(side, at_least)
    found: list[Tensor] = []
    missing = count
    for kept in _batches(side, wanted, generator):
        if unique and len(kept):
            kept = without_ties(kept, side, generator)
        found.append(kept[:missing])
        missing -= len(found[-1])
        if missing == 0:
            return torch.cat(found)
    raise SettingsError(f"expected a shortest path that fits {side}x{side} cells, got {wanted}")


def _batches(side: int, wanted: int, generator: Generator) -> Iterator[Tensor]:
    """The mazes with long enough paths of each random batch, until TRIES in a row have none."""
    device = generator.device
    batch = BATCH.get(device.type, BATCH["cpu"])
    failed = 0
    while failed < TRIES:
        low, high = WALLS
        share = low + (high - low) * torch.rand(batch, 1, 1, generator=generator, device=device)
        free = torch.rand(batch, side, side, generator=generator, device=device) >= share
        far = _far_end(_one_of(free, generator), free)
        steps = distances(far, free)
        goals = (steps + 1 >= wanted) & ~far
        chosen = _one_of(goals, generator)
        swapped = torch.rand(batch, 1, 1, generator=generator, device=device) < 0.5
        maze = torch.where(free, FREE, WALL)
        maze = torch.where(far, torch.where(swapped, GOAL, START), maze)
        maze = torch.where(chosen, torch.where(swapped, START, GOAL), maze)
        kept = maze.flatten(1)[goals.flatten(1).any(-1)].to(torch.uint8)
        failed = 0 if len(kept) else failed + batch
        yield kept


def without_ties(mazes: Tensor, side: int, generator: Generator) -> Tensor:
    """The same mazes (maze, cell) with walls added until one shortest path is left, a random one.

    A wall is put on every cell that is on some shortest path, not on the chosen one, and can be
    entered from it: any other shortest path leaves the chosen one through such a cell. The chosen
    path stays shortest, since walls open no way. Proved by tests/tasks/test_maze_unique.py.
    """
    grids = mazes.view(-1, side, side)
    start, goal, free = grids == START, grids == GOAL, grids != WALL
    ahead, behind = distances(goal, free), distances(start, free)
    path = descent(start, ahead, generator) | start | goal
    shortest = ahead.masked_fill(~start, -1).flatten(1).amax(-1)[:, None, None]
    on_some = free & (ahead >= 0) & (behind >= 0) & (ahead + behind == shortest)
    entered = torch.zeros_like(free)
    for here, there in ((slice(1, None), slice(None, -1)), (slice(None, -1), slice(1, None))):
        forth = behind[:, here] == behind[:, there] + 1
        entered[:, here] |= path[:, there] & forth
        forth = behind[:, :, here] == behind[:, :, there] + 1
        entered[:, :, here] |= path[:, :, there] & forth
    closed = on_some & entered & ~path
    return torch.where(closed, WALL, grids).flatten(1).to(mazes.dtype)


def moved(free: Tensor, at_least: int, generator: Generator) -> Tensor:
    """Mazes (maze, cell) uint8 with these free cells (maze, row, column) and random ends.

    One third have any two ends. The others have a shortest path of `at_least` cells, or the
    longest one from the cell where the search began. A maze whose start has no free neighbour is
    dropped. Proved by tests/tasks/test_maze.py::test_moved_ends.
    """
    easy = torch.rand(len(free), 1, 1, generator=generator, device=free.device) < EASY
    start = _one_of(free, generator)
    start = torch.where(easy, start, _far_end(start, free))
    for _ in range(HOPS):
        goal, steps = start, distances(start, free)
        most = steps.amax((-2, -1), keepdim=True)
        least = torch.where(easy, 1, most.clamp(max=at_least - 1))
        start = _one_of(steps >= least.clamp(min=1), generator)
    maze = torch.where(free, FREE, WALL)
    maze = torch.where(goal, GOAL, torch.where(start, START, maze))
    return maze.flatten(1)[most.flatten() > 0].to(torch.uint8)


def windows(free: Tensor, side: int, generator: Generator) -> Tensor:
    """A random square of `side` x `side` cells of every grid (maze, row, column)."""
    count, rows, columns = free.shape
    ahead = torch.arange(side, device=free.device)
    down, right = (
        torch.randint(size - side + 1, (count, 1), generator=generator, device=free.device) + ahead
        for size in (rows, columns)
    )
    each = torch.arange(count, device=free.device)[:, None, None]
    return free[each, down[:, :, None], right[:, None, :]]


def _far_end(cell: Tensor, free: Tensor) -> Tensor:
    """The farthest cell from the farthest cell from this one, nearly a diameter away."""
    for _ in range(2):
        cell = _argmax(distances(cell, free))
    return cell


def _one_of(flags: Tensor, generator: Generator) -> Tensor:
    """A random set cell of every grid; any cell if none is set: (maze, row, column) bool."""
    drawn = torch.rand(flags.shape, generator=generator, device=generator.device)
    return _argmax(torch.where(flags, drawn, -1.0))


def _argmax(values: Tensor) -> Tensor:
    """The first cell with the largest value of every grid: (maze, row, column) bool."""
    flat = values.flatten(1)
    place = flat.argmax(-1, keepdim=True)
    return torch.zeros_like(flat, dtype=torch.bool).scatter_(1, place, True).view(values.shape)
