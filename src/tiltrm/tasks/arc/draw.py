"""Drawings of ARC grids, for the terminal and as SVG: the input, an arrow, the answer."""

from typing import NamedTuple

from torch import Tensor

from tiltrm.tasks import drawing
from tiltrm.tasks.arc.grids import ColourGrid
from tiltrm.tasks.arc.tokens import BLACK, VOCABULARY

PALETTE = (
    "#000000", "#0074d9", "#ff4136", "#2ecc40", "#ffdc00",
    "#aaaaaa", "#f012be", "#ff851b", "#7fdbff", "#870c25",
)  # fmt: skip
TOKEN_COLOURS = (None, None, *PALETTE)  # by token
TERMINAL = (16, 32, 203, 41, 220, 248, 199, 208, 117, 88)  # the nearest of 256 terminal colours
NO_RECTANGLE = "no rectangle"
LARGEST, CELL, GAP = 360, 36, 44  # SVG units: a grid, its largest cell, between the grids


class Area(NamedTuple):
    """Where the answer's grid lies in the cells of an answer; `stride` cells make a row."""

    top: int
    left: int
    height: int
    width: int
    stride: int


class Shown(NamedTuple):
    """Everything a drawing needs, each grid by rows."""

    question: ColourGrid | None
    answer: list[list[int | None]] | None  # None for a cell without a colour; [] for no rectangle
    sure: list[list[float]]  # of the answer's cells
    wrong: list[list[bool]]


def show(
    question: ColourGrid | None, area: Area, answer: Tensor | None, confidence: Tensor | None,
    wrong: Tensor | None,
) -> Shown:  # fmt: skip
    """What to draw; confidence and wrong have a value for each cell of the answer."""
    if answer is None:
        return Shown(question, None, [], [])
    cells = len(answer)
    sure = drawing.shares(confidence, cells, 1.0)
    marked = drawing.shares(wrong, cells, 0.0)
    tokens = drawing.tokens(answer, cells)
    rows: list[list[int | None]] = []
    shares: list[list[float]] = []
    marks: list[list[bool]] = []
    for row in range(area.top, area.top + area.height):
        places = range(row * area.stride + area.left, row * area.stride + area.left + area.width)
        rows.append([_colour(tokens[place]) for place in places])
        shares.append([sure[place] for place in places])
        marks.append([bool(marked[place]) for place in places])
    return Shown(question, rows, shares, marks)


def _colour(token: int) -> int | None:
    return token - BLACK if BLACK <= token < VOCABULARY else None


def terminal(shown: Shown, *, colour: bool, width: int | None) -> str:
    """Two columns a cell; the answer below the question if both do not fit the terminal's width.

    Without colour a cell is its digit. A cell of the answer below 90 % confidence shows '?'.
    """
    left = [] if shown.question is None else _terminal_grid(shown.question, None, colour)
    if shown.answer is None:
        return "\n".join(line.rstrip() for line in left)
    right = _terminal_grid(shown.answer, shown.sure, colour) if shown.answer else [NO_RECTANGLE]
    columns = 2 * (len(shown.question[0]) if shown.question else 0)
    answer_columns = 2 * len(shown.answer[0]) if shown.answer else len(NO_RECTANGLE)
    if not drawing.fits(columns + 4 + answer_columns, width):
        return "\n".join(line.rstrip() for line in (*left, "", *right))
    blank = " " * columns
    lines = []
    for number in range(max(len(left), len(right))):
        arrow = " -> " if number == 0 else "    "
        own = left[number] if number < len(left) else blank
        lines.append(own + arrow + (right[number] if number < len(right) else ""))
    return "\n".join(line.rstrip() for line in lines)


def _terminal_grid(
    grid: ColourGrid | list[list[int | None]], sure: list[list[float]] | None, colour: bool
) -> list[str]:
    lines = []
    for number, row in enumerate(grid):
        cells = []
        for place, each in enumerate(row):
            if not colour:
                cells.append("? " if each is None else f"{each} ")
                continue
            unsure = sure is not None and sure[number][place] < 0.9
            text = "??" if each is None else " ?" if unsure else "  "
            ground = 231 if each is None else TERMINAL[each]
            ink = 231 if each in (0, 9) else 16
            cells.append(drawing.paint(text, f"48;5;{ground};38;5;{ink}"))
        lines.append("".join(cells))
    return lines


def svg(shown: Shown, title: str) -> str:
    """Input and answer side by side, each in a frame of its own size."""
    parts: list[str] = []
    x, tall = float(drawing.MARGIN), 0.0
    if shown.question is not None:
        size = _cell_size(len(shown.question), len(shown.question[0]))
        parts += _svg_grid(x, shown.question, size)
        x += size * len(shown.question[0])
        tall = size * len(shown.question)
    if shown.answer is not None:
        middle = drawing.MARGIN + max(tall, CELL) / 2
        parts.append(drawing.letter(x + GAP / 2, middle, "→", 28, drawing.INK))
        x += GAP
        if shown.answer:
            size = _cell_size(len(shown.answer), len(shown.answer[0]))
            parts += _svg_grid(x, shown.answer, size)
            parts += _svg_marks(x, shown, size)
            x += size * len(shown.answer[0])
            tall = max(tall, size * len(shown.answer))
        else:
            parts.append(drawing.letter(x + 70, middle, NO_RECTANGLE, 20, drawing.WRONG))
            x += 140
    width, height = round(x + drawing.MARGIN), round(max(tall, CELL) + 2 * drawing.MARGIN)
    return drawing.svg(width, height, title, parts)


def _cell_size(rows: int, columns: int) -> float:
    return min(float(CELL), LARGEST / max(rows, columns))


def _svg_grid(x: float, grid: ColourGrid | list[list[int | None]], size: float) -> list[str]:
    stroke = f'stroke="#555555" stroke-width="{max(0.5, size / 36):g}"'
    return [
        drawing.rect(
            x + column * size, drawing.MARGIN + row * size, size, size,
            drawing.PAPER if each is None else PALETTE[each], stroke,
        )
        for row, line in enumerate(grid)
        for column, each in enumerate(line)
    ]  # fmt: skip


def _svg_marks(x: float, shown: Shown, size: float) -> list[str]:
    """A ring in unsure cells, larger for more doubt; a cross in wrong cells."""
    parts = []
    for row, line in enumerate(shown.sure):
        for column, sure in enumerate(line):
            left, top = x + column * size, drawing.MARGIN + row * size
            if sure < 1.0:
                parts.append(_ring(left + size / 2, top + size / 2, size, 1.0 - sure))
            if shown.wrong[row][column]:
                parts.append(drawing.cross(left, top, size))
    return parts


def _ring(x: float, y: float, size: float, doubt: float) -> str:
    place = f'cx="{x:g}" cy="{y:g}" r="{size * 0.4 * doubt:.3g}"'
    ink = f'stroke="{drawing.INK}" stroke-width="{size / 24:.3g}"'
    return f'<circle {place} fill="{drawing.PAPER}" {ink}/>'
