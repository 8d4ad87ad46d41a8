"""Boards as TinyRecursiveModels writes them, and the boxes that are read from them."""

import numpy as np
import pytest
import torch
from torch import Tensor

from tiltrm.tasks.arc import tokens as ids
from tiltrm.tasks.arc.grids import ColourGrid


def as_the_peers(grid: ColourGrid, top: int, left: int) -> np.ndarray:
    """Pad the colours, then write ends below and beside the grid where the board has room."""
    rows, columns = len(grid), len(grid[0])
    board = np.zeros((30, 30), dtype=np.uint8)
    for row in range(rows):
        for column in range(columns):
            board[top + row, left + column] = grid[row][column] + 2
    if top + rows < 30:
        board[top + rows, left : left + columns] = 1
    if left + columns < 30:
        board[top : top + rows, left + columns] = 1
    return board.reshape(-1)


def random_grid(rows: int, columns: int, seed: int = 0) -> ColourGrid:
    found = np.random.default_rng(seed).integers(0, 10, (rows, columns)).tolist()
    return tuple(tuple(row) for row in found)


@pytest.mark.parametrize(
    ("rows", "columns", "top", "left"),
    [(1, 1, 0, 0), (3, 5, 0, 0), (30, 30, 0, 0), (30, 2, 0, 4), (4, 30, 1, 0), (4, 4, 26, 26)],
)
def test_boards_are_those_of_the_peers(rows: int, columns: int, top: int, left: int) -> None:
    grid = random_grid(rows, columns)
    board = ids.board_of(grid, top, left)
    assert board.tolist() == as_the_peers(grid, top, left).tolist()
    box = ids.colour_box(board)
    assert tuple(map(int, box)) == (top, left, rows, columns)
    assert ids.cut(board, *map(int, box)) == grid
    assert torch.equal(ids.drawn(board, box), board)


def cropped(board: np.ndarray) -> tuple[int, int]:
    """Rows and columns of the first largest box of colours at the upper left, by trying all."""
    best = (0, 0)
    for rows in range(1, 31):
        for columns in range(1, 31):
            part = board[:rows, :columns]
            if ((part >= 2) & (part <= 11)).all() and rows * columns > best[0] * best[1]:
                best = rows, columns
    return best


def test_the_largest_box_is_found_as_by_trying_all() -> None:
    random = np.random.default_rng(1)
    boards = []
    for _ in range(20):
        board = random.integers(2, 12, (30, 30))
        board[random.random((30, 30)) < random.choice([0.01, 0.05, 0.3])] = random.integers(0, 2)
        boards.append(board)
    boards.append(np.zeros((30, 30), dtype=np.int64))
    two = np.zeros((30, 30), dtype=np.int64)
    two[0, :4] = two[1, :2] = 5  # 1 x 4 and 2 x 2: the peers take the one with fewer rows
    boards.append(two)
    flat = torch.tensor(np.stack(boards)).flatten(1)
    zero = torch.zeros(len(flat), dtype=torch.int64)
    box = ids.answer_box(flat, zero, zero)
    found = list(zip(box.height.tolist(), box.width.tolist(), strict=True))
    assert found == [cropped(board) for board in boards]
    assert found[-2:] == [(0, 0), (1, 4)]


def test_a_box_starts_at_its_corner() -> None:
    grid = random_grid(3, 4)
    board = ids.board_of(grid, 5, 7)
    board[0] = 4  # a stray colour, above and left
    box = ids.answer_box(board, torch.tensor(5), torch.tensor(7))
    assert tuple(map(int, box)) == (5, 7, 3, 4)
    none = ids.answer_box(board, torch.tensor(4), torch.tensor(7))
    assert ids.cut(board, *map(int, none)) is None


def test_grids_move_with_their_ends() -> None:
    grid = random_grid(4, 6)
    boards = torch.stack([ids.board_of(grid), ids.board_of(grid, 26, 24)])
    box = ids.colour_box(boards)
    moved = ids.moved(boards, box, torch.tensor([26, 3]), torch.tensor([24, 0]))
    assert torch.equal(moved[0], boards[1])
    assert torch.equal(moved[1], ids.board_of(grid, 3, 0))


@pytest.mark.parametrize("number", [0, 1, 255, 256, 876_405, 2**32 - 1])
def test_numbers_are_written_most_significant_first(number: int) -> None:
    tokens = torch.cat((ids.board_of(((1,),)), ids.id_tokens(number)))
    assert int(ids.id_numbers(tokens)) == number
    found: Tensor = tokens[ids.BOARD :]
    assert found.tolist() == list(number.to_bytes(4, "big"))
