"""The maze as token ids, as text, in a terminal and as SVG."""

from torch import Tensor

from tiltrm.errors import PuzzleError
from tiltrm.tasks import drawing
from tiltrm.tasks.base import place

WALL, FREE, START, GOAL, PATH = range(1, 6)
CHARACTERS = "# SGo"  # of the ids 1, 2, ...
ALPHABET = {character: token for token, character in enumerate(CHARACTERS, 1)}

CELL, MARGIN = 18, 12
PLAIN = {WALL: "██", FREE: "  ", START: "S ", GOAL: "G ", PATH: "• "}
STRANGE = "? "  # an id that is no maze token, or a cell that the answer must not change


def read(text: str, side: int, *, answer: bool) -> list[int]:
    """The ids of the cells; raises PuzzleError. Spaces are cells; only line ends are dropped."""
    ids: list[int] = []
    for character in _one_line(text, side):
        if character not in ALPHABET:
            where = place(len(ids), side)
            raise PuzzleError(f"expected only '#', ' ', 'S', 'G', got {character!r} at {where}")
        ids.append(ALPHABET[character])
    if not answer and PATH in ids:
        where = place(ids.index(PATH), side)
        raise PuzzleError(f"expected a question with no path drawn, got 'o' at {where}")
    for token in (START, GOAL):
        _require_once(ids, token, side)
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


def _require_once(ids: list[int], token: int, side: int) -> None:
    cells = [cell for cell, found in enumerate(ids) if found == token]
    name = CHARACTERS[token - 1]
    if not cells:
        raise PuzzleError(f"expected exactly one {name!r}, got none")
    if len(cells) > 1:
        first, second = place(cells[0], side), place(cells[1], side)
        raise PuzzleError(f"expected exactly one {name!r}, got {len(cells)} ({first}; {second})")


def terminal(
    side: int, puzzle: Tensor, answer: Tensor | None, confidence: Tensor | None, *, colour: bool,
    width: int | None,
) -> str:  # fmt: skip
    """Two characters a cell, or one if two do not fit the terminal's `width`.

    The path is coloured from red (unsure) to green (sure).
    """
    asked, drawn = _cells(puzzle, answer, side)
    sure = drawing.shares(confidence, side * side, 1.0)
    size = 2 if drawing.fits(2 * side, width) else 1
    cells = [_styled(asked[c], drawn[c], sure[c], size, colour) for c in range(side * side)]
    return "\n".join("".join(cells[row * side : (row + 1) * side]) for row in range(side))


def _cells(puzzle: Tensor, answer: Tensor | None, side: int) -> tuple[list[int], list[int]]:
    asked = drawing.tokens(puzzle, side * side)
    return asked, asked if answer is None else drawing.tokens(answer, side * side)


def _is_path(asked: int, drawn: int) -> bool:
    return asked == FREE and drawn == PATH


def _styled(asked: int, drawn: int, sure: float, size: int, colour: bool) -> str:
    """One cell in `size` characters."""
    if asked != drawn and not _is_path(asked, drawn):
        return drawing.paint(STRANGE[:size], "1;31") if colour else STRANGE[:size]
    text = PLAIN.get(drawn, STRANGE)[:size]
    if not colour or drawn == FREE:
        return text
    if drawn == PATH:
        return drawing.paint(" " * size, f"48;5;{drawing.heat(sure)}")
    return drawing.paint(text, "38;5;240" if drawn == WALL else drawing.BOLD)


def svg_text(
    side: int, puzzle: Tensor, answer: Tensor | None, confidence: Tensor | None,
    wrong: Tensor | None,
) -> str:  # fmt: skip
    """A picture: walls dark, the path blue dots, cells tinted by doubt, wrong cells struck out."""
    asked, drawn = _cells(puzzle, answer, side)
    sure = drawing.shares(confidence, side * side, 1.0)
    marked = drawing.shares(wrong, side * side, 0.0)
    parts = []
    for cell in range(side * side):
        row, column = divmod(cell, side)
        x, y = MARGIN + column * CELL, MARGIN + row * CELL
        if asked[cell] == WALL:
            parts.append(drawing.rect(x, y, CELL, CELL, drawing.INK))
        elif sure[cell] < 1.0 and asked[cell] == FREE:
            parts.append(drawing.shade(x, y, CELL, 1.0 - sure[cell]))
        if asked[cell] in (START, GOAL):
            parts.append(_end(x, y, CHARACTERS[asked[cell] - 1]))
        elif _is_path(asked[cell], drawn[cell]):
            parts.append(_dot(x, y))
        if marked[cell]:
            parts.append(drawing.cross(x, y, CELL))
    size = 2 * MARGIN + side * CELL
    frame = f'stroke="{drawing.INK}" stroke-width="1.5"'
    border = drawing.rect(MARGIN, MARGIN, side * CELL, side * CELL, "none", frame)
    return drawing.svg(size, size, "Maze", (*parts, border))


def _end(x: float, y: float, name: str) -> str:
    tile = drawing.rect(x, y, CELL, CELL, drawing.ANSWER, 'rx="3"')
    return tile + drawing.letter(x + CELL / 2, y + CELL / 2, name, CELL * 0.72, "#fff", bold=True)


def _dot(x: float, y: float) -> str:
    inset = CELL * 0.2
    return drawing.rect(
        x + inset, y + inset, CELL - 2 * inset, CELL - 2 * inset, drawing.ANSWER, 'rx="3"'
    )
