"""How often an answer breaks each rule, in plain Python, cell by cell (see pencil_plain.py)."""

from collections.abc import Callable
from itertools import groupby

from pencil_plain import NEXT, Cell, cells_of, parts, tapa_clue_fits

Rows = list[list[str]]


def beyond_first(count: int) -> int:
    return max(0, count - 1)


def squares(marked: set[Cell]) -> int:
    return sum({(r + 1, c), (r, c + 1), (r + 1, c + 1)} <= marked for r, c in marked)


def sees_light(rows: Rows, lights: set[Cell], cell: Cell, step: Cell) -> bool:
    r, c = cell[0] + step[0], cell[1] + step[1]
    while 0 <= r < len(rows) and 0 <= c < len(rows[0]) and rows[r][c] == ".":
        if (r, c) in lights:
            return True
        r, c = r + step[0], c + step[1]
    return False


def lightup(rows: Rows, marked: set[Cell]) -> dict[str, int]:
    white = {(r, c) for r, c in cells_of(rows) if rows[r][c] == "."}
    lights = marked & white
    numbered = [(r, c) for r, c in cells_of(rows) if rows[r][c].isdigit()]
    return {
        "lights that see each other": sum(
            sees_light(rows, lights, light, step) for light in lights for step in ((0, -1), (-1, 0))
        ),
        "cells without light": sum(
            not any(sees_light(rows, lights, cell, step) for step in NEXT)
            for cell in white - lights
        ),
        "numbers": sum(
            sum((r + down, c + right) in lights for down, right in NEXT) != int(rows[r][c])
            for r, c in numbered
        ),
    }


def nurikabe(rows: Rows, marked: set[Cell]) -> dict[str, int]:
    islands = parts(set(cells_of(rows)) - marked)
    clues = [[rows[r][c] for r, c in island if rows[r][c] != "."] for island in islands]
    return {
        "squares of shaded cells": squares(marked),
        "parts of the sea beyond the first": beyond_first(len(parts(marked))),
        "islands without a clue": clues.count([]),
        "clues beyond the first of an island": sum(beyond_first(len(own)) for own in clues),
        "islands of a wrong size": sum(
            len(own) == 1 and own not in (["?"], [str(len(island))])
            for own, island in zip(clues, islands, strict=True)
        ),
    }


def heyawake(rows: Rows, marked: set[Cell]) -> dict[str, int]:
    room = {(r, c): rows[r][c].rstrip("0123456789") for r, c in cells_of(rows)}
    numbers = {name: rows[r][c][len(name) :] for (r, c), name in room.items() if rows[r][c] != name}
    shaded = [room[cell] for cell in marked]
    lines = [sorted(cell for cell in room if cell[0] == r) for r in range(len(rows))]
    lines += [sorted(cell for cell in room if cell[1] == c) for c in range(len(rows[0]))]
    crossed = 0
    for line in lines:
        for free, run in groupby(line, lambda cell: cell not in marked):
            rooms = [name for name, _ in groupby(room[cell] for cell in run)]
            crossed += beyond_first(len(rooms) - 1) if free else 0
    return {
        "shaded neighbours": sum(
            ((r + 1, c) in marked) + ((r, c + 1) in marked) for r, c in marked
        ),
        "parts of the unshaded cells beyond the first": beyond_first(
            len(parts(set(room) - marked))
        ),
        "room numbers": sum(shaded.count(name) != int(number) for name, number in numbers.items()),
        "lines through three rooms": crossed,
    }


def tapa(rows: Rows, marked: set[Cell]) -> dict[str, int]:
    return {
        "squares of shaded cells": squares(marked),
        "parts of the wall beyond the first": beyond_first(len(parts(marked))),
        "clues": sum(
            not tapa_clue_fits(rows[r][c], (r, c), marked)
            for r, c in cells_of(rows)
            if rows[r][c] != "."
        ),
    }


def sudoku(question: Rows, answer: Rows) -> int:
    """Changed clues, cells without a digit, and digits missing from a row, column or box."""
    digits = set("123456789")
    units = [*answer, *map(list, zip(*answer, strict=True))]
    for top, left in cells_of([["."] * 3] * 3):
        units.append([answer[3 * top + r][3 * left + c] for r in range(3) for c in range(3)])
    return (
        sum(question[r][c] in digits - {answer[r][c]} for r, c in cells_of(question))
        + sum(answer[r][c] not in digits for r, c in cells_of(answer))
        + sum(len(digits - set(unit)) for unit in units)
    )


COUNTS: dict[str, Callable[[Rows, set[Cell]], dict[str, int]]] = {
    "lightup": lightup,
    "nurikabe": nurikabe,
    "heyawake": heyawake,
    "tapa": tapa,
}
