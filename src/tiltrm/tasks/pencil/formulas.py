"""The rules of each pencil puzzle as clauses, with cells as variables: true where marked.

What the rules say about connected cells takes too many clauses. So a candidate is solved for
first, and where its cells are not connected, clauses that forbid this and that every solution
keeps are added before the next solve.
"""

from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import cache, lru_cache, partial
from itertools import combinations
from math import comb
from typing import NamedTuple

from tiltrm.tasks.pencil.cells import CellBoard, Marks, segments, spans
from tiltrm.tasks.pencil.clauses import Clauses, UndecidedError
from tiltrm.tasks.pencil.puzzle import UNKNOWN, Clue, edges
from tiltrm.tasks.pencil.rules import fits, runs

ROUNDS = 2000  # solves for one solution before the search gives up
DIRECT = 150  # clauses at most for a count of cells; beyond it, further variables count


class Learnt(NamedTuple):
    """A clause that a candidate has taught, and whether it also holds for other clues."""

    literals: tuple[int, ...]
    holds: Callable[[Mapping[int, int]], bool]


def _always(clues: Mapping[int, int]) -> bool:
    return True


def _has_size(clue: int, size: int, clues: Mapping[int, int]) -> bool:
    return clues.get(clue) == size


def _has_clues(wanted: tuple[int, int], clues: Mapping[int, int]) -> bool:
    return all(clue in clues for clue in wanted)


