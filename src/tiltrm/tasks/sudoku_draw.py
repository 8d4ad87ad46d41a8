"""Sudoku grids for the terminal and as SVG."""

from torch import Tensor

from tiltrm.tasks import drawing, grid_draw
from tiltrm.tasks.sudoku_text import characters


def terminal(
    box: int, puzzle: Tensor, answer: Tensor | None, confidence: Tensor | None, *, colour: bool
) -> str:
    """A ruled grid: clues bold, answers red (unsure) to green (sure). Plain text reads back."""
    side = box * box
    clues, filled = grid_draw.shown(characters(side), side * side, puzzle, answer)
    sure = drawing.shares(confidence, side * side, 1.0)
    shown = [grid_draw.styled(clues[c], filled[c], sure[c], colour) for c in range(side * side)]
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


def svg_text(
    box: int,
    puzzle: Tensor,
    answer: Tensor | None,
    confidence: Tensor | None,
    wrong: Tensor | None,
) -> str:
    """A picture, with thick rules round the boxes."""
    side = box * box
    clues, filled = grid_draw.shown(characters(side), side * side, puzzle, answer)
    return grid_draw.svg(side, clues, filled, confidence, wrong, box=box, title="Sudoku")
