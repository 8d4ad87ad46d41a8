"""Pencil puzzles of one's own, each with exactly one solution.

A random solution comes first. Then clues are added against witnesses: CP-SAT finds another
solution of the clues so far, and one of the clues that this solution breaks is added, until there
is no other solution; clues that no witness needs are tried without. Where all clues allow another
solution, the layout is changed where the two differ: a black cell (Light Up), a further room
(Heyawake), land or sea (Nurikabe). The same seed gives the same puzzle.
Proved by tests/tasks/pencil/test_pencil_generate.py.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from random import Random

from tiltrm.errors import SettingsError
from tiltrm.tasks.pencil import layouts
from tiltrm.tasks.pencil.cells import CellBoard, Marks, board_of, rooms_of
from tiltrm.tasks.pencil.clauses import UndecidedError
from tiltrm.tasks.pencil.formulas import HeyawakeFormula, LightUpFormula, TapaFormula
from tiltrm.tasks.pencil.nurikabe import make_nurikabe
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
    edges,
    enclosed,
    room_clues,
)
from tiltrm.tasks.pencil.rules import runs
from tiltrm.tasks.pencil.search import lone_walls, solutions
from tiltrm.tasks.pencil.tokens import sorted_clue
from tiltrm.tasks.pencil.witnesses import ROUNDS, Name, Room, enough_clues, marks_of

Made = tuple[PencilPuzzle, Marks]

ATTEMPTS = 1000
REPAIRS = 60  # changes of one layout


def generate(kind: Kind, seed: int, size: tuple[int, int] | None = None) -> Made:
    """A puzzle with one solution, and this solution; size: width and height, drawn unless given."""
    random = Random(f"{kind.name} {seed}")
    board = board_of(*(size or draw_size(random)))  # once: larger boards fail more often
    for _ in range(ATTEMPTS):
        try:
            made = _MAKERS[kind](board, random)
        except UndecidedError:
            continue
        if made is not None:
            return made
    raise SettingsError(f"expected a {kind.name} from the seed {seed}, got none; take another")


def draw_size(random: Random) -> tuple[int, int]:
    """Width and height: most boards 10 x 10, a fifth nearly as large, the rest any."""
    choice = random.random()
    if choice < 0.6:
        return LARGEST, LARGEST
    least = 7 if choice < 0.8 else SMALLEST
    return random.randint(least, LARGEST), random.randint(least, LARGEST)


def _more(
    chosen: set[Name], all_clues: Iterable[Name], random: Random, *, often: float = 0.25,
    most: float = 0.25,
) -> set[Name]:  # fmt: skip
    """Sometimes a few clues more than are needed, as people have them."""
    if random.random() >= often:
        return chosen
    share = random.uniform(0.02, most)
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
    """Rooms of any shape, or rectangles only, as most people have them."""
    formula = HeyawakeFormula(board, random.getrandbits(31))
    straight = random.random() < 0.75
    if straight:
        labels = layouts.rectangles(board, random.uniform(3.5, 7.5), random)
        shaded = _random_shading(formula, labels, random)
        if shaded is None:
            return None
    else:
        labels = layouts.rooms(board, round(board.cells / random.uniform(4.5, 10.0)), random)
        labels, shaded = layouts.shading(board, labels, random.uniform(0.24, 0.36), random)
    marks = marks_of(board, shaded)
    formula.exclude(marks)
    for _ in range(REPAIRS):
        labels, _ = _lay_rooms(formula, labels, marks)
        witness = formula.find(ROUNDS)
        if witness is None:
            labels = _joined_rooms(formula, labels, marks, random, straight=straight)
            return _heyawake_clues(formula, labels, marks, random)
        changed = _other_rooms(board, labels, shaded, witness, random, straight=straight)
        if changed is None:
            return None
        labels = changed
    return None


def _random_shading(
    formula: HeyawakeFormula, labels: Sequence[int], random: Random
) -> set[int] | None:
    """Shaded cells that keep all rules in these rooms, densely; None where none were found.

    CP-SAT completes a few cells that are shaded at random.
    """
    board = formula.board
    formula.lay(between_rooms(labels, *board[:2]))
    cells = sorted(layouts.densely_shaded(board, set(), 0.1, random))
    while True:
        for cell in cells:
            formula.clauses.fix(cell, True)
        found = formula.find(ROUNDS)
        for cell in cells:
            formula.clauses.free(cell)
        if found is not None:
            shaded = {cell for cell, mark in enumerate(found) if mark}
            return layouts.densely_shaded(board, shaded, random.uniform(0.26, 0.4), random)
        if not cells:
            return None
        cells = random.sample(cells, len(cells) // 2)


def _lay_rooms(
    formula: HeyawakeFormula, labels: Sequence[int], marks: Marks
) -> tuple[list[int], dict[Room, int]]:
    """The formula with these rooms and all of their numbers; rooms in order, and their numbers."""
    size = formula.board[:2]
    borders = between_rooms(labels, *size)
    ordered = list(enclosed(borders, *size))
    numbers = {room: _count(marks, room) for room in rooms_of(ordered)}
    formula.lay(borders)
    for room, number in numbers.items():
        formula.add_number(room, number)
    formula.choose(numbers)
    return ordered, numbers


def _joined_rooms(
    formula: HeyawakeFormula, labels: list[int], marks: Marks, random: Random, *, straight: bool
) -> list[int]:
    """Fewer and larger rooms, the smallest joined first, as long as there is one solution.

    straight: rectangles only.
    """
    board = formula.board
    tried: set[Room] = set()
    for _ in range(random.randint(0, board.cells // 4)):
        beside = {(labels[c], labels[o]) for c, o in edges(*board[:2]) if labels[c] != labels[o]}
        rooms = rooms_of(labels)
        best: tuple[float, Room] | None = None
        for one, two in sorted(beside):
            union = tuple(sorted((*rooms[one], *rooms[two])))
            ragged = not layouts.is_rectangle(board, union)
            rank = len(union) + 4 * ragged + random.random()
            if union in tried or (straight and ragged):
                continue
            if best is None or rank < best[0]:
                best = rank, union
        if best is None:
            break
        union = best[1]
        tried.add(union)
        joined = [len(rooms) if cell in union else label for cell, label in enumerate(labels)]
        try:
            ordered, _ = _lay_rooms(formula, joined, marks)
            unique = formula.find(ROUNDS) is None
        except UndecidedError:
            unique = False
        if unique:
            labels = ordered
    return labels


def _heyawake_clues(
    formula: HeyawakeFormula, labels: list[int], marks: Marks, random: Random
) -> Made | None:
    """Numbers that leave one solution in these rooms, and some more."""
    board = formula.board
    labels, numbers = _lay_rooms(formula, labels, marks)
    large = random.random() < 0.7  # people like large numbers
    chosen = enough_clues(
        formula, marks, partial(_broken_rooms, numbers), random,
        lambda room: 1.0 + numbers[room] if large else 1.0,
    )  # fmt: skip
    if chosen is None:
        return None
    chosen = _more(chosen, numbers, random, often=0.5, most=0.8)
    clues = [(n,) if room in chosen else NO_CLUE for room, n in numbers.items()]
    borders = between_rooms(labels, *board[:2])
    return PencilPuzzle(HEYAWAKE, *board[:2], room_clues(labels, clues), borders), marks


def _count(marks: Marks, cells: Iterable[int]) -> int:
    return sum(marks[cell] for cell in cells)


def _broken_rooms(numbers: Mapping[Room, int], marks: Marks) -> set[Room]:
    return {room for room, number in numbers.items() if _count(marks, room) != number}


def _other_rooms(
    board: CellBoard, labels: Sequence[int], shaded: set[int], witness: Marks, random: Random, *,
    straight: bool,
) -> list[int] | None:  # fmt: skip
    """Rooms that differ so that the witness breaks a number; None where none was found.

    A room is split between a cell that only the solution shades and one that only the witness
    does, straight if asked for; otherwise, one of these cells may go over to the next room.
    """
    mine = [cell for cell in sorted(shaded) if not witness[cell]]
    other = [cell for cell, mark in enumerate(witness) if mark and cell not in shaded]
    pairs = [(a, b) for a in mine for b in other if labels[a] == labels[b]]
    moves = [(a, b) for a in mine + other for b in board.beside[a] if labels[a] != labels[b]]
    random.shuffle(pairs)
    random.shuffle(moves)
    options: Iterable[list[int] | None]
    if straight:
        options = layouts.straight_cuts(board, labels, pairs, random)[:40]
    else:
        splits = (layouts.split_room(board, labels, *pair, random) for pair in pairs[:16])
        gifts = (layouts.give_cell(board, labels, *pair) for pair in moves[:8])
        options = chain(splits, gifts)
    for changed in options:
        if changed is not None and not layouts.crossing_lines(board, changed, shaded):
            return changed
    return None


LIKED = {  # clues that people write, and how often beside each other
    (0,): 1, (1,): 3, (2,): 3, (3,): 4, (4,): 3, (5,): 3, (6,): 1, (1, 1): 3, (1, 2): 3, (1, 3): 5,
    (1, 4): 2, (2, 2): 4, (2, 3): 3, (2, 4): 1, (3, 3): 5, (1, 1, 1): 2, (1, 1, 2): 2,
    (1, 1, 3): 1, (1, 2, 2): 1, (1, 1, 1, 1): 2,
}  # fmt: skip


def _tapa(board: CellBoard, random: Random) -> Made | None:
    """A wall that grows at random, or one round clues that come first, as people draw them."""
    liked: Mapping[int, Clue] = {}
    if random.random() < 0.7:
        liked, shaded = _wall_round_clues(board, random)
    else:
        bends = random.uniform(0.2, 0.95) if random.random() < 0.2 else random.uniform(0.85, 1.0)
        shaded = layouts.wall(board, random.uniform(0.35, 0.62), bends, random)
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

    taste = random.choice((0, 1, 2, 3))  # for clues of several numbers, which say more

    def worth(cell: int) -> float:
        run = known[cell][0] if len(known[cell]) == 1 else 0
        factor = 0.05 if run > 5 else 0.3 if run > 3 else 1.0
        return float(len(known[cell]) ** taste) * factor * (3.0 if cell in liked else 1.0)

    chosen = enough_clues(formula, marks, broken, random, worth)
    if chosen is None:
        return None
    chosen = _more(chosen, free, random, often=0.1)
    clues = tuple(known[cell] if cell in chosen else NO_CLUE for cell in range(board.cells))
    puzzle = PencilPuzzle(TAPA, *board[:2], clues)
    if lone_walls(puzzle):
        return None
    return (_weakened(puzzle, random) if random.random() < 0.1 else puzzle), marks


def _wall_round_clues(board: CellBoard, random: Random) -> tuple[dict[int, Clue], set[int]]:
    """Clues at random, and a wall that keeps them; where none does, fewer clues are tried."""
    clues: dict[int, Clue] = {}
    for cell in random.sample(range(board.cells), board.cells):
        around = [other for other in board.around(cell) if other is not None]
        (clue,) = random.choices(list(LIKED), list(LIKED.values()))
        room = len(around) if len(around) == 8 else len(around) + 1  # a row, not a ring
        if sum(clue) + len(clue) <= room and not any(other in clues for other in around):
            clues[cell] = clue
    clues = dict(random.sample(sorted(clues.items()), min(len(clues), board.cells // 8)))
    while clues:
        formula = TapaFormula(board, clues, random.getrandbits(31))
        formula.choose_all()
        with suppress(UndecidedError):
            found = formula.find(ROUNDS)
            if found is not None:
                return clues, {cell for cell, mark in enumerate(found) if mark}
        clues = dict(random.sample(sorted(clues.items()), len(clues) * 2 // 3))
    return {}, set()


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


_MAKERS: dict[Kind, Callable[[CellBoard, Random], Made | None]] = {
    LIGHTUP: _light_up,
    NURIKABE: make_nurikabe,
    HEYAWAKE: _heyawake,
    TAPA: _tapa,
}
