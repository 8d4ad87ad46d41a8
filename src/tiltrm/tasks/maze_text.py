"""The maze as text: what a puzzle may look like, and which error a bad one gets."""

from tiltrm.errors import PuzzleError
from tiltrm.tasks.base import place

WALL, FREE, START, GOAL, PATH = range(1, 6)
CHARACTERS = "# SGo"  # of the ids 1, 2, ...


def alphabet() -> dict[str, int]:
    """Character -> id."""
    return {character: token for token, character in enumerate(CHARACTERS, 1)}


def read(text: str, side: int, *, answer: bool) -> list[int]:
    """The ids of the cells; raises PuzzleError. Spaces are cells, so only line ends are dropped."""
    known = alphabet()
    ids: list[int] = []
    for character in _one_line(text, side):
        if character not in known:
            where = place(len(ids), side)
            raise PuzzleError(f"expected only '#', ' ', 'S', 'G', got {character!r} at {where}")
        ids.append(known[character])
    if not answer and PATH in ids:
        where = place(ids.index(PATH), side)
        raise PuzzleError(f"expected a question with no path drawn, got 'o' at {where}")
    for token in (START, GOAL):
        _check_once(ids, token, side)
    return ids


def _one_line(text: str, side: int) -> str:
    lines = text.replace("\r\n", "\n").strip("\n").split("\n")
    if len(lines) == 1:
        if len(lines[0]) != side * side:
            raise PuzzleError(
                f"expected {side * side} cells, got {len(lines[0])}; spaces at the ends are cells"
            )
    elif len(lines) != side:
        raise PuzzleError(f"expected {side} lines of {side} cells, got {len(lines)} lines")
    else:
        for number, line in enumerate(lines, 1):
            if len(line) != side:
                raise PuzzleError(
                    f"expected {side} cells in row {number}, got {len(line)}; "
                    "spaces at the ends are cells"
                )
    return "".join(lines)


def _check_once(ids: list[int], token: int, side: int) -> None:
    cells = [cell for cell, found in enumerate(ids) if found == token]
    name = CHARACTERS[token - 1]
    if not cells:
        raise PuzzleError(f"expected exactly one {name!r}, got none")
    if len(cells) > 1:
        first, second = place(cells[0], side), place(cells[1], side)
        raise PuzzleError(f"expected exactly one {name!r}, got {len(cells)} ({first}; {second})")
