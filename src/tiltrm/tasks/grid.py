"""A square grid whose blanks are to be filled: what a task of one's own starts from."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tiltrm.errors import PuzzleError, SettingsError
from tiltrm.tasks import base, drawing, grid_draw
from tiltrm.tasks.base import TOKENS, Symmetry, place
from tiltrm.tasks.blanks import BLANK, Blanks, filled, require_filled

NAME = re.compile("[a-z][a-z0-9_-]*")


@dataclass(frozen=True)
class Grid(Blanks):
    """`characters` are those of the ids 1, 2, ...; the first of them is the blank.

    A task says what `broken` counts, and may give `generate` and `symmetry`. Everything else has a
    plain meaning. See examples/latin.py.
    """

    name: str
    side: int
    characters: str

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise SettingsError(f"the name of a task must be like 'latin5', got {self.name!r}")
        if self.side < 1:
            raise SettingsError(f"the side of {self.name} must be at least 1, got {self.side}")
        plain = all(33 <= ord(each) < 127 and each != "#" for each in self.characters)
        once = len(set(self.characters)) == len(self.characters)
        if not (plain and once and 2 <= len(self.characters) < TOKENS):
            raise SettingsError(
                f"the characters of {self.name} must be a blank and others, each once, of ASCII, "
                f"none of them a space or '#', got {self.characters!r:.60}"
            )

    @property
    def cells(self) -> int:
        """Cells in a puzzle."""
        return self.side**2

    @property
    def vocabulary(self) -> int:
        """Token ids, the pad id 0 among them."""
        return len(self.characters) + 1

    def broken(self, answer: Tensor) -> Tensor:
        """(..., cell) -> (...) int64: how many rules a grid breaks; 0 for none."""
        raise NotImplementedError(f"{type(self).__name__} must say which rules are broken")

    def violations(self, puzzle: Tensor, answer: Tensor) -> Tensor:
        """Changed clues, cells left blank, and broken rules."""
        changed = (self.given(puzzle) & (puzzle != answer)).sum(-1)
        return changed + (~self.given(answer)).sum(-1) + self.broken(answer)

    def encode(self, text: str, *, answer: bool = False) -> Tensor:
        """Text -> (cell,) uint8; spaces and line ends are skipped."""
        known = self._alphabet()
        ids: list[int] = []
        for each in "".join(text.split()):
            if each not in known:
                where = place(len(ids), self.side)
                raise PuzzleError(f"expected {self.characters!r}, got {each!r} at {where}")
            ids.append(known[each])
        if len(ids) != self.cells:
            raise PuzzleError(f"expected {self.cells} cells, got {len(ids)}")
        if answer:
            require_filled(ids, self.side)
        return torch.tensor(ids, dtype=torch.uint8)

    def encode_all(self, texts: Sequence[str], *, answer: bool = False) -> Tensor:
        """Texts -> (puzzle, cell) uint8."""
        return base.encode_all(self, self._alphabet(), texts, answer=answer)

    def decode(self, tokens: Tensor) -> str:
        """(cell,) -> one line; '?' for an id that has no character."""
        return base.decode(self.characters, tokens)

    def width(self, line: str) -> int:
        """Cells that a line seems to hold."""
        return len("".join(line.split()))

    def well_formed(self, tokens: Tensor, *, answer: bool = False) -> Tensor:
        """Whether all ids have a character, and none is blank in an answer."""
        return filled(self, tokens, answer=answer)

    def symmetry(self, puzzles: int, generator: torch.Generator) -> Symmetry:
        """None but the identity, unless a task knows more."""
        places, names = (
            torch.arange(count, device=generator.device).expand(puzzles, -1)
            for count in (self.cells, self.vocabulary)
        )
        return Symmetry(places, names)

    def generate(self, seed: int) -> tuple[Tensor, Tensor]:
        """A puzzle of one's own and its answer, where a task can make them."""
        raise SettingsError(f"{self.name} makes no puzzles of its own; give a file of them")

    def render(
        self, puzzle: Tensor, answer: Tensor | None = None, confidence: Tensor | None = None, *,
        colour: bool = True,
    ) -> str:  # fmt: skip
        """A line a row; clues bold, answers from red (unsure) to green (sure)."""
        clues, shown = grid_draw.shown(self.characters, self.cells, puzzle, answer)
        sure = drawing.shares(confidence, self.cells, 1.0)
        cells = [grid_draw.styled(*each, colour) for each in zip(clues, shown, sure, strict=True)]
        rows = range(0, self.cells, self.side)
        return "\n".join(" ".join(cells[row : row + self.side]) for row in rows)

    def picture(
        self, puzzle: Tensor, answer: Tensor | None = None, confidence: Tensor | None = None, *,
        wrong: Tensor | None = None,
    ) -> str:  # fmt: skip
        """SVG text; clues bold, unsure cells shaded, wrong cells marked."""
        clues, shown = grid_draw.shown(self.characters, self.cells, puzzle, answer)
        return grid_draw.svg(
            self.side, clues, shown, confidence, wrong, box=self.side, title=self.name
        )

    def _alphabet(self) -> dict[str, int]:
        return {each: number for number, each in enumerate(self.characters, BLANK)}
