"""The task mini-arc: grids of 5 x 5, with a header that symmetries move along with the grid.

A question has 40 cells. Behind the 25 cells of the grid stand 10 role cells with the colours 0 to
9, 4 corner cells with the marks of the upper left, upper right, lower right and lower left corner,
and a cell with the number of the task. A permutation of colours renames the role cells too, and a
turn of the grid permutes the corner cells as it permutes the corners of the grid. So the header of
a symmetric view tells which view it is. The header of an answer holds token 1.
Proved by tests/tasks/arc/test_mini.py.
"""

import functools
from dataclasses import dataclass

import torch
from torch import Tensor

from tiltrm.errors import PuzzleError, SizeError
from tiltrm.tasks.arc import draw
from tiltrm.tasks.arc.augmentation import Augmentation
from tiltrm.tasks.arc.base import ColourTask
from tiltrm.tasks.arc.grids import (
    COLOURS,
    TURNS,
    ColourGrid,
    read_rows,
    turn_sources,
)
from tiltrm.tasks.arc.text import read_question, symbol
from tiltrm.tasks.arc.tokens import BLACK, END, VOCABULARY, is_colour
from tiltrm.tasks.base import TOKENS, Symmetry, TaskDefaults, permutations

SIDE = 5
GRID = SIDE * SIDE  # cells of the grid
ROLES = GRID  # the first role cell
CORNERS = ROLES + COLOURS  # the first corner cell
NUMBER = CORNERS + 4  # the cell of the task number
CELLS = NUMBER + 1
MARKS = VOCABULARY  # the token of the upper left corner
FIRST_TASK = MARKS + 4  # the token of task 0
MOST_TASKS = TOKENS - FIRST_TASK
_CORNER_CELLS = (0, SIDE - 1, GRID - 1, GRID - SIDE)  # in the order of the corner cells


def turns_of_cells() -> Tensor:
    """(turn, cell): the cell of a question that each cell of the turned question comes from."""
    grid = turn_sources(SIDE)
    place = {cell: number for number, cell in enumerate(_CORNER_CELLS)}
    corners = [[CORNERS + place[int(row[cell])] for cell in _CORNER_CELLS] for row in grid]
    roles = torch.arange(ROLES, CORNERS).expand(TURNS, -1)
    return torch.cat((grid, roles, torch.tensor(corners), torch.full((TURNS, 1), NUMBER)), 1)


TURNED_CELLS = turns_of_cells()


@functools.cache
def _turned_cells_on(device: torch.device) -> Tensor:
    """The table on a device; a copy in every training step would make the host wait for a GPU."""
    return TURNED_CELLS.to(device)


