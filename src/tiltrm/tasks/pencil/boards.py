"""Batches of 10 x 10 boards on any device: runs, connected cells, squares, neighbours.

A board is (..., row, column). Steps go up, down, left and right. A run is a stretch of cells of one
row or one column that belong together. Runs are numbered, so that one operation over all boards
counts along every line of sight, and cells are connected run by run: a GPU gets few operations.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from tiltrm.tasks.pencil.tokens import CELLS

LABELS = 2 * CELLS + 1  # runs of a board are numbered from 1, and components are named after them
ROUNDS, JUMPS = 4, 2  # of `components` before it looks at the labels, which waits for the device


def previous(cells: Tensor, outside: int = 0) -> Tensor:
    """The values to the left of each cell and above it: (..., 2, row, column)."""
    wide = F.pad(cells, (1, 0, 1, 0), value=outside)
    return torch.stack((wide[..., 1:, :-1], wide[..., :-1, 1:]), -3)


def starts(classes: Tensor) -> Tensor:
    """Where a run of equal classes, which are at least 0, starts: (..., 2, row, column) bool.

    Rows come first, then columns.
    """
    return previous(classes, outside=-1) != classes.unsqueeze(-3)


def runs(begins: Tensor) -> Tensor:
    """The number of each cell's run in its row and in its column: (..., 2, cell) int64.

    Those of a board go from 1 to 2 x CELLS at most; `begins` is as `starts` gives it.
    """
    lines = torch.stack((begins[..., 0, :, :], begins[..., 1, :, :].mT), -3)
    numbers = lines.flatten(-3).cumsum(-1).view(lines.shape)
    return torch.stack((numbers[..., 0, :, :], numbers[..., 1, :, :].mT), -3).flatten(-2)


def sum_by(labels: Tensor, values: Tensor) -> Tensor:
    """Sums of values over the cells of each label or run: (..., cell) -> (..., label) int64."""
    sums = values.new_zeros((*values.shape[:-1], LABELS), dtype=torch.int64)
    return sums.scatter_add_(-1, labels.expand(values.shape), values.long())


def largest_by(labels: Tensor, values: Tensor) -> Tensor:
    """The largest value, at least 0, among the cells of each label: (..., label) int64."""
    largest = values.new_zeros((*values.shape[:-1], LABELS), dtype=torch.int64)
    return largest.scatter_reduce_(-1, labels, values.long(), "amax")


def beyond_first(counts: Tensor) -> Tensor:
    """All but one of each count, summed: (..., label) -> (...) int64."""
    return (counts - 1).clamp(min=0).sum(-1)


def components(numbers: Tensor) -> Tensor:
    """A label for each cell, equal where cells are connected: (..., 2, cell) -> (..., cell) int64.

    A cell connects its two runs, so that it gives the lesser of their labels to both of them and,
    through the run that the other label is named after, to the runs that it was connected with.
    """
    flat = numbers.flatten(-2)
    labels = torch.arange(LABELS, device=flat.device).repeat(*flat.shape[:-1], 1)
    while True:
        for _ in range(ROUNDS):
            seen = labels.gather(-1, flat)
            least = torch.minimum(seen[..., :CELLS], seen[..., CELLS:])
            labels.scatter_reduce_(-1, seen, torch.cat((least, least), -1), "amin")
            for _ in range(JUMPS):
                labels = labels.gather(-1, labels)
        by_row, by_column = labels.gather(-1, flat).view(numbers.shape).unbind(-2)
        if torch.equal(by_row, by_column):
            return by_row


def squares(cells: Tensor) -> Tensor:
    """How many squares of 2 x 2 are wholly set: (...) int64."""
    pairs = cells[..., :, :-1] & cells[..., :, 1:]
    return (pairs[..., :-1, :] & pairs[..., 1:, :]).sum((-2, -1))


def neighbours(cells: Tensor) -> Tensor:
    """How many of its four neighbours are set, for every cell: (..., row, column) int8."""
    wide = F.pad(cells.to(torch.int8), (1, 1, 1, 1))
    return wide[..., :-2, 1:-1] + wide[..., 2:, 1:-1] + wide[..., 1:-1, :-2] + wide[..., 1:-1, 2:]


def surroundings(cells: Tensor) -> Tensor:
    """The eight cells round each cell as bits, clockwise from the upper left: int16."""
    wide = F.pad(cells.to(torch.int16), (1, 1, 1, 1))
    rows, columns = cells.shape[-2:]
    steps = ((0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0))
    around = torch.zeros_like(cells, dtype=torch.int16)
    for bit, (row, column) in enumerate(steps):
        around.add_(wide[..., row : row + rows, column : column + columns], alpha=1 << bit)
    return around
