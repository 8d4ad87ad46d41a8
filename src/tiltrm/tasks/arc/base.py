"""The methods that both ARC tasks share: those that do not depend on how a question is encoded."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.tasks.arc import draw
from tiltrm.tasks.arc.text import text_width


class ColourTask(ABC):
    """A task whose cells are colours, with a header or id cells behind them and without rules."""

    name: str
    cells: int
    grid_cells: int  # the cells of the board; the others say which puzzle it is
    has_rules = False
    token_colours = draw.TOKEN_COLOURS

    @abstractmethod
    def encode(self, text: str, *, answer: bool = False) -> Tensor:
        """Text -> (cell,) uint8."""

    @abstractmethod
    def _shown(
        self, puzzle: Tensor, answer: Tensor | None, confidence: Tensor | None,
        wrong: Tensor | None = None,
    ) -> draw.Shown:  # fmt: skip
        """What a drawing needs."""

    def encode_all(self, texts: Sequence[str], *, answer: bool = False) -> Tensor:
        """Texts -> (puzzle, cell) uint8."""
        rows = [self.encode(text, answer=answer) for text in texts]
        return torch.stack(rows) if rows else torch.empty(0, self.cells, dtype=torch.uint8)

    def on_board(self, puzzle: Tensor) -> Tensor:
        """(..., cell) -> (..., cell) bool: the cells of the board."""
        return (torch.arange(self.cells, device=puzzle.device) < self.grid_cells).expand_as(puzzle)

    def given(self, puzzle: Tensor) -> Tensor:
        """The cells behind the board, which no answer fills."""
        return ~self.on_board(puzzle)

    def is_solved(self, puzzle: Tensor, answer: Tensor) -> Tensor:
        """False: there are no rules by which an answer could be known to be right."""
        shape = torch.broadcast_shapes(puzzle.shape, answer.shape)
        return torch.zeros(shape[:-1], dtype=torch.bool, device=answer.device)

    def clean(self, line: str) -> str:
        """The line without a comment, which starts with '#', and without outer spaces."""
        return line.partition("#")[0].strip()

    def width(self, line: str) -> int:
        """Cells that a line seems to hold; a line with ':' or '/' is a whole puzzle."""
        return text_width(line, self.cells)

    def generate(self, seed: int) -> tuple[Tensor, Tensor]:
        """ARC tasks are not generated."""
        raise SettingsError(f"{self.name} cannot generate puzzles; give a file of tasks")

    def render(
        self, puzzle: Tensor, answer: Tensor | None = None, confidence: Tensor | None = None, *,
        colour: bool = True, width: int | None = None,
    ) -> str:  # fmt: skip
        """Input and answer side by side, in ARC's colours."""
        return draw.terminal(self._shown(puzzle, answer, confidence), colour=colour, width=width)

    def picture(
        self, puzzle: Tensor, answer: Tensor | None = None, confidence: Tensor | None = None, *,
        wrong: Tensor | None = None,
    ) -> str:  # fmt: skip
        """SVG text: input and answer side by side, unsure cells marked, wrong cells crossed."""
        return draw.svg(self._shown(puzzle, answer, confidence, wrong), self.name)
