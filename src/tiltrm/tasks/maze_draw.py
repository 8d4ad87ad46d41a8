"""Mazes for the terminal and as SVG."""

from torch import Tensor

from tiltrm.tasks import drawing
from tiltrm.tasks.maze_text import FREE, GOAL, PATH, START, WALL

CELL, MARGIN = 18, 12
PLAIN = {WALL: "██", FREE: "  ", START: "S ", GOAL: "G ", PATH: "• "}
STRANGE = "? "  # an id that is no maze token, or a cell that the answer changed


def terminal(
    side: int, puzzle: Tensor, answer: Tensor | None, confidence: Tensor | None, *, colour: bool
) -> str:
    """Two characters a cell; the path from red (unsure) to green (sure)."""
    asked, drawn = _cells(puzzle, answer, side)
    sure = drawing.shares(confidence, side * side, 1.0)
    shown = [_styled(asked[c], drawn[c], sure[c], colour) for c in range(side * side)]
    return "\n".join("".join(shown[row * side : (row + 1) * side]) for row in range(side))


def _cells(puzzle: Tensor, answer: Tensor | None, side: int) -> tuple[list[int], list[int]]:
    asked = drawing.tokens(puzzle, side * side)
    return asked, asked if answer is None else drawing.tokens(answer, side * side)


def _is_path(asked: int, drawn: int) -> bool:
    return asked == FREE and drawn == PATH


def _styled(asked: int, drawn: int, sure: float, colour: bool) -> str:
    if asked != drawn and not _is_path(asked, drawn):
        return drawing.paint(STRANGE, "1;31") if colour else STRANGE
    text = PLAIN.get(drawn, STRANGE)
    if not colour or drawn == FREE:
        return text
    if drawn == PATH:
        return drawing.paint("  ", f"48;5;{drawing.heat(sure)}")
    return drawing.paint(text, "38;5;240" if drawn == WALL else drawing.BOLD)


def svg_text(
    side: int,
    puzzle: Tensor,
    answer: Tensor | None,
    confidence: Tensor | None,
    wrong: Tensor | None,
) -> str:
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
            parts.append(_end(x, y, "S" if asked[cell] == START else "G"))
        elif _is_path(asked[cell], drawn[cell]):
            parts.append(_dot(x, y))
        if marked[cell]:
            parts.append(drawing.cross(x, y, CELL))
    size = 2 * MARGIN + side * CELL
    frame = f'stroke="{drawing.INK}" stroke-width="1.5"'
    border = drawing.rect(MARGIN, MARGIN, side * CELL, side * CELL, "none", frame)
    return drawing.page(size, size, "Maze", (*parts, border))


def _end(x: float, y: float, name: str) -> str:
    tile = drawing.rect(x, y, CELL, CELL, drawing.ANSWER, 'rx="3"')
    return tile + drawing.letter(x + CELL / 2, y + CELL / 2, name, CELL * 0.72, "#fff", bold=True)


def _dot(x: float, y: float) -> str:
    inset = CELL * 0.2
    return drawing.rect(
        x + inset, y + inset, CELL - 2 * inset, CELL - 2 * inset, drawing.ANSWER, 'rx="3"'
    )
