"""The maze: draw a shortest path from S to G. Ids: 0 pad, 1 '#', 2 ' ', 3 'S', 4 'G', 5 'o'."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.tasks import base, maze_format, maze_generate, maze_search
from tiltrm.tasks.base import Symmetry, TaskDefaults
from tiltrm.tasks.maze_format import ALPHABET, CHARACTERS, FREE, GOAL, PATH, START, WALL


class Judgement(NamedTuple):
    """Three criteria for an answer, each (...) bool."""

    exact: Tensor  # equals the label, which is one of several shortest paths
    shortest_valid: Tensor  # a valid path, and none is shorter
    valid: Tensor  # a path from S to G, and no other cell changed


@dataclass(frozen=True)
class Maze:
    """A square maze of `side` x `side` cells; `unique` ones have exactly one shortest path."""

    side: int = 30
    unique: bool = False

    def __post_init__(self) -> None:
        if self.side < 2:
            raise SettingsError(f"the side of a maze must be at least 2 cells, got {self.side}")

    @property
    def name(self) -> str:
        own = "maze" if self.side == 30 else f"maze{self.side}"
        return f"{own}-unique" if self.unique else own

    @property
    def cells(self) -> int:
        return self.side**2

    @property
    def vocabulary(self) -> int:
        return len(CHARACTERS) + 1

    @property
    def defaults(self) -> TaskDefaults:
        """Noise and beta of the paper's Table 2; PTRM's noise; a plan chosen on held-out mazes.

        The labels of mazes do not move along with a symmetry, so there are no symmetric views. The
        only shortest path of a unique maze does.
        """
        whole = self.side == 30
        return TaskDefaults(
            stages="3x12@0 8x24", noise=0.5, beta=1.0, symmetric_views=self.unique,
            stopping={"shortest_visited": True, "agree_share": 0.75, "agree_among": 3},
            settings={
                "guided": {"noise": 0.5, "beta": 1.0}, "unguided": {"noise": 0.5},
                "ptrm": {"noise": 1.0},
            },
            model="maze-hard" if whole else "",
            training_data="maze-hard/train" if whole and not self.unique else "",
            frontier_steps=(8, 12, 24), frontier_stages="1x24 16x24",
        )  # fmt: skip

    def encode(self, text: str, *, answer: bool = False) -> Tensor:
        """One line of all cells, or a line for each row -> (cell,) uint8."""
        return torch.tensor(maze_format.read(text, self.side, answer=answer), dtype=torch.uint8)

    def encode_all(self, texts: Sequence[str], *, answer: bool = False) -> Tensor:
        """Texts -> (puzzle, cell) uint8, at once if all are one line and valid."""
        return base.encode_all(self, ALPHABET, texts, answer=answer)

    def decode(self, tokens: Tensor) -> str:
        """(cell,) -> one line; '?' for an id that is no maze token."""
        return base.decode(CHARACTERS, tokens)

    def clean(self, line: str) -> str:
        """The line without its line end; spaces and '#' are cells."""
        return line.rstrip("\r\n")

    def width(self, line: str) -> int:
        """Every character is a cell."""
        return len(line)

    def well_formed(self, tokens: Tensor, *, answer: bool = False) -> Tensor:
        """Whether all ids are known, S and G occur once, and a question has no path."""
        allowed = (tokens >= WALL) & (tokens <= (PATH if answer else GOAL))
        return allowed.all(-1) & (self._missing_ends(tokens) == 0)

    def given(self, puzzle: Tensor) -> Tensor:
        """Walls, S and G."""
        return (puzzle == WALL) | (puzzle == START) | (puzzle == GOAL)

    def violations(self, puzzle: Tensor, answer: Tensor) -> Tensor:
        """Changed cells + path cells with a wrong number of path neighbours + cut-off path cells.

        S and G must have one path neighbour and every 'o' two, so a path that touches itself is
        not valid: its cells do not tell its order, and it is never shortest. Zero exactly for a
        valid path. Proved by tests/tasks/test_maze.py::test_violations_are_zero_iff_valid.
        """
        changed = ((answer != puzzle) & ~self._drawn(puzzle, answer)).sum(-1)
        start, goal = self._grid(puzzle == START), self._grid(puzzle == GOAL)
        path = self._grid(self._drawn(puzzle, answer)) | start | goal
        wanted = 2 - (start | goal).to(torch.int8)
        bent = path & (maze_search.neighbours(path) != wanted)
        lost = path & ~maze_search.reachable(start.expand_as(path), path)
        broken = (bent.to(torch.int8) + lost.to(torch.int8)).flatten(-2).sum(-1)
        return changed + broken + self._missing_ends(puzzle)

    def is_solved(self, puzzle: Tensor, answer: Tensor) -> Tensor:
        """Whether the answer is a valid path and no path is shorter; needs no label."""
        return self._judge(puzzle, answer)[0]

    def judge(self, puzzle: Tensor, answer: Tensor, label: Tensor) -> Judgement:
        """Exact, shortest-valid and valid; all (..., cell), broadcast."""
        shortest, valid = self._judge(puzzle, answer)
        return Judgement((answer == label).all(-1), shortest, valid)

    def path_length(self, puzzle: Tensor, answer: Tensor) -> Tensor:
        """Cells of the drawn path, S and G among them: (...) int64."""
        return self._drawn(puzzle, answer).sum(-1) + 2

    def shortest_length(self, puzzle: Tensor) -> Tensor:
        """Cells of a shortest path, S and G among them: (...) int64, 0 if there is none."""
        grids = (
            self._grid(puzzle == START),
            self._grid(puzzle == GOAL),
            self._grid(puzzle != WALL),
        )
        return maze_search.steps_between(*grids) + 1

    def has_one_shortest(self, puzzle: Tensor) -> Tensor:
        """Whether exactly one shortest path leads from S to G: (...) bool."""
        start, goal = self._grid(puzzle == START), self._grid(puzzle == GOAL)
        counts = maze_search.path_counts(start, self._grid(puzzle != WALL))
        return (counts * goal).flatten(-2).sum(-1) == 1

    def answer(self, puzzle: Tensor) -> Tensor:
        """The shortest path that the public labels draw; the puzzle itself if it has no path.

        A maze has up to millions of shortest paths. From S on, the labels of Maze-Hard take the
        first of down, left, right and up that is on one of them.
        Proved by tests/tasks/test_maze.py::test_the_public_labels_follow_the_rule.
        """
        steps = maze_search.distances(self._grid(puzzle == GOAL), self._grid(puzzle != WALL))
        path = maze_search.descent(self._grid(puzzle == START), steps).flatten(-2)
        return torch.where(path, PATH, puzzle).to(puzzle.dtype)

    def symmetry(self, puzzles: int, generator: torch.Generator) -> Symmetry:
        """One of the 8 symmetries of the square for each puzzle."""
        device = generator.device
        which = torch.randint(8, (puzzles,), generator=generator, device=device)
        names = torch.arange(self.vocabulary, device=device).expand(puzzles, -1)
        return Symmetry(_square(self.side, device)[which], names)

    def symmetries(
        self, tokens: Tensor, answers: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Puzzles transformed by one random symmetry each, half of them with S and G exchanged.

        The rule of `answer` is not symmetric. So an answer that follows it becomes the one that
        follows it in the transformed maze; any other answer is transformed with its maze.
        """
        symmetry = self.symmetry(tokens.shape[0], generator)
        ends = torch.arange(self.vocabulary, device=generator.device)
        ends[[START, GOAL]] = ends[[GOAL, START]]
        back = torch.rand(tokens.shape[0], 1, generator=generator, device=generator.device) < 0.5
        symmetry = replace(symmetry, names=torch.where(back, ends, symmetry.names))
        moved, carried = symmetry.apply(tokens), symmetry.apply(answers)
        by_rule = (self.answer(tokens) == answers).all(-1, keepdim=True)
        return moved, torch.where(by_rule, self.answer(moved), carried)

    def generate(self, seed: int, at_least: int | None = None) -> tuple[Tensor, Tensor]:
        """A maze of random walls whose shortest path has `at_least` cells: 110 for side 30."""
        question, answer = maze_generate.generate(self.side, seed, at_least, unique=self.unique)
        return self.encode(question), self.encode(answer, answer=True)

    def fresh(self, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """`count` mazes like those of `generate`, made in batches on the generator's device."""
        questions = maze_generate.fresh(self.side, count, generator, unique=self.unique)
        return questions, self.answer(questions)

    def moved(
        self, tokens: Tensor, generator: torch.Generator, window: int = 0
    ) -> tuple[Tensor, Tensor]:
        """New puzzles in the walls of these: randomly turned, with other ends, labels by the rule.

        With a `window`, each is a random square of this side cut out of its maze. A few are
        dropped: see `maze_generate.moved`.
        """
        turned = self.symmetry(len(tokens), generator).apply(tokens)
        free = self._grid(turned != WALL)
        small = replace(self, side=window or self.side)
        if window:
            free = maze_generate.windows(free, window, generator)
        questions = maze_generate.moved(free, maze_generate.least_cells(small.side), generator)
        return questions, small.answer(questions)

    def render(
        self, puzzle: Tensor, answer: Tensor | None = None, confidence: Tensor | None = None, *,
        colour: bool = True, width: int | None = None,
    ) -> str:  # fmt: skip
        """Two characters a cell, or one if two do not fit the terminal's columns (`width`).

        The path is coloured by confidence, red to green.
        """
        return maze_format.terminal(
            self.side, puzzle, answer, confidence, colour=colour, width=width
        )

    def picture(
        self, puzzle: Tensor, answer: Tensor | None = None, confidence: Tensor | None = None, *,
        wrong: Tensor | None = None,
    ) -> str:  # fmt: skip
        """SVG text; unsure cells are shaded, wrong ones marked."""
        return maze_format.svg_text(self.side, puzzle, answer, confidence, wrong)

    def _grid(self, flags: Tensor) -> Tensor:
        return flags.view(*flags.shape[:-1], self.side, self.side)

    def _drawn(self, puzzle: Tensor, answer: Tensor) -> Tensor:
        """Cells where the answer may and does draw the path."""
        return (puzzle == FREE) & (answer == PATH)

    def _missing_ends(self, puzzle: Tensor) -> Tensor:
        """How many of S and G do not occur exactly once in the puzzle: (...) int64."""
        ends = [(puzzle == token).sum(-1) != 1 for token in (START, GOAL)]
        return ends[0].long() + ends[1].long()

    def _judge(self, puzzle: Tensor, answer: Tensor) -> tuple[Tensor, Tensor]:
        valid = self.violations(puzzle, answer) == 0
        short = self.path_length(puzzle, answer) == self.shortest_length(puzzle)
        return valid & short, valid


@cache
def _square(side: int, device: torch.device) -> Tensor:
    """Where each cell comes from under the 8 symmetries of the square: (8, cell)."""
    grid = torch.arange(side * side, device=device).view(side, side)
    turned = [torch.rot90(face, turns) for face in (grid, grid.T) for turns in range(4)]
    return torch.stack(turned).flatten(1)


MAZE = Maze(30)
MAZE_UNIQUE = Maze(30, unique=True)
