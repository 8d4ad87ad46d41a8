"""The rules of the pencil puzzles on batches of boards: how often each of them is broken.

Every function takes a question and the marked cells of an answer and returns counts by the name
of the rule, (...) int64 each; all are 0 exactly for a solution. Cells outside the board count as
not marked. Proved against a plain check, cell by cell, by tests/tasks/pencil/test_rules.py.
"""

from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

from tiltrm.tasks.base import PAD
from tiltrm.tasks.pencil import boards
from tiltrm.tasks.pencil.puzzle import HEYAWAKE, LIGHTUP, NURIKABE, TAPA, UNKNOWN, Kind
from tiltrm.tasks.pencil.tokens import (
    BLACK,
    BLANK,
    DOWN,
    ISLAND,
    LARGEST_ISLAND,
    LEFT,
    LIGHT,
    MORE,
    NUMBERS,
    RIGHT,
    ROOM,
    SIDE,
    TAPA_CLUES,
    UNSHADED,
    UP,
    WALL,
    mark,
)

Counts = dict[str, Tensor]


def given(puzzle: Tensor) -> Tensor:
    """The cells that a question decides: clues that stand in the way, and all outside."""
    room = (puzzle >= ROOM) & (puzzle < WALL)
    return ~room & (puzzle != BLANK)


def decided(puzzle: Tensor) -> Tensor:
    """The answer's id in the given cells; a clue is not marked."""
    return torch.where((puzzle >= UNSHADED) & (puzzle <= LIGHT), puzzle, UNSHADED)


def broken(kind: Kind, puzzle: Tensor, answer: Tensor) -> Counts:
    """Counts by rule: two (..., cell) that broadcast -> (...) int64 each."""
    puzzle, answer = puzzle.to(torch.int16), answer.to(torch.int16)  # 256 is no uint8
    inside, fixed = puzzle != PAD, given(puzzle)
    marked = answer == mark(kind)
    filled = marked | (answer == UNSHADED)
    counts = {
        "changed clues": (inside & fixed & (answer != decided(puzzle))).sum(-1),
        "cells not filled in": (inside & ~fixed & ~filled).sum(-1),
    }
    return counts | _RULES[kind](_grid(puzzle), _grid(marked & inside))


def _grid(values: Tensor) -> Tensor:
    return values.reshape(*values.shape[:-1], SIDE, SIDE)


def _total(cells: Tensor) -> Tensor:
    return cells.flatten(-2).sum(-1)


def _light_up(puzzle: Tensor, lights: Tensor) -> Counts:
    black = (puzzle >= BLACK) & (puzzle < ISLAND)
    white = (puzzle != PAD) & ~black
    lights, white = torch.broadcast_tensors(lights & white, white)
    from_left, from_above = boards.before(lights, white), _down(boards.before, lights, white)
    from_right = boards.before(lights.flip(-1), white.flip(-1)).flip(-1)
    from_below = _down(boards.before, lights.flip(-2), white.flip(-2)).flip(-2)
    lit = lights | from_left | from_right | from_above | from_below
    numbered = black & (puzzle > BLACK)
    wrong = numbered & (boards.neighbours(lights) != puzzle - BLACK - 1)
    return {
        "lights that see each other": _total(lights & from_left) + _total(lights & from_above),
        "cells without light": _total(white & ~lit),
        "numbers": _total(wrong),
    }


def _down(scan: Callable[[Tensor, Tensor], Tensor], *grids: Tensor) -> Tensor:
    """A scan along the rows, done along the columns."""
    first, second = (grid.transpose(-1, -2) for grid in grids)
    return scan(first, second).transpose(-1, -2)


def _nurikabe(puzzle: Tensor, shaded: Tensor) -> Counts:
    clue = (puzzle >= ISLAND) & (puzzle <= ISLAND + LARGEST_ISLAND)
    island = (puzzle != PAD) & ~shaded
    labels = boards.groups(island)
    cells, clues, known, sizes = (
        _by_label(labels, values & island if values.dtype == torch.bool else values * island)
        for values in (island, clue, clue & (puzzle > ISLAND), (puzzle - ISLAND) * clue)
    )
    return {
        "squares of shaded cells": boards.squares(shaded),
        "parts of the sea beyond the first": _beyond_first(shaded),
        "islands without a clue": ((cells > 0) & (clues == 0)).sum(-1),
        "clues beyond the first of an island": (clues - 1).clamp(min=0).sum(-1),
        "islands of a wrong size": ((clues == 1) & (known == 1) & (cells != sizes)).sum(-1),
    }


