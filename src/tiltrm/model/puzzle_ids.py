"""Puzzle ids in the cells of a question, and the rows of a puzzle embedding that they name.

The last `id_cells` cells of a question may hold its puzzle id in base 256, the most significant
digit first. Proved by tests/model/test_id_cells.py.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

BASE = 256  # a cell is a byte
MAX_ID_CELLS = 4


def ids_in_cells(tokens: Tensor, id_cells: int) -> Tensor:
    """The puzzle ids of questions: (..., cell) -> (...) int64."""
    ids = torch.zeros(tokens.shape[:-1], dtype=torch.int64, device=tokens.device)
    for digit in tokens[..., tokens.shape[-1] - id_cells :].long().unbind(-1):
        ids = BASE * ids + digit
    return ids


def fetch_rows(table: Tensor, ids: Tensor) -> Tensor:
    """The rows of a table on the device of the ids: (row, number), (...) -> (..., number).

    Of a table on another device, such as a file that is mapped into memory, each row that is
    needed is read once.
    """
    if table.device == ids.device and table.device.type != "cpu":
        return table[ids]
    needed, which = ids.cpu().unique(return_inverse=True)
    return table[needed].to(ids.device)[which.to(ids.device)]


def cut_rows(rows: Tensor, prefix: int, width: int) -> Tensor:
    """(..., number) -> (..., prefix, width): numbers in their order, the end filled with zeros."""
    spare = prefix * width - rows.shape[-1]
    return F.pad(rows, (0, spare)).reshape(*rows.shape[:-1], prefix, width)