@dataclass(frozen=True)
class MiniArc(ColourTask):
    """Grids of 5 x 5. keep_black: symmetries leave colour 0 as it is."""

    keep_black: bool = True
    name = "mini-arc"
    side = SIDE
    cells = CELLS
    vocabulary = TOKENS
    grid_cells = GRID

    @property
    def defaults(self) -> TaskDefaults:
        return TaskDefaults(model="mini-arc")

    def question(
        self, grid: ColourGrid, number: int, augmentation: Augmentation | None = None
    ) -> Tensor:
        """(cell,) uint8: an input grid of a task, augmented; PuzzleError if it does not fit."""
        if not 0 <= number < MOST_TASKS:
            raise PuzzleError(
                f"expected a task number in 0..{MOST_TASKS - 1} for {self.name}, got {number}"
            )
        own = Augmentation() if augmentation is None else augmentation
        marks = torch.arange(MARKS, FIRST_TASK)
        header = torch.cat(
            (BLACK + torch.arange(COLOURS), marks, torch.tensor([FIRST_TASK + number]))
        )
        plain = torch.cat((_grid_tokens(grid), header))
        return self._symmetry_of(own).apply(plain[None])[0].to(torch.uint8)

    def answer(self, grid: ColourGrid) -> Tensor:
        """(cell,) uint8: an output grid."""
        header = torch.full((CELLS - GRID,), END)
        return torch.cat((_grid_tokens(grid), header)).to(torch.uint8)

    def task_numbers(self, puzzles: Tensor) -> Tensor:
        """(..., cell) questions -> (...) int64: the numbers of their tasks."""
        return puzzles[..., NUMBER].long() - FIRST_TASK

    def augmentation_of(self, puzzle: Tensor) -> Augmentation:
        """The augmentation that the header of a question (cell,) tells."""
        corners = (puzzle[CORNERS:NUMBER].long() - MARKS + CORNERS).tolist()
        number = next((turn for turn in range(TURNS)
                       if TURNED_CELLS[turn, CORNERS:NUMBER].tolist() == corners), 0)  # fmt: skip
        return Augmentation(number, tuple((puzzle[ROLES:CORNERS].long() - BLACK).tolist()))

    def answer_grid(self, puzzle: Tensor, answer: Tensor) -> ColourGrid | None:
        """The grid of an answer (cell,); None if a cell holds no colour."""
        cells = answer[:GRID]
        if not bool(is_colour(cells).all()):
            return None
        return tuple(map(tuple, (cells.long() - BLACK).view(SIDE, SIDE).tolist()))

    def answer_grids(self, puzzle: Tensor, answers: Tensor) -> list[ColourGrid | None]:
        """The same for several answers (answer, cell) to one question."""
        return [self.answer_grid(puzzle, answer) for answer in answers]

    def question_grid(self, puzzle: Tensor) -> ColourGrid | None:
        """The input grid of a question (cell,)."""
        return self.answer_grid(puzzle, puzzle)

    def encode(self, text: str, *, answer: bool = False) -> Tensor:
        """'NUMBER: 01234/...' or 'NUMBER t3 0213456789: ...' -> (cell,) uint8; an answer: rows."""
        if answer:
            return self.answer(read_rows(text))
        read = read_question(text)
        if read.number is None:
            raise PuzzleError(
                "expected the number of the task before the grid, as in '7: 00500/01210/...', got "
                f"{text[:40]!r}"
            )
        if read.corner != (0, 0):
            raise PuzzleError("expected a grid that is not moved for mini-arc, got one that is")
        plain = self.question(read.grid, read.number)
        moved = self.question(read.grid, read.number, read.augmentation)
        return torch.cat((plain[:GRID], moved[GRID:]))

    def decode(self, tokens: Tensor) -> str:
        """The text that `encode` reads; '?' for a cell without a colour."""
        if len(tokens) != self.cells:
            return "".join(map(symbol, tokens.tolist()))
        cells = "".join(map(symbol, tokens[:GRID].tolist()))
        rows = "/".join(cells[at : at + SIDE] for at in range(0, GRID, SIDE))
        if not bool(self.well_formed(tokens)):
            return rows
        own = self.augmentation_of(tokens)
        moves = f" t{own.turn} {''.join(map(str, own.colours))}" if own.changes else ""
        return f"{int(self.task_numbers(tokens))}{moves}: {rows}"

    def answer_text(self, puzzle: Tensor, answer: Tensor) -> str:
        """The rows of an answer; '?' for a cell without a colour."""
        cells = "".join(map(symbol, answer[:GRID].tolist()))
        return "/".join(cells[at : at + SIDE] for at in range(0, GRID, SIDE))

    def well_formed(self, tokens: Tensor, *, answer: bool = False) -> Tensor:
        """Whether the grid holds colours, and the header is that of a question or an answer."""
        tokens = tokens.long()
        fits = is_colour(tokens[..., :GRID]).all(-1)
        if answer:
            return fits & (tokens[..., GRID:] == END).all(-1)
        roles = tokens[..., ROLES:CORNERS].sort(-1).values - BLACK
        fits &= (roles == torch.arange(COLOURS, device=tokens.device)).all(-1)
        turns = TURNED_CELLS[:, CORNERS:NUMBER].to(tokens.device) - CORNERS + MARKS
        fits &= (tokens[..., None, CORNERS:NUMBER] == turns).all(-1).any(-1)
        number = tokens[..., NUMBER]
        return fits & (number >= FIRST_TASK) & (number < TOKENS)

    def tidy_answers(self, answers: Tensor) -> Tensor:
        """Answers (..., cell) with the header that all answers have."""
        header = torch.full_like(answers[..., GRID:], END)
        return torch.cat((answers[..., :GRID], header), -1)

    def violations(self, puzzle: Tensor, answer: Tensor) -> Tensor:
        """The cells that cannot be those of an answer: no colour in the grid, no END behind it."""
        _, answer = torch.broadcast_tensors(puzzle, answer)
        broken: Tensor = (~is_colour(answer[..., :GRID])).sum(-1)
        return broken + (answer[..., GRID:] != END).sum(-1)

    def symmetry(self, puzzles: int, generator: torch.Generator) -> Symmetry:
        """A turn and a permutation of the colours for each puzzle."""
        device = generator.device
        which = torch.randint(TURNS, (puzzles,), generator=generator, device=device)
        names = torch.arange(TOKENS, device=device).repeat(puzzles, 1)
        first = BLACK + self.keep_black
        names[:, first:VOCABULARY] = first + permutations(puzzles, VOCABULARY - first, generator)
        return Symmetry(_turned_cells_on(device)[which], names)

    def _symmetry_of(self, own: Augmentation) -> Symmetry:
        names = torch.arange(TOKENS)
        names[BLACK:VOCABULARY] = BLACK + torch.tensor(own.colours)
        return Symmetry(TURNED_CELLS[own.turn][None], names[None])

    def symmetries(
        self, tokens: Tensor, answers: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Puzzles and answers moved by one random symmetry for each puzzle."""
        drawn = self.symmetry(len(tokens), generator)
        return drawn.apply(tokens), drawn.apply(answers)

    def _shown(
        self, puzzle: Tensor, answer: Tensor | None, confidence: Tensor | None,
        wrong: Tensor | None = None,
    ) -> draw.Shown:  # fmt: skip
        return draw.show(self.question_grid(puzzle), draw.Area(0, 0, SIDE, SIDE, SIDE),
                         answer, confidence, wrong)  # fmt: skip


def _grid_tokens(grid: ColourGrid) -> Tensor:
    if (len(grid), len(grid[0])) != (SIDE, SIDE):
        raise SizeError(
            f"expected a grid of {SIDE} x {SIDE} cells for mini-arc, got {len(grid)} rows of "
            f"{len(grid[0])}; larger grids are puzzles of the task arc"
        )
    return BLACK + torch.tensor(grid).flatten()


MINI_ARC = MiniArc()
