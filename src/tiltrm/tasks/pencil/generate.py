"""Pencil puzzles of one's own, each with exactly one solution.

A random solution comes first. Then clues are added against witnesses: CP-SAT finds another
solution of the clues so far, and one of the clues that this solution breaks is added, until there
is no other solution; clues that no witness needs are tried without. Where all clues allow another
solution, the layout is changed where the two differ: a black cell (Light Up), a further room
(Heyawake), land or sea (Nurikabe). The same seed gives the same puzzle.
Proved by tests/tasks/pencil/test_pencil_generate.py.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from random import Random
from typing import TypeVar

from tiltrm.errors import SettingsError
from tiltrm.tasks.pencil import layouts
from tiltrm.tasks.pencil.cells import CellBoard, Marks, board_of, rooms_of
from tiltrm.tasks.pencil.clauses import UndecidedError
from tiltrm.tasks.pencil.formulas import (
    Formula,
    HeyawakeFormula,
    Learnt,
    LightUpFormula,
    NurikabeFormula,
    TapaFormula,
)
from tiltrm.tasks.pencil.puzzle import (
    HEYAWAKE,
    LARGEST,
    LIGHTUP,
    NO_CLUE,
    NURIKABE,
    SMALLEST,
    TAPA,
    UNKNOWN,
    Clue,
    Kind,
    PencilPuzzle,
    between_rooms,
    enclosed,
    room_clues,
)
from tiltrm.tasks.pencil.rules import runs
from tiltrm.tasks.pencil.search import lone_walls, solutions
from tiltrm.tasks.pencil.tokens import sorted_clue

Made = tuple[PencilPuzzle, Marks]
Room = tuple[int, ...]
Name = TypeVar("Name", int, Room)  # of a clue: its cell, or the cells of its room

ATTEMPTS = 1000
ROUNDS = 40  # solves for one witness; a layout that takes more is given up
REPAIRS = 60  # changes of one layout
WINDOW = 5  # the side of the windows in which a witness is looked for first
BUDGET = 300  # solves for one layout of Nurikabe


def generate(kind: Kind, seed: int, size: tuple[int, int] | None = None) -> Made:
    """A puzzle with one solution, and this solution; size: width and height, drawn unless given."""
    random = Random(f"{kind.name} {seed}")
    for _ in range(ATTEMPTS):
        board = board_of(*(size or draw_size(random)))
        try:
            made = _MAKERS[kind](board, random)
        except UndecidedError:
            continue
        if made is not None:
            return made
    raise SettingsError(f"expected a {kind.name} from the seed {seed}, got none; take another")


def draw_size(random: Random) -> tuple[int, int]:
    """Width and height: half of the boards 10 x 10, a quarter nearly as large, the rest any."""
    choice = random.random()
    if choice < 0.5:
        return LARGEST, LARGEST
    least = 7 if choice < 0.75 else SMALLEST
    return random.randint(least, LARGEST), random.randint(least, LARGEST)


def marks_of(board: CellBoard, marked: Collection[int]) -> Marks:
    """Marked cells -> a truth value for each cell."""
    return tuple(cell in marked for cell in range(board.cells))


def enough_clues(
    formula: Formula, marks: Marks, broken: Callable[[Marks], set[Name]], random: Random
) -> set[Name] | None:
    """Clues that leave one solution, few of them; None where all of them leave another.

    marks: the solution, which the formula excludes. `broken` says which clues a witness breaks.
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
        chosen.add(max(some, key=lambda clue: needed[clue]))
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


def _more(chosen: set[Name], all_clues: Iterable[Name], random: Random) -> set[Name]:
    """Sometimes a few clues more than are needed, as people have them."""
    if random.random() < 0.75:
        return chosen
    share = random.uniform(0.02, 0.25)
    return chosen | {clue for clue in sorted(all_clues) if random.random() < share}


