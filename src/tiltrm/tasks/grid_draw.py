"""Grids of characters for the terminal and as SVG, for every task that fills blanks."""

import html
from collections.abc import Iterable, Sequence

from torch import Tensor

from tiltrm.tasks import drawing

CELL, MARGIN = 48, 14
EMPTY = "."


def shown(
    characters: str, cells: int, puzzle: Tensor, answer: Tensor | None
) -> tuple[list[str], list[str]]:
    """Clues and what is filled in, a character a cell: '' is no clue, '.' is nothing filled in.

    `characters` are those of the ids 1, 2, ..., the first of them the blank.
    """
    clues, own = (
        [_character(characters, token) for token in drawing.tokens(ids, cells)]
        for ids in (puzzle, puzzle if answer is None else answer)
    )
    return clues, [each or EMPTY for each in own]


def _character(characters: str, token: int) -> str:
    return characters[token - 1] if 1 < token <= len(characters) else ""


def styled(clue: str, filled: str, sure: float, colour: bool) -> str:
    """One cell for a terminal: clues bold, answers red (unsure) to green (sure)."""
    if not colour or filled == EMPTY:
        return filled
    if clue == filled:
        return drawing.paint(filled, drawing.BOLD)
    return drawing.paint(filled, f"38;5;{drawing.heat(sure)}")


def svg(
    side: int, clues: Sequence[str], filled: Sequence[str], confidence: Tensor | None,
    wrong: Tensor | None, *, box: int, title: str,
) -> str:  # fmt: skip
    """A picture: clues bold, answers blue, cells tinted by doubt, wrong cells struck through.

    clues, filled: as `shown` gives them. Every `box` cells the rules are thick.
    """
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
        if filled[cell] != EMPTY:
            over.append(_figure(x, y, clues[cell], filled[cell]))
    size = 2 * MARGIN + side * CELL
    return drawing.page(size, size, title, (*under, *_rules(side, box), *over))


def _figure(x: float, y: float, clue: str, filled: str) -> str:
    is_clue = clue == filled
    ink = drawing.INK if is_clue else drawing.ANSWER
    text = html.escape(filled)
    return drawing.letter(x + CELL / 2, y + CELL / 2, text, CELL * 0.52, ink, bold=is_clue)


def _rules(side: int, box: int) -> Iterable[str]:
    """Thin rules first, so that the thick ones lie on top."""
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
