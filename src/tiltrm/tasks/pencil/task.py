"""The tasks lightup, nurikabe, heyawake and tapa: what `tiltrm.tasks.base.Task` asks for."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from tiltrm.tasks.base import PAD, Symmetry, TaskDefaults
from tiltrm.tasks.pencil import (
    address,
    draw,
    generate,
    rules,
    search,
    symmetry,
)
from tiltrm.tasks.pencil import (
    puzzle as kinds,
)
from tiltrm.tasks.pencil import (
    text as texts_of,
)
from tiltrm.tasks.pencil import (
    tokens as ids,
)
from tiltrm.tasks.pencil.clues import PencilClues
from tiltrm.tasks.pencil.puzzle import Kind, PencilPuzzle

DEFAULTS = TaskDefaults(  # the plan: a point of tune's frontier, with guesses (docs/LOG.md)
    model="pencil", stopping={"rules": True}, noise=0.05, guesses=PencilClues(),
    stages="1x32 2x16 2x16?1*7 4x24?1*16 1x32@0.2*8",
)  # fmt: skip


@dataclass(frozen=True)
class PencilTask:
    """One type of pencil puzzle on a board of 10 x 10, smaller ones in a corner of it."""

    kind: Kind

    @property
    def name(self) -> str:
        return self.kind.name

    @property
    def number(self) -> int:
        """The number of the type, where one model serves several."""
        return self.kind.number

    @property
    def side(self) -> int:
        return ids.SIDE

    @property
    def cells(self) -> int:
        return ids.CELLS

    @property
    def vocabulary(self) -> int:
        return ids.VOCABULARY

    @property
    def defaults(self) -> TaskDefaults:
        return replace(DEFAULTS, part_of="pencil")

    def encode(self, text: str, *, answer: bool = False) -> Tensor:
        """An address or the plain form -> (cell,) uint8, in the upper left corner."""
        if answer:
            return ids.encode_answer(self.kind, *texts_of.read_answer(self.kind, text))
        return ids.encode(texts_of.read(self.kind, text))

    def encode_all(self, texts: Sequence[str], *, answer: bool = False) -> Tensor:
        """Texts -> (puzzle, cell) uint8."""
        rows = [self.encode(text, answer=answer) for text in texts]
        return torch.stack(rows) if rows else torch.empty(0, self.cells, dtype=torch.uint8)

    def decode(self, tokens: Tensor) -> str:
        """A question -> its address; an answer -> a character for each cell of its board.

        '/' parts the rows of an answer that is not square, so that `encode` can read it. Tokens
        that are no answer are '?'.
        """
        if len(tokens) != self.cells:
            return "".join(map(self._symbol, tokens.tolist()))
        if not torch.isin(tokens, tokens.new_tensor([ids.UNSHADED, ids.SHADED, ids.LIGHT])).any():
            return address.write(self.puzzle(tokens))
        place = ids.box(tokens > ids.BLANK)
        cells = "".join(map(self._symbol, tokens[tokens > ids.BLANK].tolist()))
        if place is None or place.height == place.width:
            return cells
        return "/".join(cells[at : at + place.width] for at in range(0, len(cells), place.width))

    def puzzle(self, tokens: Tensor) -> PencilPuzzle:
        """(cell,) tokens of a question -> the puzzle; raises PuzzleError."""
        return ids.decode(self.kind, tokens)

    def answer_text(self, puzzle: Tensor, answer: Tensor) -> str:
        """A character for each cell of the puzzle's board: '#' or 'o', '.', '?' for neither."""
        return "".join(map(self._symbol, answer[self.on_board(puzzle)].tolist()))

    def on_board(self, puzzle: Tensor) -> Tensor:
        """(..., cell) -> (..., cell) bool: the cells of the puzzle's board."""
        return puzzle != PAD

    def address(self, puzzle: Tensor) -> str:
        """The puzz.link address of a question."""
        return address.write(self.puzzle(puzzle))

    def count_solutions(self, puzzle: Tensor) -> int | None:
        """0, 1, or 2 for several; None without OR-Tools, or where it takes too long."""
        return search.count_cheaply(self.puzzle(puzzle))

    def clean(self, line: str) -> str:
        """The line without spaces at its ends. '#' is a cell."""
        return line.strip()

    def width(self, line: str) -> int:
        """Cells that a line seems to hold; an address and rows with '/' are whole puzzles."""
        if "/" in line:
            return self.cells
        return len(line.split()) if " " in line else len(line)

    def well_formed(self, tokens: Tensor, *, answer: bool = False) -> Tensor:
        """Whether the ids belong to this type and fill a rectangle, anywhere on the board."""
        tokens = tokens.to(torch.int16)  # 256 is no uint8
        if answer:
            inside = (tokens == ids.UNSHADED) | (tokens == ids.mark(self.kind))
            allowed = inside | (tokens == ids.BLANK)
        else:
            own = ids.QUESTION_IDS[self.kind]
            inside = tokens != PAD
            blank = (tokens == ids.BLANK) & (self.kind != kinds.HEYAWAKE)
            allowed = ~inside | blank | ((tokens >= own.start) & (tokens < own.stop))
        grid = inside.reshape(*inside.shape[:-1], self.side, self.side)
        rows, columns = grid.any(-1), grid.any(-2)
        fits = (rows.unsqueeze(-1) & columns.unsqueeze(-2) == grid).flatten(-2).all(-1)
        for line in (rows, columns):
            gaps = (line[..., 1:] != line[..., :-1]).sum(-1) + line[..., 0] + line[..., -1]
            fits &= (line.sum(-1) >= kinds.SMALLEST) & (gaps <= 2)
        return fits & allowed.all(-1)

    def given(self, puzzle: Tensor) -> Tensor:
        """Clues that stand in the way of an answer, and all cells outside the board."""
        return rules.given(puzzle)

    def broken(self, puzzle: Tensor, answer: Tensor) -> dict[str, Tensor]:
        """How often each rule is broken, by its name: (...) int64 each."""
        return rules.broken(self.kind, puzzle, answer)

    def violations(self, puzzle: Tensor, answer: Tensor) -> Tensor:
        """The sum of all that `broken` counts; 0 exactly for a solution."""
        return torch.stack(list(self.broken(puzzle, answer).values())).sum(0)

    def is_solved(self, puzzle: Tensor, answer: Tensor) -> Tensor:
        """Whether the answer is a solution; what it holds outside the board does not count."""
        return self.violations(puzzle, answer) == 0

    def symmetry(self, puzzles: int, generator: torch.Generator) -> Symmetry:
        """One of the eight symmetries of the square for each puzzle."""
        return symmetry.draw(puzzles, generator)

    def symmetries(
        self, tokens: Tensor, answers: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Puzzles and answers moved by one random symmetry for each puzzle."""
        drawn = self.symmetry(len(tokens), generator)
        return drawn.apply(tokens), drawn.apply(answers)

    def generate(self, seed: int) -> tuple[Tensor, Tensor]:
        """A puzzle with one solution, and this solution; needs OR-Tools."""
        puzzle, marks = generate.generate(self.kind, seed)
        answer = ids.encode_answer(self.kind, marks, puzzle.width, puzzle.height)
        return ids.encode(puzzle), answer

    @property
    def generated_kinds(self) -> tuple[Kind, ...]:
        """The types that `tiltrm.tasks.pencil.dataset` generates for this task."""
        return (self.kind,)

    def render(
        self, puzzle: Tensor, answer: Tensor | None = None, confidence: Tensor | None = None, *,
        colour: bool = True, width: int | None = None,
    ) -> str:  # fmt: skip
        """A framed grid; marks from red (unsure) to green (sure). It has one form for any width."""
        shown = draw.show(self.puzzle(puzzle), puzzle, answer, confidence, None)
        return draw.terminal(shown, colour=colour)

    def picture(
        self, puzzle: Tensor, answer: Tensor | None = None, confidence: Tensor | None = None, *,
        wrong: Tensor | None = None,
    ) -> str:  # fmt: skip
        """SVG text; shaded cells blue, lights yellow, unsure cells tinted, wrong cells crossed."""
        return draw.svg(draw.show(self.puzzle(puzzle), puzzle, answer, confidence, wrong))

    def _symbol(self, token: int) -> str:
        return {ids.UNSHADED: ".", ids.SHADED: "#", ids.LIGHT: "o"}.get(token, "?")


LIGHTUP = PencilTask(kinds.LIGHTUP)
NURIKABE = PencilTask(kinds.NURIKABE)
HEYAWAKE = PencilTask(kinds.HEYAWAKE)
TAPA = PencilTask(kinds.TAPA)
TASKS = (LIGHTUP, NURIKABE, HEYAWAKE, TAPA)