def _light_up(board: CellBoard, random: Random) -> Made | None:
    partners = layouts.mirrored(board, random)
    black: set[int] = set()
    wanted = random.uniform(0.06, 0.28) * board.cells
    while len(black) < wanted:
        black |= partners(random.randrange(board.cells))
    marked: set[int] = set()
    for _ in range(REPAIRS):
        marked = layouts.lights(board, black, sorted(marked - black), random)
        numbers = {cell: _lights_beside(board, marked, cell) for cell in black}
        formula = LightUpFormula(board, numbers, random.getrandbits(31))
        formula.exclude(marks_of(board, marked))
        formula.choose_all()
        witness = formula.find(ROUNDS)
        if witness is None:
            chosen = enough_clues(
                formula, marks_of(board, marked), partial(_broken_numbers, board, numbers), random
            )
            if chosen is None:
                return None
            chosen = _more(chosen, black, random)
            shown = {cell: numbers[cell] if cell in chosen else UNKNOWN for cell in black}
            clues = tuple((shown[c],) if c in shown else NO_CLUE for c in range(board.cells))
            return PencilPuzzle(LIGHTUP, *board[:2], clues), marks_of(board, marked)
        different = [c for c in range(board.cells) if witness[c] != (c in marked)]
        black |= partners(random.choice(different))
        if len(black) > 0.45 * board.cells:
            return None
    return None


def _lights_beside(board: CellBoard, lights: Collection[int], cell: int) -> int:
    return sum(other in lights for other in board.beside[cell])


def _broken_numbers(board: CellBoard, numbers: Mapping[int, int], marks: Marks) -> set[int]:
    lights = {cell for cell, mark in enumerate(marks) if mark}
    return {cell for cell, n in numbers.items() if _lights_beside(board, lights, cell) != n}


def _heyawake(board: CellBoard, random: Random) -> Made | None:
    labels = layouts.rooms(board, round(board.cells / random.uniform(3.5, 9.0)), random)
    labels, shaded = layouts.shading(board, labels, random.uniform(0.15, 0.36), random)
    marks = marks_of(board, shaded)
    formula = HeyawakeFormula(board, random.getrandbits(31))
    formula.exclude(marks)
    for _ in range(REPAIRS):
        borders = between_rooms(labels, *board[:2])
        labels = list(enclosed(borders, *board[:2]))
        numbers = {room: _count(marks, room) for room in rooms_of(labels)}
        formula.lay(borders)
        for room, number in numbers.items():
            formula.add_number(room, number)
        formula.choose(numbers)
        witness = formula.find(ROUNDS)
        if witness is None:
            chosen = enough_clues(formula, marks, partial(_broken_rooms, numbers), random)
            if chosen is None:
                return None
            chosen = _more(chosen, numbers, random)
            clues = [(n,) if room in chosen else NO_CLUE for room, n in numbers.items()]
            puzzle = PencilPuzzle(HEYAWAKE, *board[:2], room_clues(labels, clues), borders)
            return puzzle, marks
        changed = _other_rooms(board, labels, shaded, witness, random)
        if changed is None:
            return None
        labels = changed
    return None


def _count(marks: Marks, cells: Iterable[int]) -> int:
    return sum(marks[cell] for cell in cells)


def _broken_rooms(numbers: Mapping[Room, int], marks: Marks) -> set[Room]:
    return {room for room, number in numbers.items() if _count(marks, room) != number}


def _other_rooms(
    board: CellBoard, labels: Sequence[int], shaded: set[int], witness: Marks, random: Random
) -> list[int] | None:
    """Rooms that differ so that the witness breaks a number; None where none was found.

    A room is split between a cell that only the solution shades and one that only the witness
    does, or one of these cells goes over to the next room.
    """
    mine = [cell for cell in sorted(shaded) if not witness[cell]]
    other = [cell for cell, mark in enumerate(witness) if mark and cell not in shaded]
    pairs = [(a, b) for a in mine for b in other if labels[a] == labels[b]]
    moves = [(a, b) for a in mine + other for b in board.beside[a] if labels[a] != labels[b]]
    random.shuffle(pairs)
    random.shuffle(moves)
    splits = (layouts.split_room(board, labels, *pair, random) for pair in pairs[:8])
    gifts = (layouts.give_cell(board, labels, *pair) for pair in moves[:8])
    for changed in chain(splits, gifts):
        if changed is not None and not layouts.crossing_lines(board, changed, shaded):
            return changed
    return None


