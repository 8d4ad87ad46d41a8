"""Tasks that fill the blanks of a square grid; `Grid` is the base class for a task of your own.

Id 1 is the blank, and the ids after it are clues.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from tiltrm.errors import PuzzleError, SettingsError
from tiltrm.tasks import base, drawing
from tiltrm.tasks.base import PAD, TOKENS, Symmetry, Task, TaskDefaults, place

BLANK = 1
NAME = re.compile("[a-z][a-z0-9_-]*")


@dataclass(frozen=True)
class CellClues:
    """Clues that are values of blank cells."""

    def in_answers(self, puzzles: Tensor, answers: Tensor) -> Tensor:
        """The values of an answer in the blank cells."""
        return torch.where((puzzles == BLANK)[:, None] & (answers > BLANK), answers, PAD)

    def add(self, puzzles: Tensor, cells: Tensor, clues: Tensor) -> Tensor:
        """The puzzles with one cell each filled in."""
        return puzzles.scatter(-1, cells[..., None], clues[..., None].to(puzzles.dtype))


class CharacterTask(Task, Protocol):
    """A task whose ids 1, 2, ... are characters, of which the first is the blank."""

    @property
    def characters(self) -> str:
        """The characters of the ids 1, 2, ..."""

    @property
    def defaults(self) -> TaskDefaults:
        """The defaults of a task that nothing was tuned for."""
        return TaskDefaults()

    @property
    def ruled_every(self) -> int | None:
        """Cells between two rulings of the grid; None for a grid without rulings."""

    @property
    def title(self) -> str:
        """The title of its pictures."""

    def alphabet(self) -> dict[str, int]:
        """Every character that `encode` reads, with its id."""


class FillBlanks:
    """The methods of a `CharacterTask` that do not depend on its rules."""

    @property
    def cells(self: CharacterTask) -> int:
        """Cells in a puzzle."""
        return self.side**2

    @property
    def vocabulary(self: CharacterTask) -> int:
        """Token ids, including the pad id 0."""
        return len(self.characters) + 1

    @property
    def defaults(self) -> TaskDefaults:
        """The defaults of a task that nothing was tuned for."""
        return TaskDefaults(guesses=CellClues())

    @property
    def ruled_every(self) -> int | None:
        """Cells between two rulings of the grid; None for a grid without rulings."""
        return None

    @property
    def title(self: CharacterTask) -> str:
        """The title of its pictures."""
        return self.name

    def alphabet(self: CharacterTask) -> dict[str, int]:
        """Every character that `encode` reads, with its id."""
        return {each: number for number, each in enumerate(self.characters, BLANK)}

    def encode_all(self: CharacterTask, texts: Sequence[str], *, answer: bool = False) -> Tensor:
        """Texts -> (puzzle, cell) uint8, at once if all are one line and valid."""
        return base.encode_all(self, self.alphabet(), texts, answer=answer)

    def decode(self: CharacterTask, tokens: Tensor) -> str:
        """(cell,) -> one line; '?' for an id without a character."""
        return base.decode(self.characters, tokens)

    def clean(self, line: str) -> str:
        """The line without a comment, which starts with '#', and without outer spaces."""
        return line.partition("#")[0].strip()

    def well_formed(self: CharacterTask, tokens: Tensor, *, answer: bool = False) -> Tensor:
        """(..., cell) -> (...) bool: all ids are clues, or blanks unless it is an answer."""
        given = self.given(tokens)
        return (given if answer else given | (tokens == BLANK)).all(-1)

    def given(self: CharacterTask, puzzle: Tensor) -> Tensor:
        """The cells that are not blank."""
        return (puzzle > BLANK) & (puzzle < self.vocabulary)

    def is_solved(self: CharacterTask, puzzle: Tensor, answer: Tensor) -> Tensor:
        """Whether the answer keeps the clues and breaks no rule."""
        return self.violations(puzzle, answer) == 0

    def symmetries(
        self: CharacterTask, tokens: Tensor, answers: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Puzzles and answers, transformed by one random symmetry for each puzzle."""
        symmetry = self.symmetry(len(tokens), generator)
        return symmetry.apply(tokens), symmetry.apply(answers)

    def render(
        self: CharacterTask, puzzle: Tensor, answer: Tensor | None = None,
        confidence: Tensor | None = None, *, colour: bool = True, width: int | None = None,
    ) -> str:  # fmt: skip
        """A line a row; clues bold, answers from red (unsure) to green (sure).

        If the terminal has fewer than the usual columns (`width`), rulings and then spaces are
        left out.
        """
        return drawing.grid_text(
            self.characters, self.side, puzzle, answer, confidence, colour=colour, width=width,
            box=self.ruled_every,
        )  # fmt: skip

    def picture(
        self: CharacterTask, puzzle: Tensor, answer: Tensor | None = None,
        confidence: Tensor | None = None, *, wrong: Tensor | None = None,
    ) -> str:  # fmt: skip
        """SVG text; clues bold, unsure cells shaded, wrong cells marked."""
        return drawing.grid_svg(
            self.characters, self.side, puzzle, answer, confidence, wrong,
            box=self.ruled_every or self.side, title=self.title,
        )  # fmt: skip


def require_filled(ids: Sequence[int], side: int) -> None:
    """Raise PuzzleError if an answer has a blank."""
    if BLANK in ids:
        where = place(ids.index(BLANK), side)
        raise PuzzleError(f"expected an answer with no blank, got a blank at {where}")


@dataclass(frozen=True)
class Grid(FillBlanks):
    """A task of your own: define `broken`, which counts the broken rules of a filled grid.

    `characters` are those of the ids 1, 2, ...; the first is the blank. `generate` and `symmetry`
    are optional; everything else has a default. See examples/latin.py.
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
                f"the characters of {self.name} must be a blank and at least one other, all "
                f"different and printable ASCII without '#', got {self.characters!r:.60}"
            )

    def broken(self, answer: Tensor) -> Tensor:
        """(..., cell) -> (...) int64: how many rules a grid breaks; 0 for none."""
        raise NotImplementedError(f"{type(self).__name__} must define broken(answer)")

    def violations(self, puzzle: Tensor, answer: Tensor) -> Tensor:
        """Changed clues, cells left blank, and broken rules."""
        changed = (self.given(puzzle) & (puzzle != answer)).sum(-1)
        return changed + (~self.given(answer)).sum(-1) + self.broken(answer)

    def encode(self, text: str, *, answer: bool = False) -> Tensor:
        """Text -> (cell,) uint8; spaces and line ends are skipped."""
        known = self.alphabet()
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

    def width(self, line: str) -> int:
        """The number of cells in a line."""
        return len("".join(line.split()))

    def symmetry(self, puzzles: int, generator: torch.Generator) -> Symmetry:
        """The identity; a task that has symmetries overrides this."""
        places, names = (
            torch.arange(count, device=generator.device).expand(puzzles, -1)
            for count in (self.cells, self.vocabulary)
        )
        return Symmetry(places, names)

    def generate(self, seed: int) -> tuple[Tensor, Tensor]:
        """A puzzle and its answer; a task that can generate puzzles overrides this."""
        raise SettingsError(f"{self.name} cannot generate puzzles; give a file of them")
