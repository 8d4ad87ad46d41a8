"""Random mazes of one's own: independent walls, kept when a shortest path is long."""

import math
import random
from collections import deque

from tiltrm.errors import SettingsError

WALLS = (0.28, 0.46)  # range of the share of walls; Maze-Hard holds .28 to .45, .37 on average
TRIES = 100_000


def generate(side: int, seed: int, at_least: int | None = None) -> tuple[str, str]:
    """Question and answer of a maze whose shortest path has `at_least` cells, S and G counted.

    The default is 110 for side 30, as in Maze-Hard, and in proportion to the area elsewhere.
    """
    wanted = least_cells(side, at_least)
    chance = random.Random(seed)
    for _ in range(TRIES):
        walls = chance.uniform(*WALLS)
        free = [chance.random() >= walls for _ in range(side * side)]
        ends = _ends(free, side, wanted, chance)
        if ends is not None:
            return _text(free, side, *ends)
    raise SettingsError(f"expected a shortest path that fits {side}x{side} cells, got {wanted}")


def least_cells(side: int, at_least: int | None = None) -> int:
    """Cells that a shortest path must have, unless told otherwise."""
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
