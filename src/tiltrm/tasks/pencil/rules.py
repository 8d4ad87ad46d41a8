"""The rules of the pencil puzzles on batches of boards: how often each of them is broken.

Every function takes a question and the marked cells of an answer and returns counts by the name
of the rule, (...) int64 each; all are 0 exactly for a solution. Cells outside the board count as
not marked. Proved against a plain check, cell by cell, by tests/tasks/pencil/test_pencil_rules.py.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from tiltrm.tasks.base import PAD
from tiltrm.tasks.pencil import boards
from tiltrm.tasks.pencil.puzzle import HEYAWAKE, LIGHTUP, NURIKABE, TAPA, UNKNOWN, Kind
from tiltrm.tasks.pencil.tokens import (
    BLACK,
    BLANK,
    CELLS,
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
    return ~in_room(puzzle) & (puzzle != BLANK)


def decided(puzzle: Tensor) -> Tensor:
    """The answer's id in the given cells; a clue is not marked."""
    return torch.where((puzzle >= UNSHADED) & (puzzle <= LIGHT), puzzle, UNSHADED)


def broken(kind: Kind, puzzle: Tensor, answer: Tensor) -> Counts:
    """Counts by rule: two (..., cell) that broadcast -> (...) int64 each."""
    puzzle, answer = torch.broadcast_tensors(puzzle, answer)
    lead = puzzle.shape[:-1]
    rows = puzzle.reshape(-1, CELLS), answer.reshape(-1, CELLS)
    shared, own = _broken({kind: lead.numel()}, *rows)
    return {name: count.view(lead) for name, count in (shared | own[kind]).items()}


def violations(sizes: Mapping[Kind, int], puzzle: Tensor, answer: Tensor) -> Tensor:
    """The sum of all counts for boards of several types: two (board, cell) -> (board,) int64.

    sizes: how many boards are of each type, in their order. The types share most operations. The
    device is waited for once, to see that all connected cells were found; seldom more often.
    """
    shared, own = _broken(sizes, puzzle, answer)
    sums = torch.cat([_sum(counts) for counts in own.values()])
    return sums + _sum(shared)


def _sum(counts: Counts) -> Tensor:
    return torch.stack([*counts.values()]).sum(0)


class _Lines(NamedTuple):
    """The runs of some boards, and what they connect: (board, ...) each, as `boards` makes them."""

    starts: Tensor  # (2, row, column) bool
    runs: Tensor  # (2, cell) int64
    labels: Tensor  # (cell,) int64


class _Boards(NamedTuple):
    """Boards of one type: (board, row, column) each."""

    puzzle: Tensor  # int16
    marked: Tensor  # bool, False outside the board
    areas: _Lines  # cells of one class (`_classes`)
    rooms: _Lines  # cells of one room; for Heyawake only

    @property
    def inside(self) -> Tensor:
        return self.puzzle != PAD


def _broken(
    sizes: Mapping[Kind, int], puzzle: Tensor, answer: Tensor
) -> tuple[Counts, dict[Kind, Counts]]:
    """Counts of the rules that all types share, for all boards, and of each type's own rules."""
    puzzle, answer = puzzle.to(torch.int16), answer.to(torch.int16)  # 256 is no uint8
    inside, fixed = puzzle != PAD, given(puzzle)
    marks = [answer.new_full((size, 1), mark(kind)) for kind, size in sizes.items()]
    marked = answer == torch.cat(marks)
    filled = marked | (answer == UNSHADED)
    shared = {
        "changed clues": (inside & fixed & (answer != decided(puzzle))).sum(-1),
        "cells not filled in": (inside & ~fixed & ~filled).sum(-1),
    }
    boards_of = _with_lines(sizes, _grid(puzzle), _grid(marked & inside))
    return shared, {kind: _RULES[kind](own) for kind, own in boards_of.items()}


def _with_lines(sizes: Mapping[Kind, int], puzzle: Tensor, marked: Tensor) -> dict[Kind, _Boards]:
    """The boards of each type. Areas of all types and rooms are connected in one go."""
    numbers = [*sizes.values()]
    puzzles, markings = puzzle.split(numbers), marked.split(numbers)
    starts = boards.starts(torch.cat([*map(_classes, sizes, puzzles, markings)]))
    of_rooms = starts[:0]
    if HEYAWAKE in sizes:
        of_rooms = _room_starts(puzzles[[*sizes].index(HEYAWAKE)])
    starts = torch.cat((starts, of_rooms))
    runs = boards.runs(starts)
    lines = starts, runs, boards.components(runs)
    *areas, rooms = map(_Lines, *(each.split([*numbers, len(of_rooms)]) for each in lines))
    parts = zip(sizes, puzzles, markings, areas, strict=True)
    return {kind: _Boards(own, marks, area, rooms) for kind, own, marks, area in parts}


def _classes(kind: Kind, puzzle: Tensor, marked: Tensor) -> Tensor:
    """Light Up: 1 where light passes, else 0. Others: 2 marked, 1 not marked, 0 outside."""
    inside = puzzle != PAD
    return (inside & ~_black(puzzle)).to(torch.int8) if kind == LIGHTUP else inside + marked.char()


