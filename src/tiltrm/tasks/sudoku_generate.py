"""A Sudoku solver that enumerates solutions, and a generator of minimal puzzles."""

import random
from collections.abc import Iterator

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