def _by_label(labels: Tensor, values: Tensor) -> Tensor:
    """Sums of a grid's values over each component: (..., cell) int64 at the label's place."""
    flat = values.long().flatten(-2).expand_as(labels)
    return torch.zeros_like(labels).scatter_add(-1, labels, flat)


def _beyond_first(cells: Tensor) -> Tensor:
    return (boards.group_count(cells) - 1).clamp(min=0)


def _heyawake(puzzle: Tensor, shaded: Tensor) -> Counts:
    inside = puzzle != PAD
    room = (puzzle >= ROOM) & (puzzle < WALL)
    sides = torch.where(room, (puzzle - ROOM) // NUMBERS, 0)
    number = torch.where(room, (puzzle - ROOM) % NUMBERS, 0)
    right = ((sides[..., :-1] & RIGHT) | (sides[..., 1:] & LEFT)) > 0
    down = ((sides[..., :-1, :] & DOWN) | (sides[..., 1:, :] & UP)) > 0
    labels = boards.connected(
        ~right & inside[..., :-1] & inside[..., 1:],
        ~down & inside[..., :-1, :] & inside[..., 1:, :],
    )
    shown = torch.zeros_like(labels).scatter_reduce(
        -1, labels, number.clamp(max=MORE - 1).flatten(-2).long(), "amax"
    )
    wanted = shown - 1 + _by_label(labels, number == MORE)
    labels, _ = torch.broadcast_tensors(labels, shaded.flatten(-2))
    count = _by_label(labels, shaded)
    white = inside & ~shaded
    lines = boards.crossings(white, right) + boards.crossings(
        white.transpose(-1, -2), down.transpose(-1, -2)
    )
    pairs = _total(shaded[..., :-1] & shaded[..., 1:]) + _total(
        shaded[..., :-1, :] & shaded[..., 1:, :]
    )
    return {
        "shaded neighbours": pairs,
        "parts of the unshaded cells beyond the first": _beyond_first(white),
        "room numbers": ((shown > 0) & (count != wanted)).sum(-1),
        "lines through three rooms": lines,
    }


def _tapa(puzzle: Tensor, shaded: Tensor) -> Counts:
    clue = torch.where(puzzle >= WALL, puzzle - WALL, len(TAPA_CLUES))
    table = tapa_table(shaded.device)
    fits = table.flatten()[clue.int() * 256 + boards.surroundings(shaded)]
    return {
        "squares of shaded cells": boards.squares(shaded),
        "parts of the wall beyond the first": _beyond_first(shaded),
        "clues": _total(~fits),
    }


@lru_cache
def tapa_table(device: torch.device | None = None) -> Tensor:
    """(clue, pattern) bool: whether the eight cells round a clue fit it; last, no clue."""
    table = [[fits(clue, runs(pattern)) for pattern in range(256)] for clue in TAPA_CLUES]
    return torch.tensor([*table, [True] * 256], device=device)


def runs(pattern: int) -> list[int]:
    """Lengths of the runs of set bits among eight in a circle; [0] where none is set."""
    if pattern == 255:
        return [8]
    bits = f"{pattern:08b}"
    gap = bits.index("0")
    turned = bits[gap:] + bits[:gap]  # begins with a gap, so that no run goes over the end
    return [len(run) for run in turned.split("0") if run] or [0]


def fits(clue: tuple[int, ...], found: list[int]) -> bool:
    """Whether runs in any order are those of a clue; '?' is any length."""
    rest = list(found)
    for number in clue:
        if number != UNKNOWN:
            if number not in rest:
                return False
            rest.remove(number)
    return len(found) == len(clue)


_RULES: dict[Kind, Callable[[Tensor, Tensor], Counts]] = {
    LIGHTUP: _light_up,
    NURIKABE: _nurikabe,
    HEYAWAKE: _heyawake,
    TAPA: _tapa,
}