class Formula:
    """The clauses of a puzzle, and those that forbid candidates that are not connected.

    A clue with a switch holds only while it is among those that `choose` was given.
    """

    def __init__(self, board: CellBoard, seed: int, learnt: Iterable[Learnt] = ()) -> None:
        """learnt: clauses that hold here too."""
        self.board = board
        self.clauses = Clauses(board.cells, seed)
        self.rounds = 0
        self.learnt = list(learnt)
        for each in self.learnt:
            self.clauses.add(*each.literals)
        self._switches: dict[Hashable, int] = {}
        self._chosen: set[Hashable] = set()

    def switch(self, clue: Hashable) -> int:
        """The literal that says that a clue is off, as it is at first."""
        if clue not in self._switches:
            self._switches[clue] = self.clauses.fresh()
            self.clauses.fix(self._switches[clue], False)
        return ~self._switches[clue]

    def choose(self, clues: Iterable[Hashable]) -> None:
        """Turn on these clues and no others."""
        chosen = {clue for clue in clues if clue in self._switches}
        for clue in chosen ^ self._chosen:
            self.clauses.fix(self._switches[clue], clue in chosen)
        self._chosen = chosen

    def choose_all(self) -> None:
        """Turn on all clues."""
        self.choose(self._switches)

    def exclude(self, marks: Sequence[bool]) -> None:
        """A solution must differ from these marks."""
        self.clauses.add(*(~cell if marked else cell for cell, marked in enumerate(marks)))

    def find(self, rounds: int = ROUNDS) -> Marks | None:
        """A solution, or None where there is none; raises UndecidedError."""
        for _ in range(rounds):
            self.rounds += 1
            values = self.clauses.solve()
            if values is None:
                return None
            marks = tuple(values[: self.board.cells])
            if not self.forbid(marks):
                return marks
        raise UndecidedError

    def find_near(self, marks: Marks, cells: Collection[int], rounds: int) -> Marks | None:
        """A solution that differs from the marks in some of these cells only, or None."""
        fixed = [cell for cell in range(self.board.cells) if cell not in cells]
        for cell in fixed:
            self.clauses.fix(cell, marks[cell])
        try:
            return self.find(rounds)
        finally:
            for cell in fixed:
                self.clauses.free(cell)

    def forbid(self, marks: Marks) -> bool:
        """Add clauses that forbid a candidate; False where it is a solution."""
        return False

    def _join(self, part: Sequence[int], other: Sequence[int]) -> None:
        """Marked cells inside a part and outside it need a marked cell on its border."""
        one, two = part[len(part) // 2], other[len(other) // 2]
        self._learn((~one, ~two, *self.board.border(part)), _always)

    def _learn(self, literals: Iterable[int], holds: Callable[[Mapping[int, int]], bool]) -> None:
        self.learnt.append(Learnt(tuple(literals), holds))
        self.clauses.add(*self.learnt[-1].literals)

    def _join_all(self, marks: Marks) -> bool:
        """The marked cells are connected."""
        parts = self.board.parts([cell for cell, marked in enumerate(marks) if marked])
        if len(parts) < 2:
            return False
        for number, part in enumerate(parts):
            self._join(part, parts[number - 1])
        return True

    def _no_square(self) -> None:
        for square in self.board.squares():
            self.clauses.add(*(~cell for cell in square))


class LightUpFormula(Formula):
    """Marked cells are lights; numbers have a switch, under the black cell's number."""

    def __init__(self, board: CellBoard, numbers: Mapping[int, int], seed: int) -> None:
        """numbers: of each black cell, UNKNOWN where it has none."""
        super().__init__(board, seed)
        seen: list[set[int]] = [set() for _ in range(board.cells)]
        for line in board.lines():
            for segment in segments(line, numbers):
                if len(segment) > 1:
                    self.clauses.add_at_most_one(segment)
                for cell in segment:
                    seen[cell].update(segment)
        for cell in range(board.cells):
            if cell in numbers:
                self.clauses.add(~cell)
            else:
                self.clauses.add(*sorted(seen[cell]))
        for cell, number in numbers.items():
            if number != UNKNOWN:
                around = [other for other in board.beside[cell] if other not in numbers]
                self.clauses.add_count(around, number, self.switch(cell))


class HeyawakeFormula(Formula):
    """Marked cells are shaded. Rooms may be laid again and again; numbers are clues to choose."""

    def __init__(self, board: CellBoard, seed: int) -> None:
        super().__init__(board, seed)
        self._lines: dict[tuple[int, ...], int] = {}  # a span of cells -> its switch
        self._rooms: set[tuple[int, ...]] = set()
        for cell, other in edges(*board[:2]):
            self.clauses.add(~cell, ~other)
        for cell in range(board.cells):
            self.clauses.add(*(~other for other in board.beside[cell]))

    def lay(self, borders: Sequence[bool]) -> None:
        """From now on, no line of unshaded cells crosses two of these borders."""
        pairs = zip(edges(*self.board[:2]), borders, strict=True)
        walled = {pair for pair, is_wall in pairs if is_wall}
        found = {tuple(span) for line in self.board.lines() for span in spans(line, walled)}
        for span in sorted(found - self._lines.keys()):
            self._lines[span] = self.clauses.fresh()
            self.clauses.add(~self._lines[span], *span)
        for span, variable in self._lines.items():
            self.clauses.fix(variable, span in found)

    def add_number(self, room: tuple[int, ...], number: int) -> None:
        """The number of a room, whose clue is called as the tuple of its cells."""
        if room not in self._rooms:
            self._rooms.add(room)
            self._add_number(self.switch(room), room, number)

    def _add_number(self, off: int, cells: tuple[int, ...], number: int) -> None:
        too_many = apart(self.board, cells, number + 1)
        too_few = comb(len(cells), len(cells) - number + 1) if number <= len(cells) else 0
        if number > len(cells):
            self.clauses.add(off)
        elif too_many is None or too_few > DIRECT:
            self.clauses.add_long_count(cells, number, off)
        else:
            for chosen in too_many:
                self.clauses.add(off, *(~cell for cell in chosen))
            for chosen in combinations(cells, len(cells) - number + 1):
                self.clauses.add(off, *chosen)

    def forbid(self, marks: Marks) -> bool:
        parts = self.board.parts([cell for cell, marked in enumerate(marks) if not marked])
        if len(parts) < 2:
            return False
        for part in parts:  # no two shaded cells touch, so a closed border always cuts off cells
            self.clauses.add(*(~cell for cell in self.board.border(part)))
        return True


@lru_cache(maxsize=10_000)
def apart(board: CellBoard, cells: tuple[int, ...], count: int) -> list[tuple[int, ...]] | None:
    """The choices of so many cells of which no two touch; None where there are too many."""
    found: list[tuple[int, ...]] = [()]
    for _ in range(count):
        found = [
            (*chosen, cell)
            for chosen in found
            for cell in cells
            if (not chosen or cell > chosen[-1])
            and not any(other in board.beside[cell] for other in chosen)
        ]
        if len(found) > 4 * DIRECT:
            return None
    return found if len(found) <= DIRECT else None


class TapaFormula(Formula):
    """Marked cells are shaded; clues have a switch, under their cell. Walls of one cell are not
    found: `solutions` looks at them by itself."""

    def __init__(self, board: CellBoard, clues: Mapping[int, Clue], seed: int) -> None:
        super().__init__(board, seed)
        self._no_square()
        for cell, others in enumerate(board.beside):
            self.clauses.add(~cell, *others)
        for cell, clue in clues.items():
            off = self.switch(cell)
            around = board.around(cell)
            inside = sum(1 << bit for bit, other in enumerate(around) if other is not None)
            self.clauses.add(off, ~cell)
            for clause in tapa_clauses(clue, inside):
                literals = ((around[bit] or 0, marked) for bit, marked in clause)
                self.clauses.add(off, *(each if marked else ~each for each, marked in literals))

    def forbid(self, marks: Marks) -> bool:
        return self._join_all(marks)


@cache
def tapa_clauses(clue: Clue, inside: int) -> tuple[tuple[tuple[int, bool], ...], ...]:
    """Clauses over the eight cells round a clue, few of them, that say that it fits.

    Each is a tuple of (place, whether it is to be marked); `inside` has the bits of the places on
    the board. Patterns that do not fit are joined into cubes as large as possible.
    """
    places = [bit for bit in range(8) if inside >> bit & 1]
    size = len(places)
    wrong = set()
    for pattern in range(1 << size):
        whole = sum(1 << place for at, place in enumerate(places) if pattern >> at & 1)
        if not fits(clue, runs(whole)):
            wrong.add(pattern)
    cubes = {(pattern, (1 << size) - 1) for pattern in wrong}  # values, and which places count
    largest: list[tuple[int, int]] = []
    while cubes:
        joined, used = set(), set()
        for values, counted in cubes:
            for bit in (1 << at for at in range(size)):
                if counted & bit and not values & bit and (values | bit, counted) in cubes:
                    joined.add((values, counted ^ bit))
                    used |= {(values, counted), (values | bit, counted)}
        largest += sorted(cubes - used)
        cubes = joined
    covers = {cube: {each for each in wrong if each & cube[1] == cube[0]} for cube in largest}
    clauses = []
    while wrong:
        values, counted = max(largest, key=lambda cube: len(covers[cube] & wrong))
        wrong -= covers[values, counted]
        clauses.append(
            tuple(
                (place, not values >> at & 1)
                for at, place in enumerate(places)
                if counted >> at & 1
            )
        )
    return tuple(clauses)


class NurikabeFormula(Formula):
    """Marked cells are the sea; clues have no switches, but what was learnt can be handed on."""

    def __init__(
        self, board: CellBoard, clues: Mapping[int, int], seed: int, learnt: Iterable[Learnt] = ()
    ) -> None:
        """clues: the size of each island, UNKNOWN for '?'; learnt: of the same board before."""
        super().__init__(board, seed, (each for each in learnt if each.holds(clues)))
        self.clues = clues
        self._no_square()
        known = UNKNOWN not in clues.values()
        if known and board.cells - sum(clues.values()) > 1:
            for cell, others in enumerate(board.beside):
                self.clauses.add(~cell, *others)
        reached = set(clues)
        for cell, size in clues.items():
            self.clauses.add(~cell)
            reached |= self._reach(cell, size if size != UNKNOWN else board.cells)
            self._near(cell, size)
        for cell in range(board.cells):
            if cell not in reached:
                self.clauses.add(cell)
            elif cell not in clues:
                self.clauses.add(cell, *(~other for other in board.beside[cell]))

    def _reach(self, clue: int, size: int) -> set[int]:
        """The cells that an island of this size could hold, were it not for the sea."""
        others = self.clues.keys() - {clue}
        taken = others | {cell for other in others for cell in self.board.beside[other]}
        steps = {clue: 1}
        queue = deque([clue])
        while queue:
            cell = queue.popleft()
            if steps[cell] < size:
                for other in self.board.beside[cell]:
                    if other not in taken and other not in steps:
                        steps[other] = steps[cell] + 1
                        queue.append(other)
        return set(steps)

    def _near(self, clue: int, size: int) -> None:
        """An island is larger than its clue, or surrounded; islands up to 3 are not larger."""
        around = self.board.beside[clue]
        if size == 1:
            for cell in around:
                self.clauses.add(cell)
        elif size != UNKNOWN:
            self.clauses.add(*(~cell for cell in around))
        if size in (2, 3):
            parts = {frozenset((clue,))}
            for _ in range(size):
                parts = {
                    part | {other}
                    for part in parts
                    for cell in part
                    for other in self.board.beside[cell]
                    if other not in part
                }
            for part in sorted(map(sorted, parts)):
                self.clauses.add(*(cell for cell in part if cell != clue))

    def forbid(self, marks: Marks) -> bool:
        broken = self._join_all(marks)
        clues = self.clues
        for part in self.board.parts([cell for cell, marked in enumerate(marks) if not marked]):
            own = [cell for cell in part if cell in clues]
            size = clues[own[0]] if len(own) == 1 else UNKNOWN
            if not own:
                self._no_clue(part)
            elif len(own) > 1:
                self._two_clues(part, own)
            elif size == UNKNOWN or size == len(part):
                continue
            elif len(part) > size:
                large = self.board.reach(own[0], set(part))[1 : size + 1]
                self._learn(large, partial(_has_size, own[0], size))
            else:
                self._too_small(part, own[0], size)
            broken = True
        return broken

    def _no_clue(self, part: Sequence[int]) -> None:
        """Island cells without a clue need an island cell on their border."""
        border = [~cell for cell in self.board.border(part)]
        for cell in part[:3]:
            self._learn([cell, *border], lambda known: not any(c in known for c in part))

    def _two_clues(self, part: Sequence[int], own: Sequence[int]) -> None:
        """On the way between two clues there is sea."""
        inside = set(part)
        for clue in own[:-1]:
            came = {clue: clue}
            queue = deque([clue])
            while queue:
                cell = queue.popleft()
                if cell != clue and cell in self.clues:
                    break
                for other in self.board.beside[cell]:
                    if other in inside and other not in came:
                        came[other] = cell
                        queue.append(other)
            way, at = [], came[cell]
            while at != clue:
                way.append(at)
                at = came[at]
            self._learn(way, partial(_has_clues, (clue, cell)))

    def _too_small(self, part: Sequence[int], clue: int, size: int) -> None:
        """An island that is too small goes on across its border."""
        self._learn(
            [~cell for cell in self.board.border(part)],
            lambda known: known.get(clue) == size and sum(c in known for c in part) == 1,
        )
