"""What a task is: text <-> tokens, rules that need no solution, pictures, symmetries.

Tokens are small integers, 0 is the pad. A tensor of tokens ends in the dimension `cell`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from tiltrm.errors import SettingsError

PAD = 0
TOKENS = 256  # ids that can be told apart, since answers are kept as bytes
DRAWS = 512  # symmetries drawn at least, so that a task with few shows all of them


class Clues(Protocol):
    """What an answer says that could stand in its puzzle as a clue (`TaskDefaults.guesses`)."""

    def in_answers(self, puzzles: Tensor, answers: Tensor) -> Tensor:
        """The clue that each answer would give to each cell, PAD where it cannot give one.

        (puzzle, cell) and (puzzle, particle, cell) ids -> (puzzle, particle, cell) ids.
        """

    def add(self, puzzles: Tensor, cells: Tensor, clues: Tensor) -> Tensor:
        """The puzzles (..., cell), each with one more of these clues: (...) both."""


@dataclass(frozen=True)
class TaskDefaults:
    """Defaults that depend on the task. Those here suit a task that nothing was tuned for."""

    stages: str = "1x20 2x16*4 4x16*4 8x24@0.6*4 16x24@0.6*4"  # of adaptive solving (docs/LOG.md)
    noise: float = 0.3  # of these stages
    beta: float = 0.25
    symmetric_views: bool = True  # False where labels do not move along with the puzzle
    guesses: Clues | None = None  # clues that stages may guess; None: its plans cannot guess
    stopping: Mapping[str, Any] = field(default_factory=dict)  # settings of its stopping rules
    settings: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # by other method
    model: str = ""  # bundled weights
    training_data: str = ""  # public training set
    part_of: str = ""  # a task whose models and tuned plans serve this one too
    frontier_steps: tuple[int, ...] = (12, 20, 36, 52, 84, 148)  # budgets of adaptive solving
    frontier_stages: str = ""  # of the plan that exact match is compared by, if it is another


class Task(Protocol):
    """A grid task. Objects are frozen: `tiltrm.tasks.sudoku.SUDOKU`, `tiltrm.tasks.maze.MAZE`."""

    def __hash__(self) -> int:
        """Tasks are keys of what is derived from them once."""

    @property
    def name(self) -> str:
        """The name that `tiltrm.tasks.by_name` knows."""

    @property
    def side(self) -> int:
        """Cells in a row."""

    @property
    def cells(self) -> int:
        """Cells in a puzzle: side x side."""

    @property
    def vocabulary(self) -> int:
        """Token ids, the pad id 0 among them."""

    @property
    def defaults(self) -> TaskDefaults:
        """Its defaults; a task without this attribute has those of `TaskDefaults`."""

    def encode(self, text: str, *, answer: bool = False) -> Tensor:
        """Text -> (cell,) uint8; raises PuzzleError. `answer` reads a solution, not a question."""

    def encode_all(self, texts: Sequence[str], *, answer: bool = False) -> Tensor:
        """Texts -> (puzzle, cell) uint8; raises the PuzzleError of the first bad one."""

    def decode(self, tokens: Tensor) -> str:
        """(cell,) -> one line of text; '?' for an id outside the vocabulary."""

    def clean(self, line: str) -> str:
        """A line of a file without its end and without a comment, where the task has these."""

    def width(self, line: str) -> int:
        """Cells that a clean line seems to hold; 0 where it is empty or a ruling."""

    def well_formed(self, tokens: Tensor, *, answer: bool = False) -> Tensor:
        """(..., cell) -> (...) bool: whether `encode` would give these tokens."""

    def given(self, puzzle: Tensor) -> Tensor:
        """(..., cell) -> (..., cell) bool: the cells that an answer must not change."""

    def violations(self, puzzle: Tensor, answer: Tensor) -> Tensor:
        """Two (..., cell) that broadcast -> (...) int64: broken rules; 0 where none is."""

    def is_solved(self, puzzle: Tensor, answer: Tensor) -> Tensor:
        """Two (..., cell) that broadcast -> (...) bool: right by the rules, no label needed."""

    def symmetry(self, puzzles: int, generator: torch.Generator) -> "Symmetry":
        """One random symmetry for each puzzle, drawn on the generator's device."""

    def symmetries(
        self, tokens: Tensor, answers: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Both (puzzle, cell), moved by one random symmetry for each puzzle."""

    def generate(self, seed: int) -> tuple[Tensor, Tensor]:
        """A puzzle of one's own and its answer, both (cell,) uint8; the same for the same seed."""

    def render(
        self,
        puzzle: Tensor,
        answer: Tensor | None = None,
        confidence: Tensor | None = None,
        *,
        colour: bool = True,
        width: int | None = None,
    ) -> str:
        """The grid for a terminal; confidence (cell,) in [0, 1] gives the colour.

        With `width`, a narrower form where the grid has more columns than that.
        """

    def picture(
        self,
        puzzle: Tensor,
        answer: Tensor | None = None,
        confidence: Tensor | None = None,
        *,
        wrong: Tensor | None = None,
    ) -> str:
        """The grid as SVG text; wrong (cell,) bool marks cells."""


@dataclass(frozen=True)
class Symmetry:
    """One symmetry for each puzzle: cells move, then ids are renamed.

    new[i] = names[old[source[i]]]. Undone exactly by `undo`, so that answers to different views
    of a puzzle can be compared. Proved by tests/tasks/test_symmetry.py.
    """

    source: Tensor  # (puzzle, cell): where each cell comes from
    names: Tensor  # (puzzle, vocabulary): the new id of each id

    @property
    def is_identity(self) -> Tensor:
        """Which of them change nothing: (puzzle,) bool."""
        same = (x == torch.arange(x.shape[1], device=x.device) for x in (self.source, self.names))
        cells, ids = (column.all(-1) for column in same)
        return cells & ids

    def apply(self, tokens: Tensor) -> Tensor:
        """(puzzle, ..., cell) -> the same shape and dtype, moved."""
        return _rename(_move(tokens, self.source), self.names)

    def undo(self, tokens: Tensor) -> Tensor:
        """The inverse of `apply`."""
        return _move(_rename(tokens, self.names.argsort(-1)), self.source.argsort(-1))

    def undo_shares(self, shares: Tensor) -> Tensor:
        """The inverse for a number to every cell and id: (puzzle, cell, vocabulary)."""
        cells = self.source.argsort(-1)[..., None].expand_as(shares)
        return shares.gather(1, cells).gather(2, self.names[:, None].expand_as(shares))

    def part(self, rows: slice | Tensor) -> "Symmetry":
        """Some of them."""
        return Symmetry(self.source[rows], self.names[rows])

    def on(self, device: torch.device, vocabulary: int) -> "Symmetry":
        """The same on another device; ids that the task does not have keep their names."""
        rows, known = self.names.shape
        others = torch.arange(known, max(known, vocabulary), device=self.names.device)
        names = torch.cat((self.names, others.expand(rows, -1)), 1)
        return Symmetry(self.source.to(device), names.to(device))


def exactly_right(answers: Tensor, labels: Tensor) -> Tensor:
    """Whether every labelled cell is right: two (..., cell) -> (...) bool."""
    return ((answers == labels) | (labels == PAD)).all(-1)


@lru_cache(maxsize=64)  # a plan wants seventeen at every call of `solve`, always the same
def views(task: Task, count: int, seed: int, *, again: bool = False) -> Symmetry:
    """So many different symmetries of a task, the first of them the identity.

    Where it has fewer, SettingsError, or the same ones `again`.
    """
    drawn = task.symmetry(max(DRAWS, 2 * count), torch.Generator().manual_seed(seed))
    source = torch.cat((torch.arange(task.cells)[None], drawn.source))
    names = torch.cat((torch.arange(task.vocabulary)[None], drawn.names))
    different, which = torch.cat((source, names), dim=1).unique(dim=0, return_inverse=True)
    first = torch.full((len(different),), len(source))
    first = first.scatter_reduce(0, which, torch.arange(len(source)), "amin")
    places = first.sort().values[:count]
    if again:
        places = places[torch.arange(count) % len(places)]
    if len(places) < count:
        raise SettingsError(
            f"expected at most {len(places)} views, the symmetries of {task.name}, got {count}"
        )
    return Symmetry(source[places], names[places])


def _along(table: Tensor, tokens: Tensor) -> Tensor:
    """(puzzle, n) stretched over the middle dimensions of (puzzle, ..., cell)."""
    middle = tokens.shape[1:-1]
    shape = (table.shape[0], *(1 for _ in middle), table.shape[1])
    return table.view(shape).expand(-1, *middle, -1)


def _move(tokens: Tensor, source: Tensor) -> Tensor:
    return tokens.gather(-1, _along(source, tokens))


def _rename(tokens: Tensor, names: Tensor) -> Tensor:
    return _along(names, tokens).gather(-1, tokens.long()).to(tokens.dtype)


def permutations(rows: int, size: int, generator: torch.Generator) -> Tensor:
    """Independent uniform permutations of range(size): (rows, size) int64."""
    return torch.rand(rows, size, generator=generator, device=generator.device).argsort(-1)


def place(cell: int, side: int) -> str:
    """A cell in words, counted from 1: 'row 3, column 7'."""
    return f"row {cell // side + 1}, column {cell % side + 1}"


def encode_all(
    task: Task, alphabet: dict[str, int], texts: Sequence[str], *, answer: bool
) -> Tensor:
    """`Task.encode_all`: all texts at once where each is a line and right, else one by one."""
    tokens = _table_lookup(texts, alphabet, task.cells)
    if tokens is not None and bool(task.well_formed(tokens, answer=answer).all()):
        return tokens
    rows = [task.encode(text, answer=answer) for text in texts]
    return torch.stack(rows) if rows else torch.empty(0, task.cells, dtype=torch.uint8)


def _table_lookup(texts: Sequence[str], alphabet: dict[str, int], cells: int) -> Tensor | None:
    """One-line texts -> (puzzle, cell) uint8, or None where one of them is not plain."""
    joined = "".join(texts)
    if not joined.isascii() or any(len(text) != cells for text in texts):
        return None
    table = np.full(128, PAD, dtype=np.uint8)  # a character outside the alphabet is a pad
    for character, token in alphabet.items():
        table[ord(character)] = token
    codes = np.frombuffer(joined.encode("ascii"), dtype=np.uint8)
    return torch.from_numpy(table[codes].reshape(len(texts), cells))


def decode(characters: str, tokens: Tensor) -> str:
    """`Task.decode`: the characters of the ids 1, 2, ...; '?' for any other id."""
    known = range(1, len(characters) + 1)
    return "".join(characters[token - 1] if token in known else "?" for token in tokens.tolist())
