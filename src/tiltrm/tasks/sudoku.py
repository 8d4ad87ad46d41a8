"""Sudoku: 9x9 with boxes of 3x3, and a 4x4 toy. Ids: 0 pad, 1 blank, 2.. the digits 1.. ."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.tasks import base, sudoku_draw, sudoku_generate, sudoku_text
from tiltrm.tasks.base import Symmetry, TaskDefaults, permutations
from tiltrm.tasks.blanks import BLANK, Blanks, filled, require_filled


@dataclass(frozen=True)
class Sudoku(Blanks):
    """Sudoku with square boxes of side `box`: every row, column and box holds every digit once."""

    box: int = 3

    def __post_init__(self) -> None:
        if self.box not in (2, 3):
            raise SettingsError(f"the box of a Sudoku must be 2 or 3 cells wide, got {self.box}")

    @property
    def name(self) -> str:
        return "sudoku" if self.box == 3 else f"sudoku{self.side}"

    @property
    def side(self) -> int:
        return self.box**2

    @property
    def cells(self) -> int:
        return self.side**2

    @property
    def vocabulary(self) -> int:
        return self.side + 2

    @property
    def defaults(self) -> TaskDefaults:
        if self.box != 3:
            return TaskDefaults()
        return TaskDefaults(model="sudoku-extreme", training_data="sudoku-extreme/train")

    def encode(self, text: str, *, answer: bool = False) -> Tensor:
        """Text -> (cell,) uint8. Blanks are . 0 _ or *; spaces, lines and rulings are skipped."""
        ids = sudoku_text.read(text, self.side)
        if answer:
            require_filled(ids, self.side)
        sudoku_text.check(ids, self.box, "digits" if answer else "clues")
        return torch.tensor(ids, dtype=torch.uint8)

    def encode_all(self, texts: Sequence[str], *, answer: bool = False) -> Tensor:
        """Texts -> (puzzle, cell) uint8, at once where all are one line and right."""
        return base.encode_all(self, sudoku_text.alphabet(self.side), texts, answer=answer)

    def decode(self, tokens: Tensor) -> str:
        """(cell,) -> one line; '.' is a blank, '?' an id that is no Sudoku token."""
        return base.decode(sudoku_text.characters(self.side), tokens)

    def width(self, line: str) -> int:
        """Cells that a line seems to hold; 0 where it is empty or a ruling."""
        return sudoku_text.width(line)

    def well_formed(self, tokens: Tensor, *, answer: bool = False) -> Tensor:
        """Whether all ids are blanks or digits and no digit stands twice in a unit."""
        allowed = filled(self, tokens, answer=answer)
        twice = [counts >> 1 | counts >> 2 | counts >> 3 for counts in self._counts(tokens)]
        return allowed & ~(torch.cat(twice, dim=-1) & self._ones()).any(-1)

    def violations(self, puzzle: Tensor, answer: Tensor) -> Tensor:
        """Changed clues + cells that are no digit + digits missing from a row, column or box.

        Zero exactly for a solution. Proved by tests/tasks/test_sudoku.py::test_violations_*.
        """
        changed = (self.given(puzzle) & (puzzle != answer)).sum(-1)
        empty = (~self.given(answer)).sum(-1)
        missing = torch.zeros_like(empty)
        for counts in self._counts(answer):
            missing += self.side * self.side - self._distinct(counts).sum(-1)
        return changed + empty + missing

    def symmetry(self, puzzles: int, generator: torch.Generator) -> Symmetry:
        """Digits, bands, rows in a band, stacks, columns in a stack, and transposition."""
        rows, columns = self._lines(puzzles, generator), self._lines(puzzles, generator)
        coin = torch.rand(puzzles, 1, 1, generator=generator, device=generator.device) < 0.5
        upright = rows.unsqueeze(2) * self.side + columns.unsqueeze(1)
        flipped = columns.unsqueeze(1) * self.side + rows.unsqueeze(2)
        source = torch.where(coin, flipped, upright)
        digits = permutations(puzzles, self.side, generator) + BLANK + 1
        fixed = torch.arange(BLANK + 1, device=generator.device).expand(puzzles, -1)
        return Symmetry(source.flatten(1), torch.cat((fixed, digits), dim=-1))

    def solutions(self, text: str, limit: int = 2) -> int:
        """How many solutions a puzzle has, counted no further than `limit`."""
        return sudoku_generate.count(sudoku_text.read(text, self.side), self.box, limit)

    def generate(self, seed: int) -> tuple[Tensor, Tensor]:
        """A minimal puzzle with one solution, and this solution."""
        puzzle, answer = sudoku_generate.generate(self.box, seed)
        return torch.tensor(puzzle, dtype=torch.uint8), torch.tensor(answer, dtype=torch.uint8)

    def render(
        self,
        puzzle: Tensor,
        answer: Tensor | None = None,
        confidence: Tensor | None = None,
        *,
        colour: bool = True,
    ) -> str:
        """A ruled grid; clues bold, answers from red (unsure) to green (sure)."""
        return sudoku_draw.terminal(self.box, puzzle, answer, confidence, colour=colour)

    def picture(
        self,
        puzzle: Tensor,
        answer: Tensor | None = None,
        confidence: Tensor | None = None,
        *,
        wrong: Tensor | None = None,
    ) -> str:
        """SVG text; clues bold, unsure cells shaded, wrong cells marked."""
        return sudoku_draw.svg_text(self.box, puzzle, answer, confidence, wrong)

    def _lines(self, puzzles: int, generator: torch.Generator) -> Tensor:
        """Bands shuffled and the lines in each: (puzzle, side)."""
        bands = permutations(puzzles, self.box, generator).unsqueeze(2)
        within = permutations(puzzles * self.box, self.box, generator)
        return (bands * self.box + within.view(puzzles, self.box, self.box)).flatten(1)

    def _counts(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Digits counted in rows, columns, boxes, 4 bits a digit in one int64: (..., side) each.

        Nine digits of four bits fit an int64, so a unit costs one number and not a one-hot row.
        """
        shift = (tokens.long() - (BLANK + 1)).clamp(0, self.side - 1) * 4
        bits = torch.where(self.given(tokens), torch.ones_like(shift) << shift, 0)
        lead, box, side = bits.shape[:-1], self.box, self.side
        grid = bits.reshape(*lead, side, side)
        boxes = bits.reshape(*lead, box, box, box, box).sum((-3, -1)).flatten(-2)
        return grid.sum(-1), grid.sum(-2), boxes

    def _ones(self) -> int:
        """A one in each of the `side` fields of 4 bits."""
        return sum(1 << 4 * digit for digit in range(self.side))

    def _distinct(self, counts: Tensor) -> Tensor:
        """Fields that are not zero. As 16 = 1 modulo 15, the fields of n add up to n % 15."""
        some = counts | counts >> 1 | counts >> 2 | counts >> 3
        return (some & self._ones()) % 15


SUDOKU = Sudoku(3)
