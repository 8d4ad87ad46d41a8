"""Sudoku: 9x9 with boxes of 3x3, and a 4x4 toy. Ids: 0 pad, 1 blank, 2.. the digits 1.. ."""

from dataclasses import dataclass
from itertools import combinations

import torch
from torch import Tensor

from tiltrm.errors import PuzzleError, SettingsError
from tiltrm.tasks import sudoku_generate
from tiltrm.tasks.base import Symmetry, TaskDefaults, permutations, place
from tiltrm.tasks.grid import BLANK, CellClues, FillBlanks, require_filled

BLANKS = ".0_*"
NODES = 1000  # of a search for a second solution; 397 of 400 extreme puzzles need fewer
STAGES = "1x20 2x16 2x16?1*3 4x16?1*4 8x24?1*4 16x24?1*4"  # of adaptive solving (docs/LOG.md)
SEPARATORS = frozenset("|-+")
BOX_DRAWING = range(0x2500, 0x2580)  # so that a grid printed by `render` reads back


@dataclass(frozen=True)
class Sudoku(FillBlanks):
    """Sudoku with square boxes of side `box`: every row, column and box holds every digit once."""

    box: int = 3

    def __post_init__(self) -> None:
        if self.box not in (2, 3):
            raise SettingsError(f"the box of a Sudoku must be 2 or 3 cells wide, got {self.box}")

    @property
    def name(self) -> str:
        return "sudoku" if self.box == 3 else f"sudoku{self.side}"

    @property
    def title(self) -> str:
        return "Sudoku"

    @property
    def side(self) -> int:
        return self.box**2

    @property
    def characters(self) -> str:
        return "." + "123456789"[: self.side]

    @property
    def ruled_every(self) -> int:
        return self.box

    def alphabet(self) -> dict[str, int]:
        """Every character that `encode` reads, with its id; four characters are a blank."""
        return super().alphabet() | dict.fromkeys(BLANKS, BLANK)

    @property
    def defaults(self) -> TaskDefaults:
        if self.box != 3:
            return TaskDefaults(guesses=CellClues())
        return TaskDefaults(
            model="sudoku-extreme", training_data="sudoku-extreme/train", stages=STAGES,
            frontier_stages=TaskDefaults().stages, guesses=CellClues(),
        )  # fmt: skip

    def encode(self, text: str, *, answer: bool = False) -> Tensor:
        """Text -> (cell,) uint8. Blanks are . 0 _ or *; spaces, lines and rulings are skipped.

        A question may also be a puzz.link address of a 9x9 Sudoku.
        """
        if "?" in text and not answer:
            text = _plain_text(text)
        ids = self._read(text)
        if answer:
            require_filled(ids, self.side)
        self._require_consistent(ids, "digits" if answer else "clues")
        return torch.tensor(ids, dtype=torch.uint8)

    def address(self, puzzle: Tensor) -> str:
        """The puzz.link address of a question; '' for the 4x4 toy."""
        from tiltrm.tasks.pencil.address import write_sudoku  # here: its package imports this one

        return write_sudoku(self.decode(puzzle)) if self.box == 3 else ""

    def _read(self, text: str) -> list[int]:
        """The ids of the cells; raises PuzzleError on an unknown character or a wrong length."""
        known = self.alphabet()
        ids: list[int] = []
        for character in text:
            if character in known:
                ids.append(known[character])
            elif not _is_separator(character):
                inside = len(ids) < self.cells
                where = place(len(ids), self.side) if inside else f"cell {len(ids) + 1}"
                raise PuzzleError(
                    f"expected digits 1 to {self.side} and '.' for a blank, got {character!r} at "
                    f"{where}"
                )
        if len(ids) != self.cells:
            hint = "; write blanks as '.', since '-' is a ruling" if "-" in text else ""
            raise PuzzleError(f"expected {self.cells} cells, got {len(ids)}{hint}")
        return ids

    def _require_consistent(self, ids: list[int], noun: str) -> None:
        """Raise PuzzleError if a digit occurs twice in a row, column or box; it names the cells."""
        clues = [cell for cell in range(self.cells) if ids[cell] > BLANK]
        for first, second in combinations(clues, 2):
            unit = self._shared_unit(first, second) if ids[first] == ids[second] else ""
            if unit:
                digit = ids[first] - BLANK
                raise PuzzleError(f"{noun} conflict: {digit} twice in {unit}; correct one of them")

    def _shared_unit(self, first: int, second: int) -> str:
        """The row, column or box that holds both cells, in words; '' if there is none."""
        (row, column), (other_row, other_column) = (
            divmod(cell, self.side) for cell in (first, second)
        )
        if row == other_row:
            return f"row {row + 1} (columns {column + 1} and {other_column + 1})"
        if column == other_column:
            return f"column {column + 1} (rows {row + 1} and {other_row + 1})"
        box, other_box = (
            r // self.box * self.box + c // self.box
            for r, c in ((row, column), (other_row, other_column))
        )
        if box == other_box:
            return f"box {box + 1} ({place(first, self.side)} and {place(second, self.side)})"
        return ""

    def width(self, line: str) -> int:
        """The number of cells in a line. A '-' counts unless the whole line is a ruling."""
        if all(_is_separator(character) for character in line):
            return 0
        return sum(character == "-" or not _is_separator(character) for character in line)

    def well_formed(self, tokens: Tensor, *, answer: bool = False) -> Tensor:
        """Whether all ids are blanks or digits and no digit occurs twice in a unit."""
        allowed = super().well_formed(tokens, answer=answer)
        twice = [counts >> 1 | counts >> 2 | counts >> 3 for counts in self._counts(tokens)]
        return allowed & ~(torch.cat(twice, dim=-1) & self._ones()).any(-1)

    def violations(self, puzzle: Tensor, answer: Tensor) -> Tensor:
        """Changed clues + cells without a digit + digits missing from a row, column or box.

        Zero exactly for a solution. Proved by tests/tasks/test_sudoku.py::test_violations_*.
        """
        changed = (self.given(puzzle) & (puzzle != answer)).sum(-1)
        empty = (~self.given(answer)).sum(-1)
        found = self._distinct(torch.cat(self._counts(answer), -1)).sum(-1)
        return changed + empty + 3 * self.side * self.side - found

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
        """The number of fields that are not zero: since 16 = 1 modulo 15, n % 15 sums fields."""
        some = counts | counts >> 1 | counts >> 2 | counts >> 3
        return (some & self._ones()) % 15

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

    def _lines(self, puzzles: int, generator: torch.Generator) -> Tensor:
        """Bands shuffled and the lines in each: (puzzle, side)."""
        bands = permutations(puzzles, self.box, generator).unsqueeze(2)
        within = permutations(puzzles * self.box, self.box, generator)
        return (bands * self.box + within.view(puzzles, self.box, self.box)).flatten(1)

    def solutions(self, text: str, limit: int = 2) -> int:
        """The number of solutions of a puzzle, counted up to `limit`."""
        return sudoku_generate.count(self._read(text), self.box, limit)

    def count_solutions(self, puzzle: Tensor) -> int | None:
        """0, 1, or 2 for several; None where that cannot be told in about 0.1 s."""
        return sudoku_generate.count_cheaply(puzzle.tolist(), self.box, 2, NODES)

    def generate(self, seed: int) -> tuple[Tensor, Tensor]:
        """A minimal puzzle with one solution, and this solution."""
        puzzle, answer = sudoku_generate.generate(self.box, seed)
        return torch.tensor(puzzle, dtype=torch.uint8), torch.tensor(answer, dtype=torch.uint8)


def _plain_text(text: str) -> str:
    """The cells of a puzz.link address; any other text as it is."""
    from tiltrm.tasks.pencil import address  # here: its package imports this module

    return address.read_sudoku(text) if address.is_address(text) else text


def _is_separator(character: str) -> bool:
    return character.isspace() or character in SEPARATORS or ord(character) in BOX_DRAWING


SUDOKU = Sudoku(3)
