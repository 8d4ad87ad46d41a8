"""Augmentations of an ARC task: a turn and a permutation of colours, named as the peers name them.

The name of an augmented puzzle is 'task|||t3|||0213456789': colour c becomes the digit at place c,
then the grid is turned by turn 3. Proved by tests/tasks/arc/test_augmentation.py.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import torch

from tiltrm.tasks.arc.grids import COLOURS, TURNS, UNTURNED, ColourGrid, recolour, turn

SEPARATOR = "|||"
_NAME = re.compile(r"(?s)(.*)\|\|\|t([0-7])\|\|\|([0-9]{10})")
PLAIN = tuple(range(COLOURS))


@dataclass(frozen=True)
class Augmentation:
    """colours[c] replaces colour c, then the grid is turned."""

    turn: int = 0
    colours: tuple[int, ...] = PLAIN

    @property
    def changes(self) -> bool:
        """Whether it changes anything."""
        return bool(self.turn) or self.colours != PLAIN

    def apply(self, grid: ColourGrid) -> ColourGrid:
        """The grid as the augmented puzzle has it."""
        return turn(recolour(grid, self.colours), self.turn)

    def undo(self, grid: ColourGrid) -> ColourGrid:
        """The inverse of `apply`."""
        back = sorted(PLAIN, key=self.colours.__getitem__)
        return recolour(turn(grid, UNTURNED[self.turn]), back)

    def name(self, task_name: str) -> str:
        """The name of the augmented puzzle; that of the task if nothing is changed."""
        if not self.changes:
            return task_name
        return SEPARATOR.join((task_name, f"t{self.turn}", "".join(map(str, self.colours))))


def parse_name(name: str) -> tuple[str, Augmentation]:
    """The task of a puzzle's name, and its augmentation."""
    found = _NAME.fullmatch(name)
    if found is None or set(found[3]) != set("0123456789"):
        return name, Augmentation()
    return found[1], Augmentation(int(found[2]), tuple(map(int, found[3])))


def draw_augmentations(
    count: int, generator: torch.Generator, *, keep_black: bool = True
) -> list[Augmentation]:
    """Different augmentations, the first of which changes nothing.

    keep_black: colour 0 stays, as in the peers' datasets.
    """
    found = dict.fromkeys([Augmentation()])
    first = 1 if keep_black else 0
    while len(found) < count:
        number = int(torch.randint(TURNS, (), generator=generator))
        order = torch.randperm(COLOURS - first, generator=generator) + first
        found.setdefault(Augmentation(number, (*range(first), *order.tolist())))
    return list(found)[:count]


def by_task(names: Iterable[str]) -> dict[str, list[tuple[int, Augmentation]]]:
    """The puzzles of each task in a list of names by number: numbers and augmentations."""
    found: dict[str, list[tuple[int, Augmentation]]] = {}
    for number, name in enumerate(names):
        task, own = parse_name(name)
        found.setdefault(task, []).append((number, own))
    return found
