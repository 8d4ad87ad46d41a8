"""Random Nurikabe puzzles: a sea and its islands, changed until the clues leave one solution.

Islands that are unique are then joined and grown, the small ones first, since people publish few
islands of one cell and many of five and more.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from random import Random

from tiltrm.tasks.pencil import layouts
from tiltrm.tasks.pencil.cells import CellBoard, Marks
from tiltrm.tasks.pencil.clauses import UndecidedError
from tiltrm.tasks.pencil.formulas import Learnt, NurikabeFormula
from tiltrm.tasks.pencil.puzzle import NO_CLUE, NURIKABE, PencilPuzzle
from tiltrm.tasks.pencil.witnesses import find_witness, marks_of

REPAIRS = 60  # changes of one layout
BUDGET = 300  # solves for one layout
JOIN_ROUNDS = 12  # solves for one witness after a change of an island, before it is given up
PLACES = 2  # at most, of the clue of a changed island


def make_nurikabe(board: CellBoard, random: Random) -> tuple[PencilPuzzle, Marks] | None:
    """A Nurikabe with one solution, and this solution; None where the attempt failed."""
    largest = random.choice((6, 8, 10, 12, 16, 20))
    count = round(board.cells / random.uniform(5.0, 9.0))
    water = layouts.sea(board, count, min(largest, 6), random)
    if water is None:
        return None
    clues: dict[int, int] = {}
    learnt: list[Learnt] = []
    witnesses: list[Marks] = []
    rounds = BUDGET  # the first witness takes most of them, later ones gain by what was learnt
    for _ in range(REPAIRS):
        clues = _sizes(board, water, clues, random)
        islands = board.parts(set(range(board.cells)) - water)
        witness = _swapped(board, water, clues, random.sample(islands, len(islands)))
        if witness is None:
            formula = NurikabeFormula(board, clues, random.getrandbits(31), learnt)
            marks = marks_of(board, water)
            formula.exclude(marks)
            witness = find_witness(formula, marks, random, rounds, windows=4)
            rounds -= formula.rounds
            learnt = formula.learnt
        if witness is None:
            clues = _joined_islands(board, water, clues, learnt, largest, random)
            shown = tuple((clues[c],) if c in clues else NO_CLUE for c in range(board.cells))
            return PencilPuzzle(NURIKABE, *board[:2], shown), marks_of(board, water)
        witnesses.append(witness)
        moved = _moved_clue(board, water, clues, witnesses, random)
        if moved is None:
            if not _change(board, water, witness, min(largest, 6), random):
                return None
            witnesses = []
        else:
            clues = moved
    return None


def _joined_islands(
    board: CellBoard, water: set[int], clues: dict[int, int], learnt: list[Learnt], largest: int,
    random: Random,
) -> dict[int, int]:  # fmt: skip
    """Fewer and larger islands, as long as there is one solution; changes the sea."""
    tried: set[int] = set()
    for _ in range(random.randint(board.cells // 8, board.cells // 2)):
        cell = _next_land(board, water, tried, largest, random)
        if cell is None:
            break
        tried.add(cell)
        water.discard(cell)
        for changed in _clue_places(board, water, clues, cell, random):
            formula = NurikabeFormula(board, changed, random.getrandbits(31), learnt)
            unique = _has_one_solution(formula, marks_of(board, water), cell, random)
            learnt = formula.learnt
            if unique:
                clues = changed
                break
        else:
            water.add(cell)
    return clues


def _clue_places(
    board: CellBoard, water: set[int], clues: dict[int, int], cell: int, random: Random
) -> Iterator[dict[int, int]]:
    """The clues with that of the island that has just got this cell in one of its places.

    Places that had a clue come first; those with another solution by a swap are left out.
    """
    island = board.reach(cell, set(range(board.cells)) - water)
    before = [place for place in island if place in clues]
    others = [place for place in island if place not in clues]
    fixed = {clue: size for clue, size in clues.items() if clue not in island}
    found = 0
    for place in random.sample(before, len(before)) + random.sample(others, len(others)):
        changed = fixed | {place: len(island)}
        if _swapped(board, water, changed, [island]) is None:
            yield changed
            found += 1
            if found == PLACES:
                return


def _next_land(
    board: CellBoard, water: set[int], tried: Collection[int], largest: int, random: Random
) -> int | None:
    """A cell of the sea that would join or grow the smallest islands, with some chance in it."""
    best: tuple[float, int] | None = None
    for cell in sorted(water.difference(tried)):
        sizes = [len(part) for part in layouts.parts_beside(board, water, cell)]
        if not sizes or not layouts.can_be_land(board, water, cell, largest):
            continue
        rank = min(sizes) - 2 * len(sizes) + 2 * random.random()
        if best is None or rank < best[0]:
            best = rank, cell
    return None if best is None else best[1]


def _has_one_solution(formula: NurikabeFormula, marks: Marks, near: int, random: Random) -> bool:
    """Whether the marks are the only solution; False too where the search took too long."""
    formula.exclude(marks)
    try:
        return find_witness(formula, marks, random, JOIN_ROUNDS, windows=1, first=[near]) is None
    except UndecidedError:
        return False


def _sizes(
    board: CellBoard, water: set[int], before: Collection[int], random: Random
) -> dict[int, int]:
    """A clue in every island, where it was before if it can."""
    clues = {}
    for part in board.parts(set(range(board.cells)) - water):
        kept = [cell for cell in part if cell in before]
        clues[random.choice(kept or part)] = len(part)
    return clues


def _moved_clue(
    board: CellBoard, water: set[int], clues: Mapping[int, int], witnesses: Sequence[Marks],
    random: Random,
) -> dict[int, int] | None:  # fmt: skip
    """The clues with one elsewhere in its island, so that all witnesses break them, or None."""
    last = witnesses[-1]
    land = set(range(board.cells)) - water
    cells = [cell for cell in sorted(land) if last[cell] and cell not in clues]
    for cell in random.sample(cells, min(len(cells), 8)):
        part = board.reach(cell, land)
        moved = {c: size for c, size in clues.items() if c not in part} | {cell: len(part)}
        if not any(_keeps(board, moved, witness) for witness in witnesses):
            return moved
    return None


def _swapped(
    board: CellBoard, water: set[int], clues: Collection[int], islands: Iterable[Sequence[int]]
) -> Marks | None:
    """Another solution in which one cell of one of these islands lies elsewhere, or None."""
    for part in islands:
        island = set(part)
        grown = [
            cell for cell in board.border(part)
            if all(other in water or other in island for other in board.beside[cell])
        ]  # fmt: skip
        for gone in part:
            if gone in clues:
                continue
            sea = water | {gone}
            for new in grown:
                if (
                    any(other in island and other != gone for other in board.beside[new])
                    and any(other in water and other != new for other in board.beside[gone])
                    and not layouts.squares_with(board, water - {new}, gone)
                    and layouts.connected_without(board, sea, new)
                    and len(board.reach(new, island - {gone})) == len(part)
                ):
                    return marks_of(board, sea - {new})
    return None


def _keeps(board: CellBoard, clues: Mapping[int, int], marks: Marks) -> bool:
    """Whether every island has one clue, of its size."""
    if any(marks[clue] for clue in clues):
        return False
    for part in board.parts([cell for cell, mark in enumerate(marks) if not mark]):
        if [clues[cell] for cell in part if cell in clues] != [len(part)]:
            return False
    return True


def _change(
    board: CellBoard, water: set[int], witness: Marks, largest: int, random: Random
) -> bool:
    """Turn a cell into land or sea, if possible where the witness differs; False where none can."""
    cells = random.sample(range(board.cells), board.cells)
    cells.sort(
        key=lambda cell: (
            witness[cell] == (cell in water),
            all(other in water for other in board.beside[cell]),  # islands of one cell last
        )
    )
    for cell in cells:
        if cell in water:
            if layouts.can_be_land(board, water, cell, largest):
                water.discard(cell)
                return True
        elif layouts.can_be_sea(board, water, cell):
            water.add(cell)
            return True
    return False
