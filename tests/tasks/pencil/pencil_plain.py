"""The rules of the pencil puzzles in plain Python, cell by cell, without a line of the package.

A board is a list of rows of strings as in the plain text form; `marked` is a set of (row, column).
"""

from collections.abc import Iterable

Cell = tuple[int, int]
NEXT = ((-1, 0), (1, 0), (0, -1), (0, 1))
ROUND = ((-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1))


def cells_of(rows: list[list[str]]) -> list[Cell]:
    return [(r, c) for r in range(len(rows)) for c in range(len(rows[0]))]


def parts(cells: Iterable[Cell]) -> list[set[Cell]]:
    left, found = set(cells), []
    while left:
        stack = [left.pop()]
        part = set(stack)
        while stack:
            row, column = stack.pop()
            for down, right in NEXT:
                other = (row + down, column + right)
                if other in left:
                    left.discard(other)
                    part.add(other)
                    stack.append(other)
        found.append(part)
    return found


def has_square(marked: set[Cell]) -> bool:
    return any({(r + 1, c), (r, c + 1), (r + 1, c + 1)} <= marked for r, c in marked)


def lightup(rows: list[list[str]], marked: set[Cell]) -> bool:
    black = {(r, c) for r, c in cells_of(rows) if rows[r][c] != "."}
    lit = set()
    for row, column in marked:
        if (row, column) in black:
            return False
        for down, right in NEXT:
            r, c = row + down, column + right
            while 0 <= r < len(rows) and 0 <= c < len(rows[0]) and (r, c) not in black:
                if (r, c) in marked:
                    return False
                lit.add((r, c))
                r, c = r + down, c + right
    for r, c in black:
        if rows[r][c] != "#":
            count = sum((r + down, c + right) in marked for down, right in NEXT)
            if count != int(rows[r][c]):
                return False
    return lit | marked | black == set(cells_of(rows))


def nurikabe(rows: list[list[str]], marked: set[Cell]) -> bool:
    if has_square(marked) or len(parts(marked)) > 1:
        return False
    clues = {(r, c): rows[r][c] for r, c in cells_of(rows) if rows[r][c] != "."}
    if marked & clues.keys():
        return False
    for island in parts(set(cells_of(rows)) - marked):
        own = [clues[cell] for cell in island if cell in clues]
        if len(own) != 1 or (own[0] != "?" and int(own[0]) != len(island)):
            return False
    return True


def tapa(rows: list[list[str]], marked: set[Cell]) -> bool:
    if has_square(marked) or len(parts(marked)) > 1:
        return False
    clues = {(r, c): rows[r][c] for r, c in cells_of(rows) if rows[r][c] != "."}
    if marked & clues.keys():
        return False
    return all(tapa_clue_fits(clue, cell, marked) for cell, clue in clues.items())


def tapa_clue_fits(clue: str, cell: Cell, marked: set[Cell]) -> bool:
    ring = [(cell[0] + down, cell[1] + right) in marked for down, right in ROUND]
    if all(ring):
        runs = ["8"]
    else:
        first = ring.index(False)
        signs = "".join("x" if ring[(first + n) % 8] else " " for n in range(8))
        runs = [str(len(run)) for run in signs.split()] or ["0"]
    known = sorted(each for each in clue if each != "?")
    return len(runs) == len(clue) and all(known.count(n) <= runs.count(n) for n in known)


def heyawake(rows: list[list[str]], marked: set[Cell]) -> bool:
    if any((r + 1, c) in marked or (r, c + 1) in marked for r, c in marked):
        return False
    if len(parts(set(cells_of(rows)) - marked)) > 1:
        return False
    names: dict[str, set[Cell]] = {}
    numbers: dict[str, int] = {}
    for r, c in cells_of(rows):
        name = rows[r][c].rstrip("0123456789")
        names.setdefault(name, set()).add((r, c))
        if name != rows[r][c]:
            numbers[name] = int(rows[r][c][len(name) :])
    if any(len(names[name] & marked) != number for name, number in numbers.items()):
        return False
    lines = [[(r, c) for c in range(len(rows[0]))] for r in range(len(rows))]
    lines += [[(r, c) for r in range(len(rows))] for c in range(len(rows[0]))]
    for line in lines:
        for start in range(len(line)):
            rooms: list[str] = []  # a room that is entered again counts again
            for r, c in line[start:]:
                if (r, c) in marked:
                    break
                name = rows[r][c].rstrip("0123456789")
                if not rooms or rooms[-1] != name:
                    rooms.append(name)
            if len(rooms) > 2:
                return False
    return True


CHECKS = {"lightup": lightup, "nurikabe": nurikabe, "tapa": tapa, "heyawake": heyawake}
