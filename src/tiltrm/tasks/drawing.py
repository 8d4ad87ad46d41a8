"""Grids for the terminal and as SVG: shared elements, and grids of characters."""

import html
import math
from collections.abc import Iterable, Sequence

from torch import Tensor

from tiltrm.errors import SettingsError

RESET = "\x1b[0m"
BOLD = "1"
RAMP = (196, 202, 208, 214, 220, 226, 190, 154, 118, 82)  # 256-colour codes from red to green

INK, PAPER, RULE = "#1f2933", "#fdfdfb", "#c9ced6"
ANSWER, DOUBT, WRONG = "#2563a8", "#f59e0b", "#d0342c"
CELL, MARGIN = 48, 14  # of a grid of characters
EMPTY = "."


def tokens(values: Tensor, cells: int) -> list[int]:
    """(cell,) ids as a list; raises SettingsError on another shape."""
    return [int(value) for value in _flat(values, cells, "tokens")]


def shares(values: Tensor | None, cells: int, default: float) -> list[float]:
    """(cell,) values as a list, clipped to [0, 1], NaN as 0; `default` in every cell for None."""
    if values is None:
        return [default] * cells
    found = _flat(values, cells, "confidence")
    return [0.0 if math.isnan(value) else min(1.0, max(0.0, float(value))) for value in found]


def _flat(values: Tensor, cells: int, name: str) -> list[float]:
    if values.shape != (cells,):
        raise SettingsError(f"expected {name} of shape ({cells},), got {tuple(values.shape)}")
    numbers: list[float] = values.tolist()
    return numbers


def fits(columns: int, width: int | None) -> bool:
    """Whether so many columns fit a terminal of this width; None is a terminal of any width."""
    return width is None or columns <= width


def paint(text: str, code: str) -> str:
    """Text in a terminal style."""
    return f"\x1b[{code}m{text}{RESET}"


def heat(confidence: float) -> int:
    """The terminal colour of a confidence: red 0, yellow a half, green 1."""
    return RAMP[min(len(RAMP) - 1, int(confidence * len(RAMP)))]


