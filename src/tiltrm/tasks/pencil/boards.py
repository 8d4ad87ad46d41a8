"""Batches of 10 x 10 boards on any device: connected cells, squares, neighbours, lines of sight.

A board is (..., row, column). Steps go up, down, left and right.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

LOOK_EVERY = 4  # steps between two looks at the labels, each of which waits for the device


def connected(right: Tensor, down: Tensor) -> Tensor:
    """The component of each cell, as the least index among its cells: (..., cell) int64.

    right (..., row, column - 1) and down (..., row - 1, column) bool: which neighbours are joined.
    """
    rows, columns = right.shape[-2], down.shape[-1]
    cells = torch.arange(rows * columns, dtype=torch.uint8, device=right.device)
    labels = cells.view(rows, columns).expand(*right.shape[:-2], -1, -1).contiguous()
    across, along = (torch.where(joined, 0, 255).to(torch.uint8) for joined in (right, down))
    left_half, right_half = labels[..., :, :-1], labels[..., :, 1:]
    upper_half, lower_half = labels[..., :-1, :], labels[..., 1:, :]
    while True:
        before = labels.clone()
        for _ in range(LOOK_EVERY):
            torch.minimum(right_half, left_half | across, out=right_half)
            torch.minimum(lower_half, upper_half | along, out=lower_half)
            torch.minimum(left_half, right_half | across, out=left_half)
            torch.minimum(upper_half, lower_half | along, out=upper_half)
        if torch.equal(before, labels):
            return labels.flatten(-2).long()


def groups(cells: Tensor) -> Tensor:
    """Components of the cells that are set: (..., row, column) bool -> (..., cell) int64."""
    return connected(cells[..., :, :-1] & cells[..., :, 1:], cells[..., :-1, :] & cells[..., 1:, :])


def group_count(cells: Tensor) -> Tensor:
    """How many components the cells that are set have: (...) int64."""
    labels = groups(cells)
    own = torch.arange(labels.shape[-1], device=labels.device)
    return ((labels == own) & cells.flatten(-2)).sum(-1)


def squares(cells: Tensor) -> Tensor:
    """How many squares of 2 x 2 are wholly set: (...) int64."""
    pairs = cells[..., :, :-1] & cells[..., :, 1:]
    return (pairs[..., :-1, :] & pairs[..., 1:, :]).flatten(-2).sum(-1)


def neighbours(cells: Tensor) -> Tensor:
    """How many of its four neighbours are set, for every cell: (..., row, column) int8."""
    wide = F.pad(cells.to(torch.int8), (1, 1, 1, 1))
    return wide[..., :-2, 1:-1] + wide[..., 2:, 1:-1] + wide[..., 1:-1, :-2] + wide[..., 1:-1, 2:]


def surroundings(cells: Tensor) -> Tensor:
    """The eight cells round each cell as bits, clockwise from the upper left: int16."""
    wide = F.pad(cells.to(torch.int16), (1, 1, 1, 1))
    rows, columns = cells.shape[-2:]
    steps = ((0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0))
    around = torch.zeros_like(wide[..., 1:-1, 1:-1])
    for bit, (row, column) in enumerate(steps):
        around += wide[..., row : row + rows, column : column + columns] << bit
    return around


def before(marks: Tensor, free: Tensor) -> Tensor:
    """Whether a mark stands to the left of each cell with only free cells from it to the cell.

    Both (..., line, place) bool, of which the marks are free as well.
    """
    seen = torch.zeros_like(free)
    carried = torch.zeros_like(free[..., 0])
    for place in range(free.shape[-1]):
        seen[..., place] = carried & free[..., place]
        carried = (carried | marks[..., place]) & free[..., place]
    return seen


def crossings(free: Tensor, border: Tensor) -> Tensor:
    """Borders beyond the first that a run of free cells crosses, over all lines: (...) int64.

    free (..., line, place) bool; border (..., line, place - 1) bool lies to the right of a cell.
    """
    crossed = torch.zeros_like(free[..., 0])
    extra = torch.zeros(free.shape[:-2], dtype=torch.int64, device=free.device)
    for place in range(1, free.shape[-1]):
        joined = free[..., place - 1] & free[..., place]
        crosses = joined & border[..., place - 1]
        extra += (crosses & crossed).sum(-1)
        crossed = joined & (crossed | crosses)
    return extra
