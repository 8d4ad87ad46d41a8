"""Token ids of ARC boards: 0 pad, 1 end of grid, 2 to 11 the colours, as TinyRecursiveModels.

A board has 30 x 30 cells. The grid lies on it, in the upper left corner unless it was moved; the
row below the grid and the column right of it hold end tokens, as far as they lie on the board and
no further than the grid reaches. Behind the board stand four cells with the number of the puzzle
in base 256, most significant first. Proved by tests/tasks/arc/test_arc_tokens.py.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from tiltrm.tasks.arc.grids import COLOURS, SIDE, ColourGrid
from tiltrm.tasks.base import PAD

END = 1
BLACK = 2  # the token of colour 0
VOCABULARY = BLACK + COLOURS
BOARD = SIDE * SIDE  # cells
ID_CELLS = 4
BASE = 256
LARGEST_ID = BASE**ID_CELLS - 1


class Box(NamedTuple):
    """Where a grid lies on its board: each (...) int64; height 0 means that there is none."""

    top: Tensor
    left: Tensor
    height: Tensor
    width: Tensor


def board_of(grid: ColourGrid, top: int = 0, left: int = 0) -> Tensor:
    """(900,) uint8: a grid on its board, with its end tokens."""
    height, width = len(grid), len(grid[0])
    board = torch.full((SIDE, SIDE), PAD, dtype=torch.uint8)
    board[top : top + height, left : left + width] = torch.tensor(grid, dtype=torch.uint8) + BLACK
    board[top + height : top + height + 1, left : left + width] = END
    board[top : top + height, left + width : left + width + 1] = END
    return board.flatten()


def id_tokens(number: int) -> Tensor:
    """(4,) uint8: the number of a puzzle, most significant first."""
    return torch.tensor(list(number.to_bytes(ID_CELLS, "big")), dtype=torch.uint8)


def id_numbers(tokens: Tensor) -> Tensor:
    """(..., cell) questions -> (...) int64, the numbers of their puzzles."""
    places = BASE ** torch.arange(ID_CELLS - 1, -1, -1, device=tokens.device)
    numbers: Tensor = (tokens[..., BOARD:].long() * places).sum(-1)
    return numbers


def is_colour(tokens: Tensor) -> Tensor:
    """Whether each token is that of a colour."""
    return (tokens >= BLACK) & (tokens < VOCABULARY)


def colour_box(board: Tensor) -> Box:
    """(..., 900) -> the smallest box that holds all colours of each board."""
    coloured = is_colour(board).unflatten(-1, (SIDE, SIDE))
    rows, columns = coloured.any(-1), coloured.any(-2)
    places = torch.arange(SIDE, device=board.device)
    found = []
    for line in (rows, columns):
        first = torch.where(line, places, SIDE).amin(-1)
        found.append((first, torch.where(line, places + 1, 0).amax(-1)))
    (top, bottom), (left, right) = found
    empty = bottom == 0
    return Box(
        top.masked_fill(empty, 0), left.masked_fill(empty, 0),
        (bottom - top).clamp(min=0), (right - left).clamp(min=0),
    )  # fmt: skip


def answer_box(board: Tensor, top: Tensor, left: Tensor) -> Box:
    """The largest box of colours with this upper left corner, as the peers' evaluators crop.

    Of boxes with equally many cells it is the one with the fewest rows. Height 0 if the corner has
    no colour.
    """
    coloured = is_colour(board).unflatten(-1, (SIDE, SIDE))
    places = torch.arange(SIDE, device=board.device)
    top, left = (each.expand(board.shape[:-1]) for each in (top, left))
    below, right = (places >= corner[..., None] for corner in (top, left))
    row_ok = coloured | ~right.unsqueeze(-2)  # cells left of the corner do not end a run
    run = (row_ok.cumprod(-1).bool() & right.unsqueeze(-2)).sum(-1)  # (..., row)
    run = torch.where(below, run, SIDE)
    width = run.cummin(-1).values
    height = (places + 1 - top[..., None]) * below
    area = torch.where(below, height * width, 0)
    best = (area * (SIDE + 1) + (SIDE - height)).argmax(
        -1, keepdim=True
    )  # the first of the largest
    found = area.gather(-1, best).squeeze(-1) > 0
    tall, wide = (each.gather(-1, best).squeeze(-1) * found for each in (height, width))
    return Box(top, left, tall, wide)


def drawn(board: Tensor, box: Box) -> Tensor:
    """The board with the colours inside the box, its end tokens, and pads elsewhere."""
    places = torch.arange(SIDE, device=board.device)
    spans = []
    for start, size in ((box.top, box.height), (box.left, box.width)):
        end = (start + size)[..., None]
        spans.append(((places >= start[..., None]) & (places < end), places == end))
    (rows, below), (columns, beside) = spans
    inside = (rows.unsqueeze(-1) & columns.unsqueeze(-2)).flatten(-2)
    ends = (below.unsqueeze(-1) & columns.unsqueeze(-2)) | (
        rows.unsqueeze(-1) & beside.unsqueeze(-2)
    )
    held = (box.height > 0)[..., None]
    return torch.where(inside & held, board, (ends.flatten(-2) & held).to(board.dtype) * END)


def moved(board: Tensor, box: Box, top: Tensor, left: Tensor) -> Tensor:
    """Boards (puzzle, 900) whose grid in `box` gets another upper left corner."""
    places = torch.arange(SIDE, device=board.device)
    rows = (places + (box.top - top)[..., None]).clamp(0, SIDE - 1)
    columns = (places + (box.left - left)[..., None]).clamp(0, SIDE - 1)
    cells = (rows[..., :, None] * SIDE + columns[..., None, :]).flatten(-2)
    return drawn(board.gather(-1, cells), Box(top, left, box.height, box.width))


def cut(board: Tensor, top: int, left: int, height: int, width: int) -> ColourGrid | None:
    """The grid of one board (900,) in a box; None if the box is empty."""
    if not height:
        return None
    rows = board.view(SIDE, SIDE)[top : top + height, left : left + width].long() - BLACK
    return tuple(map(tuple, rows.tolist()))