def grid_text(
    characters: str, side: int, puzzle: Tensor, answer: Tensor | None, confidence: Tensor | None, *,
    colour: bool, box: int | None, width: int | None,
) -> str:  # fmt: skip
    """A grid of characters for a terminal: clues bold, answers red (unsure) to green (sure).

    Rulings every `box` cells, or only spaces if `box` is None or the rulings do not fit the
    terminal's `width`; no spaces either if those do not fit. Without colour, all forms read back.
    """
    clues, filled = _clues_and_cells(characters, side * side, puzzle, answer)
    sure = shares(confidence, side * side, 1.0)
    cells = [_styled(*each, colour) for each in zip(clues, filled, sure, strict=True)]
    rows = [cells[start : start + side] for start in range(0, side * side, side)]
    if box is not None and fits(2 * (side + side // box) + 1, width):
        return _ruled(rows, side, box)
    gap = " " if fits(2 * side - 1, width) else ""
    return "\n".join(gap.join(row) for row in rows)


def _ruled(rows: Sequence[Sequence[str]], side: int, box: int) -> str:
    bar = "─" * (2 * box + 1)
    bars = [bar] * (side // box)
    top, middle, bottom = (ends[0] + ends[1].join(bars) + ends[2] for ends in ("┌┬┐", "├┼┤", "└┴┘"))
    lines = []
    for number, row in enumerate(rows):
        if number % box == 0:
            lines.append(middle if number else top)
        groups = [" ".join(row[start : start + box]) for start in range(0, side, box)]
        lines.append("│ " + " │ ".join(groups) + " │")
    return "\n".join((*lines, bottom))


def _clues_and_cells(
    characters: str, cells: int, puzzle: Tensor, answer: Tensor | None
) -> tuple[list[str], list[str]]:
    """Two characters a cell: the clue ('' for none), and the one to show ('.' for a blank)."""
    clues, shown = (
        [characters[token - 1] if 1 < token <= len(characters) else "" for token in found]
        for found in (tokens(puzzle, cells), tokens(puzzle if answer is None else answer, cells))
    )
    return clues, [each or EMPTY for each in shown]


def _styled(clue: str, filled: str, sure: float, colour: bool) -> str:
    if not colour or filled == EMPTY:
        return filled
    return paint(filled, BOLD if clue == filled else f"38;5;{heat(sure)}")


def grid_svg(
    characters: str, side: int, puzzle: Tensor, answer: Tensor | None, confidence: Tensor | None,
    wrong: Tensor | None, *, box: int, title: str,
) -> str:  # fmt: skip
    """A picture: clues bold, answers blue, cells tinted by doubt, wrong cells struck through.

    Every `box` cells the rules are thick.
    """
    clues, filled = _clues_and_cells(characters, side * side, puzzle, answer)
    sure, marked = shares(confidence, side * side, 1.0), shares(wrong, side * side, 0.0)
    under, over = [], []
    for cell in range(side * side):
        row, column = divmod(cell, side)
        x, y = MARGIN + column * CELL, MARGIN + row * CELL
        is_clue = clues[cell] == filled[cell]
        if sure[cell] < 1.0 and not is_clue:
            under.append(shade(x, y, CELL, 1.0 - sure[cell]))
        if marked[cell]:
            over.append(cross(x, y, CELL))
        if filled[cell] != EMPTY:
            ink, text = INK if is_clue else ANSWER, html.escape(filled[cell])
            over.append(letter(x + CELL / 2, y + CELL / 2, text, CELL * 0.52, ink, bold=is_clue))
    size = 2 * MARGIN + side * CELL
    return svg(size, size, title, (*under, *_rules(side, box), *over))


def _rules(side: int, box: int) -> Iterable[str]:
    """Thin rules first, so that the thick ones lie on top."""
    end = MARGIN + side * CELL
    thin: list[str] = []
    thick: list[str] = []
    for place in range(side + 1):
        at = MARGIN + place * CELL
        is_edge = place % box == 0
        ink, width = (INK, 2.4) if is_edge else (RULE, 1.0)
        pair = [line(at, MARGIN, at, end, ink, width), line(MARGIN, at, end, at, ink, width)]
        (thick if is_edge else thin).extend(pair)
    return thin + thick


def svg(width: int, height: int, title: str, parts: Iterable[str]) -> str:
    """A whole SVG picture on a light background."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" font-family="Helvetica, Arial, sans-serif">'
    )
    paper = rect(0, 0, width, height, PAPER)
    return "\n".join((head, f"<title>{title}</title>", paper, *parts, "</svg>\n"))


def rect(x: float, y: float, width: float, height: float, fill: str, extra: str = "") -> str:
    """A filled rectangle."""
    size = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
    return f'<rect {size} fill="{fill}"{extra and " " + extra}/>'


def shade(x: float, y: float, size: float, doubt: float) -> str:
    """A cell tinted by doubt = 1 - confidence."""
    return rect(x, y, size, size, DOUBT, f'fill-opacity="{0.85 * doubt:.3f}"')


def line(x1: float, y1: float, x2: float, y2: float, stroke: str, width: float) -> str:
    """A straight line."""
    ends = f'x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"'
    return f'<line {ends} stroke="{stroke}" stroke-width="{width:g}" stroke-linecap="round"/>'


def letter(x: float, y: float, text: str, size: float, fill: str, *, bold: bool = False) -> str:
    """One character centred at (x, y)."""
    weight = ' font-weight="700"' if bold else ""
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" text-anchor="middle" '
        f'dominant-baseline="central" fill="{fill}"{weight}>{text}</text>'
    )


def cross(x: float, y: float, size: float) -> str:
    """The mark of a wrong cell: a frame, and a stroke through the cell."""
    inset = size * 0.08
    frame = f'fill-opacity="0.12" stroke="{WRONG}" stroke-width="{size * 0.06:g}"'
    return rect(x + inset, y + inset, size - 2 * inset, size - 2 * inset, WRONG, frame) + line(
        x + 2 * inset, y + size - 2 * inset, x + size - 2 * inset, y + 2 * inset, WRONG, size * 0.05
    )
