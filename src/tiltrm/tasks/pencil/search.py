"""The solutions of a pencil puzzle, found and counted by OR-Tools' CP-SAT.

Proved by tests/tasks/pencil/test_pencil_generate.py.
"""

from tiltrm.errors import SettingsError
from tiltrm.tasks.pencil.cells import Marks, board_of, rooms_of
from tiltrm.tasks.pencil.clauses import UndecidedError, have_ortools
from tiltrm.tasks.pencil.formulas import (
    ROUNDS,
    Formula,
    HeyawakeFormula,
    LightUpFormula,
    NurikabeFormula,
    TapaFormula,
)
from tiltrm.tasks.pencil.puzzle import HEYAWAKE, LIGHTUP, NURIKABE, TAPA, PencilPuzzle
from tiltrm.tasks.pencil.rules import fits

CHEAP_ROUNDS = 200  # solves for one solution before counting gives up: seconds at most


def formula_of(puzzle: PencilPuzzle, seed: int = 0) -> Formula:
    """The formula of a puzzle with all its clues turned on."""
    board = board_of(puzzle.width, puzzle.height)
    clues = {cell: clue for cell, clue in enumerate(puzzle.clues) if clue}
    formula: Formula
    if puzzle.kind == LIGHTUP:
        formula = LightUpFormula(board, {cell: clue[0] for cell, clue in clues.items()}, seed)
    elif puzzle.kind == NURIKABE:
        formula = NurikabeFormula(board, {cell: clue[0] for cell, clue in clues.items()}, seed)
    elif puzzle.kind == TAPA:
        formula = TapaFormula(board, clues, seed)
    elif puzzle.kind == HEYAWAKE:
        formula = HeyawakeFormula(board, seed)
        formula.lay(puzzle.borders)
        for room, clue in zip(rooms_of(puzzle.rooms), puzzle.room_numbers, strict=True):
            if clue:
                formula.add_number(room, clue[0])
    else:
        raise SettingsError(f"expected a pencil puzzle to search, got {puzzle.kind.name}")
    formula.choose_all()
    return formula


def solutions(
    puzzle: PencilPuzzle, limit: int = 2, seed: int = 0, rounds: int = ROUNDS
) -> list[Marks]:
    """At most `limit` solutions: two are enough to know whether there is just one.

    UndecidedError where `rounds` solves do not tell.
    """
    formula = formula_of(puzzle, seed)
    found = lone_walls(puzzle)[:limit] if puzzle.kind == TAPA else []
    for known in found:  # the formula knows the one without a shaded cell, too
        formula.exclude(known)
    while len(found) < limit:
        marks = formula.find(rounds)
        if marks is None:
            break
        found.append(marks)
        formula.exclude(marks)
    return found


def count_cheaply(puzzle: PencilPuzzle) -> int | None:
    """0, 1, or 2 for several; None without OR-Tools, or where it takes too long."""
    if not have_ortools():
        return None
    try:
        return len(solutions(puzzle, rounds=CHEAP_ROUNDS))
    except UndecidedError:
        return None


def lone_walls(puzzle: PencilPuzzle) -> list[Marks]:
    """The solutions of a Tapa with at most one shaded cell."""
    board = board_of(puzzle.width, puzzle.height)
    around = [(clue, board.around(cell)) for cell, clue in enumerate(puzzle.clues) if clue]
    free = [cell for cell, clue in enumerate(puzzle.clues) if not clue]
    found = []
    for shaded in (board.cells, *free):  # the first of them shades no cell
        if all(fits(clue, [int(shaded in others)]) for clue, others in around):
            found.append(tuple(cell == shaded for cell in range(board.cells)))
    return found
