"""The eight symmetries of the square, for puzzles and for tokens, and one form for all eight.

A symmetry is three truth values: whether a cell of the moved board looks up its transposed place,
then whether rows and then columns are counted from the other end.
"""

from functools import lru_cache

import torch
from torch import Tensor

from tiltrm.tasks.base import Symmetry
from tiltrm.tasks.pencil.puzzle import Clue, Kind, PencilPuzzle, edges, enclosed, room_clues
from tiltrm.tasks.pencil.tokens import (
    DOWN,
    LEFT,
    NUMBERS,
    RIGHT,
    ROOM,
    SIDE,
    UP,
    VOCABULARY,
    sorted_clue,
)

Turn = tuple[bool, bool, bool]
Form = tuple[int, int, tuple[Clue, ...], tuple[bool, ...]]

_BOTH = (False, True)
TURNS: tuple[Turn, ...] = tuple((a, b, c) for a in _BOTH for b in _BOTH for c in _BOTH)
_STEPS = {UP: (-1, 0), LEFT: (0, -1), RIGHT: (0, 1), DOWN: (1, 0)}


def sources(turn: Turn, width: int, height: int) -> list[int]:
    """Where the cells of the moved board come from; width and height: of the board before."""
    transposed, from_below, from_right = turn
    found = []
    for row in range(width if transposed else height):
        for column in range(height if transposed else width):
            up, left = (column, row) if transposed else (row, column)
            up = height - 1 - up if from_below else up
            left = width - 1 - left if from_right else left
            found.append(up * width + left)
    return found


def moved(puzzle: PencilPuzzle, turn: Turn) -> PencilPuzzle:
    """The puzzle on a turned or mirrored board."""
    source = sources(turn, puzzle.width, puzzle.height)
    width, height = puzzle.width, puzzle.height
    if turn[0]:
        width, height = height, width
    if not puzzle.borders:
        clues = tuple(puzzle.clues[cell] for cell in source)
        return PencilPuzzle(puzzle.kind, width, height, clues)
    between = dict(zip(edges(puzzle.width, puzzle.height), puzzle.borders, strict=True))
    borders = tuple(
        between[min(source[a], source[b]), max(source[a], source[b])]
        for a, b in edges(width, height)
    )
    rooms = enclosed(borders, width, height)
    firsts = [rooms.index(room) for room in range(max(rooms) + 1)]
    numbers = [puzzle.room_numbers[puzzle.rooms[source[first]]] for first in firsts]
    return PencilPuzzle(puzzle.kind, width, height, room_clues(rooms, numbers), borders)


def canonical(puzzle: PencilPuzzle) -> tuple[Kind, Form]:
    """The same for a puzzle under all eight symmetries, and for no other puzzle."""
    forms = []
    for turn in TURNS:
        form = moved(puzzle, turn)
        clues = tuple(sorted_clue(clue) for clue in form.clues)
        forms.append((form.width, form.height, clues, form.borders))
    return puzzle.kind, min(forms)


@lru_cache
def square(device: torch.device) -> Symmetry:
    """All eight for boards of 10 x 10: cells move, and the borders of rooms are renamed."""
    places = [sources(turn, SIDE, SIDE) for turn in TURNS]
    names = [_names(turn) for turn in TURNS]
    return Symmetry(torch.tensor(places, device=device), torch.tensor(names, device=device))


def _names(turn: Turn) -> list[int]:
    """The new id of each id: a border on one side of a cell lies on another side afterwards."""
    names = list(range(VOCABULARY))
    for sides in range(16):
        turned = sum(bit for bit in _STEPS if sides & _before(turn, bit))
        for number in range(NUMBERS):
            names[ROOM + NUMBERS * sides + number] = ROOM + NUMBERS * turned + number
    return names


def _before(turn: Turn, bit: int) -> int:
    """The side of a cell that becomes this side of the moved cell."""
    transposed, from_below, from_right = turn
    down, right = _STEPS[bit]
    if transposed:
        down, right = right, down
    step = (-down if from_below else down, -right if from_right else right)
    return next(side for side, direction in _STEPS.items() if direction == step)


def draw(count: int, generator: torch.Generator) -> Symmetry:
    """One of the eight for each puzzle."""
    which: Tensor = torch.randint(8, (count,), generator=generator, device=generator.device)
    return square(generator.device).part(which)
