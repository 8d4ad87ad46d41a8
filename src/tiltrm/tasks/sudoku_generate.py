"""A Sudoku solver that enumerates solutions, and a generator of minimal puzzles."""

import random
from collections.abc import Iterator
from functools import cache

from tiltrm.tasks.grid import BLANK


def solutions(ids: list[int], box: int, chance: random.Random | None = None) -> Iterator[list[int]]:
    """Every solution of a puzzle of token ids, each once; in random order if `chance` is given.

    Depth-first search on the cell with the fewest candidates; used digits are bits of an integer.
    """
    side = box * box
    used = [0] * (3 * side)  # rows, columns, boxes: bit d-1 is set if digit d is used
    grid = list(ids)
    units = [_units(cell, box) for cell in range(side * side)]
    blanks = []
    for cell, token in enumerate(grid):
        if token == BLANK:
            blanks.append(cell)
            continue
        bit = 1 << (token - BLANK - 1)
        if any(used[unit] & bit for unit in units[cell]):
            return  # contradictory clues
        for unit in units[cell]:
            used[unit] |= bit
    yield from _search(grid, blanks, used, units, (1 << side) - 1, chance)


def _units(cell: int, box: int) -> tuple[int, int, int]:
    """The indices of a cell's row, column and box in one list of all units."""
    side = box * box
    row, column = divmod(cell, side)
    return row, side + column, 2 * side + row // box * box + column // box


def _search(
    grid: list[int],
    blanks: list[int],
    used: list[int],
    units: list[tuple[int, int, int]],
    full: int,
    chance: random.Random | None,
) -> Iterator[list[int]]:
    if not blanks:
        yield list(grid)
        return
    cell, candidates = _narrowest(blanks, used, units, full)
    rest = [other for other in blanks if other != cell]
    bits = [1 << place for place in range(full.bit_length()) if candidates >> place & 1]
    if chance is not None:
        chance.shuffle(bits)
    for bit in bits:
        for unit in units[cell]:
            used[unit] |= bit
        grid[cell] = bit.bit_length() + BLANK
        yield from _search(grid, rest, used, units, full, chance)
        for unit in units[cell]:
            used[unit] &= ~bit
        grid[cell] = BLANK


def _narrowest(
    blanks: list[int], used: list[int], units: list[tuple[int, int, int]], full: int
) -> tuple[int, int]:
    """The blank cell with the fewest candidates, and these as bits."""
    best, best_candidates, fewest = blanks[0], full, full.bit_length() + 1
    for cell in blanks:
        row, column, box = units[cell]
        candidates = full & ~(used[row] | used[column] | used[box])
        count = candidates.bit_count()
        if count < fewest:
            best, best_candidates, fewest = cell, candidates, count
            if count < 2:
                break
    return best, best_candidates


def generate(box: int, seed: int) -> tuple[list[int], list[int]]:
    """A minimal puzzle and its only solution: without any one of its clues it has a second one.

    Proved by tests/tasks/test_sudoku.py::test_generated_puzzles_are_minimal.
    """
    chance = random.Random(seed)
    cells = box**4
    answer = next(solutions([BLANK] * cells, box, chance))
    puzzle = list(answer)
    for cell in chance.sample(range(cells), cells):
        puzzle[cell] = BLANK
        if count(puzzle, box, 2) != 1:
            puzzle[cell] = answer[cell]
    return puzzle, answer


def count(ids: list[int], box: int, limit: int) -> int:
    """The number of solutions, counted up to `limit`."""
    return sum(1 for _ in zip(range(limit), solutions(ids, box), strict=False))


def count_cheaply(ids: list[int], box: int, limit: int, nodes: int) -> int | None:
    """The number of solutions up to `limit`; None where a search of so many nodes does not tell.

    Fills single candidates and single places of a digit before it guesses, so an extreme puzzle
    takes tens of nodes. Proved by tests/tasks/test_sudoku.py.
    """
    side = box * box
    full = (1 << side) - 1
    units, peers = _neighbours(box)
    stack = [_Candidates([full if token == BLANK else 1 << token - BLANK - 1 for token in ids])]
    found = 0
    while stack:
        if nodes == 0:
            return None
        nodes -= 1
        cells = stack.pop()
        if not cells.settle(units, peers):
            continue
        open_cells = [cell for cell in cells if cell & (cell - 1)]
        if not open_cells:
            found += 1
            if found == limit:
                return found
            continue
        fewest = min(open_cells, key=int.bit_count)
        place = cells.index(fewest)
        while fewest:
            bit = fewest & -fewest
            fewest ^= bit
            child = _Candidates(cells)
            child[place] = bit
            child.fixed = cells.fixed
            stack.append(child)
    return found


class _Candidates(list[int]):
    """The candidates of every cell, as bits; `fixed` cells have told their peers."""

    fixed: int = 0

    def settle(self, units: list[tuple[int, ...]], peers: list[tuple[int, ...]]) -> bool:
        """Fill in what follows without a guess; False where a cell or a digit has no place."""
        while True:
            if not self._spread(peers):
                return False
            changed = False
            for unit in units:
                once = twice = 0
                for cell in unit:
                    twice |= once & self[cell]
                    once |= self[cell]
                if once != (1 << len(unit)) - 1:
                    return False
                single = once & ~twice
                if single:
                    for cell in unit:
                        own = self[cell] & single
                        if own and own != self[cell]:
                            if own & (own - 1):
                                return False  # two digits have only this cell
                            self[cell], changed = own, True
            if not changed:
                return True

    def _spread(self, peers: list[tuple[int, ...]]) -> bool:
        """Remove the digit of every filled cell from its row, column and box."""
        waiting = [
            cell
            for cell, bits in enumerate(self)
            if not bits & (bits - 1) and not self.fixed >> cell & 1
        ]
        while waiting:
            cell = waiting.pop()
            bits = self[cell]
            if not bits:
                return False
            self.fixed |= 1 << cell
            for peer in peers[cell]:
                if self[peer] & bits:
                    self[peer] &= ~bits
                    left = self[peer]
                    if not left:
                        return False
                    if not left & (left - 1) and not self.fixed >> peer & 1:
                        waiting.append(peer)
        return True


@cache
def _neighbours(box: int) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """The cells of every row, column and box, and the other cells that share one with a cell."""
    side = box * box
    cells = range(side * side)
    units = [tuple(cell for cell in cells if unit in _units(cell, box)) for unit in range(3 * side)]
    peers = [
        tuple({other for unit in units if cell in unit for other in unit} - {cell})
        for cell in cells
    ]
    return units, peers
