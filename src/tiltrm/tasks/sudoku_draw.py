"""Sudoku grids for the terminal and as SVG."""

from torch import Tensor

from tiltrm.tasks import drawing
from tiltrm.tasks.sudoku_text import BLANK

CELL, MARGIN = 48, 14


def terminal(
    box: int, puzzle: Tensor, answer: Tensor | None, confidence: Tensor | None, *, colour: bool
) -> str:
    """A ruled grid: clues bold, answers red (unsure) to green (sure). Plain text reads back."""
    side = box * box
    clues, filled = _cells(puzzle, answer, side)
    sure = drawing.shares(confidence, side * side, 1.0)
    shown = [_styled(clues[c], filled[c], sure[c], colour) for c in range(side * side)]
    bar = "─" * (2 * box + 1)
    rules = {0: "┌┬┐", side: "└┴┘"}
    lines = []
    for row in range(side + 1):
        if row % box == 0:
            rule = rules.get(row, "├┼┤")
            lines.append(rule[0] + rule[1].join([bar] * box) + rule[2])
        if row < side:
            cells = shown[row * side : (row + 1) * side]
            groups = [" ".join(cells[start : start + box]) for start in range(0, side, box)]
            lines.append("│ " + " │ ".join(groups) + " │")
    return "\n".join(lines)


def _cells(puzzle: Tensor, answer: Tensor | None, side: int) -> tuple[list[str], list[str]]:
    """Clues and answers as characters; '' where a cell has no clue, '.' where it has no digit."""
    clues = [_digit(token, side) for token in drawing.tokens(puzzle, side * side)]
    if answer is None:
        return clues, [clue or "." for clue in clues]
    return clues, [_digit(token, side) or "." for token in drawing.tokens(answer, side * side)]


def _digit(token: int, side: int) -> str:
    return str(token - BLANK) if BLANK < token <= side + BLANK else ""


def _styled(clue: str, filled: str, sure: float, colour: bool) -> str:
    if not colour or filled == ".":
        return filled
    if clue == filled:
        return drawing.paint(filled, drawing.BOLD)
    return drawing.paint(filled, f"38;5;{drawing.heat(sure)}")


def svg_text(
    box: int,
    puzzle: Tensor,
    answer: Tensor | None,
    confidence: Tensor | None,
    wrong: Tensor | None,
) -> str:
    """A picture: clues bold, answers blue, cells tinted by doubt, wrong cells struck through."""
    side = box * box
    clues, filled = _cells(puzzle, answer, side)
    sure = drawing.shares(confidence, side * side, 1.0)
    marked = drawing.shares(wrong, side * side, 0.0)
    under, over = [], []
    for cell in range(side * side):
        row, column = divmod(cell, side)
        x, y = MARGIN + column * CELL, MARGIN + row * CELL
        if sure[cell] < 1.0 and clues[cell] != filled[cell]:
            under.append(drawing.shade(x, y, CELL, 1.0 - sure[cell]))
        if marked[cell]:
            over.append(drawing.cross(x, y, CELL))
        if filled[cell] != ".":
            over.append(_figure(x, y, clues[cell], filled[cell]))
    size = 2 * MARGIN + side * CELL
    return drawing.page(size, size, "Sudoku", (*under, *_rules(box), *over))


def _figure(x: float, y: float, clue: str, filled: str) -> str:
    is_clue = clue == filled
    ink = drawing.INK if is_clue else drawing.ANSWER
    return drawing.letter(x + CELL / 2, y + CELL / 2, filled, CELL * 0.52, ink, bold=is_clue)


def _rules(box: int) -> list[str]:
    """Thin rules first, so that the thick ones of the boxes lie on top."""
    side = box * box
    end = MARGIN + side * CELL
    thin: list[str] = []
    thick: list[str] = []
    for place in range(side + 1):
        at = MARGIN + place * CELL
        is_edge = place % box == 0
        ink, width = (drawing.INK, 2.4) if is_edge else (drawing.RULE, 1.0)
        pair = [
            drawing.line(at, MARGIN, at, end, ink, width),
            drawing.line(MARGIN, at, end, at, ink, width),
        ]
        (thick if is_edge else thin).extend(pair)
    return thin + thick