def _tapa(board: CellBoard, random: Random) -> Made | None:
    shaded = layouts.wall(board, random.uniform(0.35, 0.65), random.uniform(0.2, 0.95), random)
    if len(shaded) < board.cells / 4:
        return None
    marks = marks_of(board, shaded)
    free = [cell for cell in range(board.cells) if cell not in shaded]
    known = {cell: _clue_round(board, marks, cell) for cell in free}
    formula = TapaFormula(board, known, random.getrandbits(31))
    formula.exclude(marks)

    def broken(other: Marks) -> set[int]:
        return {
            cell for cell in free if other[cell] or _clue_round(board, other, cell) != known[cell]
        }

    chosen = enough_clues(formula, marks, broken, random)
    if chosen is None:
        return None
    chosen = _more(chosen, free, random)
    clues = tuple(known[cell] if cell in chosen else NO_CLUE for cell in range(board.cells))
    puzzle = PencilPuzzle(TAPA, *board[:2], clues)
    if lone_walls(puzzle):
        return None
    return (_weakened(puzzle, random) if random.random() < 0.1 else puzzle), marks


def _clue_round(board: CellBoard, marks: Marks, cell: int) -> Clue:
    around = board.around(cell)
    pattern = sum(1 << bit for bit, c in enumerate(around) if c is not None and marks[c])
    return sorted_clue(tuple(runs(pattern)))


def _weakened(puzzle: PencilPuzzle, random: Random) -> PencilPuzzle:
    """The puzzle with '?' for some numbers, where it still has one solution."""
    cells = [cell for cell, clue in enumerate(puzzle.clues) if clue]
    for cell in random.sample(cells, min(4, len(cells))):
        clues = list(puzzle.clues)
        numbers = list(clues[cell])
        numbers[random.randrange(len(numbers))] = UNKNOWN
        clues[cell] = sorted_clue(tuple(numbers))
        weaker = PencilPuzzle(puzzle.kind, puzzle.width, puzzle.height, tuple(clues))
        if len(solutions(weaker)) == 1:
            puzzle = weaker
    return puzzle


def _nurikabe(board: CellBoard, random: Random) -> Made | None:
    largest = random.choice((4, 5, 6, 7, 8, 10, 14))
    islands = round(board.cells / random.uniform(5.0, 8.0))
    water = layouts.sea(board, islands, min(largest, 6), random)
    if water is None:
        return None
    clues: dict[int, int] = {}
    learnt: list[Learnt] = []
    witnesses: list[Marks] = []
    rounds = BUDGET  # the first witness takes most of them, later ones gain by what was learnt
    for _ in range(REPAIRS):
        clues = _sizes(board, water, clues, random)
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

    def touched(cell: int) -> int:
        return sum(other not in water for other in board.beside[cell])

    tries = random.randint(board.cells // 10, board.cells // 2)
    cells = random.sample(sorted(water), len(water))
    cells.sort(key=touched, reverse=True)
    for cell in [cell for cell in cells if touched(cell)][:tries]:
        if not layouts.can_be_land(board, water, cell, largest):
            continue
        water.discard(cell)
        changed = _sizes(board, water, clues, random)
        formula = NurikabeFormula(board, changed, random.getrandbits(31), learnt)
        marks = marks_of(board, water)
        formula.exclude(marks)
        try:
            witness = find_witness(formula, marks, random, ROUNDS, windows=3, first=[cell])
        except UndecidedError:
            witness = marks
        learnt = formula.learnt
        if witness is None:
            clues = changed
        else:
            water.add(cell)
    return clues


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


_MAKERS: dict[Kind, Callable[[CellBoard, Random], Made | None]] = {
    LIGHTUP: _light_up,
    NURIKABE: _nurikabe,
    HEYAWAKE: _heyawake,
    TAPA: _tapa,
}