def _black(puzzle: Tensor) -> Tensor:
    return (puzzle >= BLACK) & (puzzle < ISLAND)


def in_room(puzzle: Tensor) -> Tensor:
    """Whether these are ids of a Heyawake's cells."""
    return (puzzle >= ROOM) & (puzzle < WALL)


def room_number(ids: Tensor) -> Tensor:
    """What the cells of rooms show of their numbers: 0 for none, n + 1 for n, or MORE."""
    return (ids - ROOM) % NUMBERS


def room_labels(puzzle: Tensor) -> Tensor:
    """A label for each cell, equal within a room: (board, cell) of Heyawakes -> (board, cell)."""
    return boards.components(boards.runs(_room_starts(_grid(puzzle.to(torch.int16)))))


def _room_starts(puzzle: Tensor) -> Tensor:
    """Where runs of one room start: (board, 2, row, column) bool."""
    sides = torch.where(in_room(puzzle), (puzzle - ROOM) // NUMBERS, 0)
    left, above = boards.previous(sides).unbind(-3)
    border = torch.stack((sides & LEFT | left & RIGHT, sides & UP | above & DOWN), -3) > 0
    return border | boards.starts((puzzle != PAD).to(torch.int8))


def _grid(values: Tensor) -> Tensor:
    return values.view(-1, SIDE, SIDE)


def _total(cells: Tensor) -> Tensor:
    return cells.sum((-2, -1))


def _light_up(own: _Boards) -> Counts:
    black = _black(own.puzzle)
    white = own.inside & ~black
    lights = own.marked & white
    runs = own.areas.runs.flatten(-2)
    in_run = boards.sum_by(runs, lights.flatten(-2).repeat(1, 2))
    seen_by = in_run.gather(-1, runs).view(own.areas.runs.shape).sum(-2)
    lit = _grid(seen_by) > 0
    wrong = black & (own.puzzle > BLACK) & (boards.neighbours(lights) != own.puzzle - BLACK - 1)
    return {
        "lights that see each other": boards.beyond_first(in_run),
        "cells without light": _total(white & ~lit),
        "numbers": _total(wrong),
    }


def _nurikabe(own: _Boards) -> Counts:
    island = own.inside & ~own.marked
    clue = island & (own.puzzle >= ISLAND) & (own.puzzle <= ISLAND + LARGEST_ISLAND)
    size = (own.puzzle - ISLAND) * clue
    values = torch.stack((own.marked, island, clue, size > 0, size), -3).flatten(-2)
    sums = boards.sum_by(own.areas.labels[:, None], values)
    sea, cells, clues, known, sizes = sums.unbind(-2)
    return {
        "squares of shaded cells": boards.squares(own.marked),
        "parts of the sea beyond the first": _parts_beyond_first(sea),
        "islands without a clue": ((cells > 0) & (clues == 0)).sum(-1),
        "clues beyond the first of an island": boards.beyond_first(clues),
        "islands of a wrong size": ((clues == 1) & (known == 1) & (cells != sizes)).sum(-1),
    }


def _parts_beyond_first(sizes: Tensor) -> Tensor:
    """How many sizes are above 0, less one: (board, area) -> (board,)."""
    return ((sizes > 0).sum(-1) - 1).clamp(min=0)


def _heyawake(own: _Boards) -> Counts:
    areas, rooms = own.areas, own.rooms
    white = own.inside & ~own.marked
    number = torch.where(in_room(own.puzzle), room_number(own.puzzle), 0).flatten(-2)
    more = number == MORE
    shown = boards.largest_by(rooms.labels, number.clamp(max=MORE - 1))
    beyond_more = boards.sum_by(rooms.labels, own.marked.flatten(-2).char() - more.char())
    crossed = (rooms.starts & ~areas.starts & white[:, None]).flatten(-3)
    pairs = own.marked[:, None] & boards.previous(own.marked)
    return {
        "shaded neighbours": pairs.flatten(-3).sum(-1),
        "parts of the unshaded cells beyond the first": _parts_beyond_first(
            boards.sum_by(areas.labels, white.flatten(-2))
        ),
        "room numbers": ((shown > 0) & (beyond_more != shown - 1)).sum(-1),
        "lines through three rooms": boards.beyond_first(
            boards.sum_by(areas.runs.flatten(-2), crossed)
        ),
    }


def _tapa(own: _Boards) -> Counts:
    clue = torch.where(own.puzzle >= WALL, own.puzzle - WALL, len(TAPA_CLUES))
    around = clue.int() * 256 + boards.surroundings(own.marked)
    fits = tapa_table(own.puzzle.device).flatten()[around]
    wall = boards.sum_by(own.areas.labels, own.marked.flatten(-2))
    return {
        "squares of shaded cells": boards.squares(own.marked),
        "parts of the wall beyond the first": _parts_beyond_first(wall),
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


_RULES: dict[Kind, Callable[[_Boards], Counts]] = {
    LIGHTUP: _light_up,
    NURIKABE: _nurikabe,
    HEYAWAKE: _heyawake,
    TAPA: _tapa,
}
