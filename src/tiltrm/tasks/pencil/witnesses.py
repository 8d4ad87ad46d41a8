"""Few clues that leave one solution, found against witnesses: other solutions, from CP-SAT."""

from collections.abc import Callable, Collection, Sequence
from random import Random
from typing import TypeVar

from tiltrm.tasks.pencil.cells import CellBoard, Marks
from tiltrm.tasks.pencil.formulas import Formula

Room = tuple[int, ...]
Name = TypeVar("Name", int, Room)  # of a clue: its cell, or the cells of its room

ROUNDS = 40  # solves for one witness; a layout that takes more is given up
WINDOW = 5  # the side of the windows in which a witness is looked for first


def marks_of(board: CellBoard, marked: Collection[int]) -> Marks:
    """Marked cells -> a truth value for each cell."""
    return tuple(cell in marked for cell in range(board.cells))


def enough_clues(
    formula: Formula, marks: Marks, broken: Callable[[Marks], set[Name]], random: Random,
    worth: Callable[[Name], float] = lambda clue: 1.0,
) -> set[Name] | None:  # fmt: skip
    """Clues that leave one solution, few of them; None where all of them leave another.

    marks: the solution, which the formula excludes. `broken` says which clues a witness breaks,
    `worth` how much a clue is liked beside others.
    """
    chosen: set[Name] = set()
    witnesses: list[set[Name]] = []
    needed: dict[Name, int] = {}
    sample = random.choice((1, 3, 100, 100))  # how greedily clues are chosen that break many
    while True:
        formula.choose(chosen)
        witness = find_witness(formula, marks, random, ROUNDS, windows=1)
        if witness is None:
            break
        found = broken(witness)
        if not found:
            return None
        witnesses.append(found)
        for clue in found:
            needed[clue] = needed.get(clue, 0) + 1
        some = random.sample(sorted(found), min(sample, len(found)))
        chosen.add(max(some, key=lambda clue: needed[clue] * worth(clue)))
    if random.random() < 0.9:
        _drop(formula, chosen, witnesses, broken, random)
    return chosen


def find_witness(
    formula: Formula, marks: Marks, random: Random, rounds: int, *, windows: int,
    first: Sequence[int] = (),
) -> Marks | None:  # fmt: skip
    """Another solution than the marks, or None where there is none.

    It is looked for in windows of the board before, since what differs little from a solution
    keeps most rules. first: cells that the first windows begin at.
    """
    board = formula.board
    width, height = min(WINDOW, board.width), min(WINDOW, board.height)
    for cell in (*first, *random.sample(range(board.cells), windows)):
        row, column = divmod(cell, board.width)
        top = min(max(row - height // 2, 0), board.height - height)
        left = min(max(column - width // 2, 0), board.width - width)
        window = {
            (top + down) * board.width + left + right
            for down in range(height)
            for right in range(width)
        }
        witness = formula.find_near(marks, window, rounds)
        if witness is not None:
            return witness
    return formula.find(rounds)


def _drop(
    formula: Formula, chosen: set[Name], witnesses: list[set[Name]],
    broken: Callable[[Marks], set[Name]], random: Random,
) -> None:  # fmt: skip
    """Remove clues that are not needed for a single solution."""
    for clue in random.sample(sorted(chosen), len(chosen)):
        if any(found & chosen == {clue} for found in witnesses):
            continue
        formula.choose(chosen - {clue})
        witness = formula.find(ROUNDS)
        if witness is None:
            chosen.discard(clue)
        else:
            witnesses.append(broken(witness))
