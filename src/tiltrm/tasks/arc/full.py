"""The task arc: grids of at most 30 x 30, as TinyRecursiveModels and HRM encode them.

A question has 904 cells: the board of 30 x 30, and the number of the puzzle in four cells
(`tiltrm.tasks.arc.tokens`). Each augmentation of a task is a puzzle of its own, with its own number
in the model's table, so there are no symmetric views here: augmented questions are solved one by
one and their answers turned back (`tiltrm.tasks.arc.augmentation`).
Proved by tests/tasks/arc/test_full.py.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from tiltrm.errors import PuzzleError, SizeError
from tiltrm.tasks.arc import draw
from tiltrm.tasks.arc.base import ColourTask
from tiltrm.tasks.arc.grids import SIDE, ColourGrid, read_rows, write_rows
from tiltrm.tasks.arc.text import read_question, symbol
from tiltrm.tasks.arc.tokens import (
    BOARD,
    ID_CELLS,
    LARGEST_ID,
    VOCABULARY,
    Box,
    answer_box,
    board_of,
    colour_box,
    cut,
    drawn,
    id_numbers,
    id_tokens,
    is_colour,
    moved,
)
from tiltrm.tasks.base import PAD, TOKENS, Symmetry, TaskDefaults


@dataclass(frozen=True)
class Arc(ColourTask):
    """Grids of at most 30 x 30. The vocabulary is that of the board; id cells hold bytes."""

    name = "arc"
    side = SIDE
    cells = BOARD + ID_CELLS
    vocabulary = VOCABULARY
    grid_cells = BOARD
    id_cells = ID_CELLS

    @property
    def defaults(self) -> TaskDefaults:
        return TaskDefaults(symmetric_views=False)

    def question(self, grid: ColourGrid, number: int, corner: tuple[int, int] = (0, 0)) -> Tensor:
        """(cell,) uint8: an input grid of the puzzle of this number."""
        if not 0 <= number <= LARGEST_ID:
            raise PuzzleError(f"expected a puzzle number in 0..{LARGEST_ID}, got {number}")
        if any(place + size > SIDE for place, size in zip(corner, (len(grid), len(grid[0])),
                                                          strict=True)):  # fmt: skip
            raise SizeError(
                f"expected a grid within the board of {SIDE} x {SIDE}, got {len(grid)} rows of "
                f"{len(grid[0])} at row {corner[0] + 1}, column {corner[1] + 1}"
            )
        return torch.cat((board_of(grid, *corner), id_tokens(number)))

    def answer(self, grid: ColourGrid, corner: tuple[int, int] = (0, 0)) -> Tensor:
        """(cell,) uint8: an output grid; the id cells hold pads."""
        return self.question(grid, 0, corner)

    def task_numbers(self, puzzles: Tensor) -> Tensor:
        """(..., cell) questions -> (...) int64: the numbers of their puzzles."""
        return id_numbers(puzzles)

    def answer_grid(self, puzzle: Tensor, answer: Tensor) -> ColourGrid | None:
        """The grid of an answer (cell,), or None if there is no rectangle of colours.

        It is the largest one whose upper left corner is that of the question's grid.
        """
        return self.answer_grids(puzzle, answer[None])[0]

    def answer_grids(self, puzzle: Tensor, answers: Tensor) -> list[ColourGrid | None]:
        """The same for several answers (answer, cell) to one question."""
        boards = answers[:, :BOARD]
        box = self._answer_box(puzzle, boards)
        sizes = zip(*(each.tolist() for each in box), strict=True)
        return [cut(board, *size) for board, size in zip(boards, sizes, strict=True)]

    def question_grid(self, puzzle: Tensor) -> ColourGrid | None:
        """The input grid of a question (cell,)."""
        return cut(puzzle[:BOARD], *map(int, colour_box(puzzle[:BOARD])))

    def _answer_box(self, puzzle: Tensor, board: Tensor) -> Box:
        corner = colour_box(puzzle[..., :BOARD])
        return answer_box(board, corner.top, corner.left)

    def encode(self, text: str, *, answer: bool = False) -> Tensor:
        """'NUMBER: 00500/01210/...' -> (cell,) uint8; an answer: rows. Without NUMBER it is 0."""
        if answer:
            return self.answer(read_rows(text))
        read = read_question(text)
        if read.augmentation.changes:
            raise PuzzleError(
                "expected the number of the augmented puzzle for arc, got a number with a turn or "
                "colours, which only mini-arc reads"
            )
        return self.question(read.grid, read.number or 0, read.corner)

    def decode(self, tokens: Tensor) -> str:
        """The text that `encode` reads; 'no rectangle' if the board shows no grid."""
        if len(tokens) != self.cells:
            return "".join(map(symbol, tokens.tolist()))
        box = colour_box(tokens[:BOARD])
        if not bool(self.well_formed(tokens)):
            box = answer_box(tokens[:BOARD], box.top, box.left)
        grid = cut(tokens[:BOARD], *map(int, box))
        number = int(id_numbers(tokens))
        place = f" +{int(box.top)}+{int(box.left)}" if bool(box.top + box.left) else ""
        head = f"{number}{place}: " if number or place else ""
        return head + (draw.NO_RECTANGLE if grid is None else write_rows(grid))

    def answer_text(self, puzzle: Tensor, answer: Tensor) -> str:
        """The rows of the answer's grid, or 'no rectangle'."""
        grid = self.answer_grid(puzzle, answer)
        return draw.NO_RECTANGLE if grid is None else write_rows(grid)

    def well_formed(self, tokens: Tensor, *, answer: bool = False) -> Tensor:
        """Whether there is one rectangle of colours with its end tokens, anywhere on the board.

        The id cells of an answer must be pads.
        """
        board = tokens[..., :BOARD].to(torch.int16)
        box = colour_box(board)
        fits = (drawn(board, box) == board).all(-1) & (box.height > 0)
        inside = is_colour(board).sum(-1) == box.height * box.width
        ids = tokens[..., BOARD:].to(torch.int16)
        named = (ids == PAD) if answer else (ids >= 0) & (ids < TOKENS)
        return fits & inside & named.all(-1)

    def tidy(self, puzzle: Tensor, answer: Tensor) -> Tensor:
        """Answers (..., cell) with pads outside their grid and its end tokens."""
        puzzle, answer = torch.broadcast_tensors(puzzle, answer)
        board = answer[..., :BOARD]
        clean = drawn(board, self._answer_box(puzzle, board))
        return torch.cat((clean, torch.zeros_like(answer[..., BOARD:])), -1)

    def tidy_answers(self, answers: Tensor) -> Tensor:
        """`tidy` without the questions, for grids in the upper left corner or where colours begin.

        Models are not trained on the cells outside a grid, so that equal grids may differ there.
        """
        board = answers[..., :BOARD]
        box = colour_box(board)
        cornered = is_colour(board[..., 0])
        top, left = (each.masked_fill(cornered, 0) for each in (box.top, box.left))
        clean = drawn(board, answer_box(board, top, left))
        return torch.cat((clean, torch.zeros_like(answers[..., BOARD:])), -1)

    def violations(self, puzzle: Tensor, answer: Tensor) -> Tensor:
        """Cells that are not those of the answer's grid; all cells if it has none."""
        clean = self.tidy(puzzle, answer)
        off = (clean != answer).sum(-1)
        return torch.where(is_colour(clean[..., :BOARD]).any(-1), off, self.cells)

    def symmetry(self, puzzles: int, generator: torch.Generator) -> Symmetry:
        """The identity: each augmentation is a puzzle of its own."""
        places, names = (
            torch.arange(count, device=generator.device).expand(puzzles, -1)
            for count in (self.cells, TOKENS)  # id cells hold any byte
        )
        return Symmetry(places, names)

    def symmetries(
        self, tokens: Tensor, answers: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Questions and answers, both grids moved to one random place of the board.

        Only translations keep the number of a puzzle.
        """
        boxes = [colour_box(each[:, :BOARD]) for each in (tokens, answers)]
        shares = torch.rand(2, len(tokens), generator=generator, device=generator.device)
        sizes = ((each.height, each.width) for each in boxes)
        corner = [
            (share.to(tokens.device) * (SIDE + 1 - torch.maximum(*lengths))).long()
            for share, lengths in zip(shares, zip(*sizes, strict=True), strict=True)
        ]
        question, answer = (
            torch.cat((moved(each[:, :BOARD], box, *corner), each[:, BOARD:]), -1)
            for each, box in zip((tokens, answers), boxes, strict=True)
        )
        return question, answer

    def _shown(
        self, puzzle: Tensor, answer: Tensor | None, confidence: Tensor | None,
        wrong: Tensor | None = None,
    ) -> draw.Shown:  # fmt: skip
        area = draw.Area(0, 0, 0, 0, SIDE)
        if answer is not None:
            box = self._answer_box(puzzle, answer[:BOARD])
            top, left, height, width = (int(each) for each in box)
            area = draw.Area(top, left, height, width, SIDE)
        return draw.show(self.question_grid(puzzle), area, answer, confidence, wrong)


ARC = Arc()
