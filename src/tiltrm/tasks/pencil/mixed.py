"""The task pencil: puzzles of all five types in one batch, for the model that serves them all.

The tokens say of what type a puzzle is. A Sudoku lies on the board of 10 x 10 like the others; it
has its own rules (`tiltrm.tasks.sudoku`), and more symmetries in training than in solving.
Proved by tests/tasks/pencil/test_mixed.py.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tiltrm.tasks.base import PAD, Symmetry, TaskDefaults, permutations
from tiltrm.tasks.pencil import address, rules, symmetry
from tiltrm.tasks.pencil import puzzle as kinds
from tiltrm.tasks.pencil import tokens as ids
from tiltrm.tasks.pencil.task import DEFAULTS, TASKS
from tiltrm.tasks.sudoku import SUDOKU

STARTS = (ids.BLACK, ids.ISLAND, ids.ROOM, ids.WALL)  # the first token of each type but Sudoku
BOARD = ids.SIDE  # cells in a row of the board
SYMBOLS = {ids.UNSHADED: ".", ids.SHADED: "#", ids.LIGHT: "o"} | {
    ids.DIGITS + digit: str(digit) for digit in range(1, 10)
}  # of answers
Sizes = Mapping[kinds.Kind, int]  # how many boards of a batch are of each type, in their order
BROKEN = 1000  # the count for what is no board of its type


@dataclass(frozen=True)
class Pencil:
    """Sudoku, Light Up, Nurikabe, Heyawake and Tapa on boards of at most 10 x 10."""

    name = "pencil"
    side = ids.SIDE
    cells = ids.CELLS
    vocabulary = ids.VOCABULARY

    @property
    def defaults(self) -> TaskDefaults:
        return DEFAULTS

    def types(self, tokens: Tensor) -> Tensor:
        """(..., cell) tokens of questions -> (...) int64, the numbers of their types."""
        largest = tokens.amax(-1).long()
        return torch.stack([largest >= first for first in STARTS]).sum(0)

    def encode(self, text: str, *, answer: bool = False) -> Tensor:
        """An address, or 81 characters of a Sudoku -> (cell,) uint8, in the upper left corner."""
        if answer:
            return self._encode_answer(text)
        if not address.is_address(text):
            return board_of_sudoku(SUDOKU.encode(text), PAD)
        puzzle = address.read(text)
        if puzzle.kind == kinds.SUDOKU:
            return board_of_sudoku(SUDOKU.encode(address.read_sudoku(text)), PAD)
        return ids.encode(puzzle)

    def _encode_answer(self, text: str) -> Tensor:
        """The type shows: digits, 'o' for lights, '#' for shaded cells."""
        if any(each.isdigit() for each in text):
            return board_of_sudoku(SUDOKU.encode(text, answer=True), ids.BLANK)
        own = TASKS[0] if "o" in text else TASKS[1]
        return own.encode(text, answer=True)

    def encode_all(self, texts: Sequence[str], *, answer: bool = False) -> Tensor:
        """Texts -> (puzzle, cell) uint8."""
        rows = [self.encode(text, answer=answer) for text in texts]
        return torch.stack(rows) if rows else torch.empty(0, self.cells, dtype=torch.uint8)

    def decode(self, tokens: Tensor) -> str:
        """A question -> its address; an answer -> a character for each cell of its board.

        Tokens that are no board give a character each.
        """
        if len(tokens) != self.cells:
            return "".join(SYMBOLS.get(token, "?") for token in tokens.tolist())
        digits = (tokens > ids.BLANK) & (tokens < ids.UNSHADED)
        question = bool((tokens == PAD).any() or (tokens >= ids.BLACK).any())
        if question and int(self.types(tokens)) == kinds.SUDOKU.number:
            return address.write_sudoku(SUDOKU.decode(sudoku_of_board(tokens)))
        if question:
            return TASKS[int(self.types(tokens)) - 1].decode(tokens)
        if digits.any():
            return SUDOKU.decode(sudoku_of_board(_without_blanks(tokens)))
        return TASKS[0 if (tokens == ids.LIGHT).any() else 1].decode(tokens)

    def type_of(self, puzzle: Tensor) -> str:
        """The name of the type of one question."""
        return kinds.KINDS[int(self.types(puzzle))].name

    def answer_text(self, puzzle: Tensor, answer: Tensor) -> str:
        """A character for each cell of the puzzle's board."""
        number = int(self.types(puzzle))
        if number == kinds.SUDOKU.number:
            return SUDOKU.decode(sudoku_of_board(answer, like=puzzle))
        return TASKS[number - 1].answer_text(puzzle, answer)

    def on_board(self, puzzle: Tensor) -> Tensor:
        """(..., cell) -> (..., cell) bool: the cells of the puzzle's board."""
        return puzzle != PAD

    def address(self, puzzle: Tensor) -> str:
        """The puzz.link address of a question."""
        return self.decode(puzzle)

    def count_solutions(self, puzzle: Tensor) -> int | None:
        """0, 1, or 2 for several; None where that cannot be told cheaply."""
        number = int(self.types(puzzle))
        if number == kinds.SUDOKU.number:
            return SUDOKU.count_solutions(sudoku_of_board(puzzle))
        return TASKS[number - 1].count_solutions(puzzle)

    def clean(self, line: str) -> str:
        """The line without spaces at its ends. '#' is a cell."""
        return line.strip()

    def width(self, line: str) -> int:
        """Cells that a line seems to hold; an address and rows with '/' are whole puzzles."""
        return self.cells if "/" in line or len(line) == SUDOKU.cells else len(line)

    def well_formed(self, tokens: Tensor, *, answer: bool = False) -> Tensor:
        """Whether the tokens are a board of one of the types."""
        if answer:
            marked = [task.well_formed(tokens, answer=True) for task in TASKS]
            filled = self._sudoku_fits(_without_blanks(tokens), answer=True)
            return torch.stack([*marked, filled]).any(0)

        def fits(kind: kinds.Kind, own: Tensor) -> Tensor:
            if kind == kinds.SUDOKU:
                return self._sudoku_fits(own)
            return TASKS[kind.number - 1].well_formed(own)

        def each_fits(sizes: Sizes, boards: Tensor, _: Tensor) -> Tensor:
            return torch.cat([*map(fits, sizes, boards.split([*sizes.values()]))])

        return self._by_type(tokens, tokens, each_fits).bool()

    def _sudoku_fits(self, board: Tensor, *, answer: bool = False) -> Tensor:
        """Whether pads surround a well-formed Sudoku."""
        outside = self.cells - (board != PAD).sum(-1)
        fits = outside == self.cells - SUDOKU.cells
        return fits & SUDOKU.well_formed(sudoku_of_board(board), answer=answer)

    def given(self, puzzle: Tensor) -> Tensor:
        """Clues that stand in the way of an answer, and all cells outside the board."""
        return rules.given(puzzle)

    def violations(self, puzzle: Tensor, answer: Tensor) -> Tensor:
        """Broken rules of each puzzle's own type; 0 exactly for a solution."""
        return self._by_type(puzzle, answer, _violations)

    def is_solved(self, puzzle: Tensor, answer: Tensor) -> Tensor:
        """Whether the answer is a solution; what it holds outside the board does not count."""
        return self.violations(puzzle, answer) == 0

    def _by_type(
        self, puzzle: Tensor, answer: Tensor, count: Callable[[Sizes, Tensor, Tensor], Tensor]
    ) -> Tensor:
        """Counts by a function of boards that are ordered by type: (...) int64.

        The device is waited for once, for the number of boards of each type.
        """
        puzzle, answer = torch.broadcast_tensors(puzzle, answer)
        lead = puzzle.shape[:-1]
        puzzle, answer = (each.reshape(-1, self.cells) for each in (puzzle, answer))
        types = self.types(puzzle)
        every = torch.arange(len(kinds.KINDS), device=types.device)
        found: list[int] = (types == every[:, None]).sum(-1).tolist()
        sizes = {kind: size for kind, size in zip(kinds.KINDS, found, strict=True) if size}
        if not sizes:
            return types.reshape(lead)
        if len(sizes) == 1:
            return count(sizes, puzzle, answer).long().reshape(lead)
        order = types.argsort()
        counts = count(sizes, puzzle[order], answer[order]).long()
        return torch.empty_like(counts).scatter_(0, order, counts).reshape(lead)

    def symmetry(self, puzzles: int, generator: torch.Generator) -> Symmetry:
        """One of the eight symmetries of the square, and a renaming of a Sudoku's digits."""
        drawn = symmetry.draw(puzzles, generator)
        names = drawn.names.clone()
        first = ids.DIGITS + 1
        names[:, first : first + 9] = first + permutations(puzzles, 9, generator)
        return Symmetry(drawn.source, names)

    def symmetries(
        self, tokens: Tensor, answers: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Puzzles and answers under random symmetries, those of Sudokus within the board too."""
        source = torch.arange(self.cells, device=tokens.device).expand(len(tokens), -1)
        lines = SUDOKU.symmetry(len(tokens), generator).source
        inner = board_cells(tokens.device)[lines]
        upright = source.clone().index_copy(1, board_cells(tokens.device), inner)
        corner = (tokens.view(-1, BOARD, BOARD)[:, :9, :9] != PAD).all((1, 2))
        moves = (self.types(tokens) == kinds.SUDOKU.number) & corner
        source = torch.where(moves[:, None], upright, source)
        drawn = self.symmetry(len(tokens), generator)
        return (
            drawn.apply(tokens.gather(1, source)),
            drawn.apply(answers.gather(1, source)),
        )

    def generate(self, seed: int) -> tuple[Tensor, Tensor]:
        """A puzzle with one solution, of the five types in turn, and this solution."""
        seed, number = divmod(seed, len(kinds.KINDS))
        if number == kinds.SUDOKU.number:
            question, answer = SUDOKU.generate(seed)
            return board_of_sudoku(question, PAD), board_of_sudoku(answer, ids.BLANK)
        return TASKS[number - 1].generate(seed)

    @property
    def generated_kinds(self) -> tuple[kinds.Kind, ...]:
        """The types that `tiltrm.tasks.pencil.dataset` generates for this task, in turn."""
        return kinds.KINDS

    def render(
        self, puzzle: Tensor, answer: Tensor | None = None, confidence: Tensor | None = None, *,
        colour: bool = True, width: int | None = None,
    ) -> str:  # fmt: skip
        """A framed grid, as its own type draws it."""
        number = int(self.types(puzzle))
        if number == kinds.SUDOKU.number:
            own, sure = _sudoku_part(puzzle, answer), _sudoku_part(puzzle, confidence)
            return SUDOKU.render(sudoku_of_board(puzzle), own, sure, colour=colour, width=width)
        return TASKS[number - 1].render(puzzle, answer, confidence, colour=colour)

    def picture(
        self, puzzle: Tensor, answer: Tensor | None = None, confidence: Tensor | None = None, *,
        wrong: Tensor | None = None,
    ) -> str:  # fmt: skip
        """SVG text, as its own type draws it."""
        number = int(self.types(puzzle))
        if number == kinds.SUDOKU.number:
            own, sure, crossed = (_sudoku_part(puzzle, x) for x in (answer, confidence, wrong))
            return SUDOKU.picture(sudoku_of_board(puzzle), own, sure, wrong=crossed)
        return TASKS[number - 1].picture(puzzle, answer, confidence, wrong=wrong)


def board_cells(device: torch.device) -> Tensor:
    """The cells of the board that a Sudoku in its upper left corner covers: (81,)."""
    side = torch.arange(SUDOKU.side, device=device)
    return (side[:, None] * BOARD + side).flatten()


def board_of_sudoku(tokens: Tensor, outside: int) -> Tensor:
    """(..., 81) -> (..., cell), in the upper left corner."""
    board = tokens.new_full((*tokens.shape[:-1], ids.CELLS), outside)
    board[..., board_cells(tokens.device)] = tokens
    return board


def _corner(board: Tensor) -> Tensor:
    """The upper left cell of a Sudoku on each board: (...) int64."""
    grid = (board != PAD).unflatten(-1, (BOARD, BOARD))
    corner: Tensor = (~grid.any(-1)[..., 0]).long() * BOARD + (~grid.any(-2)[..., 0]).long()
    return corner


def _without_blanks(answer: Tensor) -> Tensor:
    """An answer with pads outside its board, where answers have blanks."""
    return torch.where(answer == ids.BLANK, PAD, answer)


def sudoku_of_board(board: Tensor, like: Tensor | None = None) -> Tensor:
    """(..., cell) -> (..., 81): the Sudoku, in whichever corner the board `like` has it."""
    places = _sudoku_places(board if like is None else like)
    return board.gather(-1, places.expand(*board.shape[:-1], -1))


def _sudoku_places(board: Tensor) -> Tensor:
    """The cells of the board that its Sudoku covers: (..., cell) -> (..., 81) int64."""
    return board_cells(board.device) + _corner(board)[..., None]


def _sudoku_part(puzzle: Tensor, values: Tensor | None) -> Tensor | None:
    """Values for each cell of a Sudoku, cut out of the board."""
    return None if values is None else sudoku_of_board(values, like=puzzle)


def _violations(sizes: Sizes, puzzle: Tensor, answer: Tensor) -> Tensor:
    """Broken rules of boards that are ordered by type: two (board, cell) -> (board,) int64."""
    sudokus = sizes.get(kinds.SUDOKU, 0)
    others = {kind: size for kind, size in sizes.items() if kind != kinds.SUDOKU}
    counts = []
    if sudokus:
        counts.append(_sudoku_violations(puzzle[:sudokus], answer[:sudokus]))
    if others:
        counts.append(rules.violations(others, puzzle[sudokus:], answer[sudokus:]))
    return torch.cat(counts)


def _sudoku_violations(puzzle: Tensor, answer: Tensor) -> Tensor:
    fits = (puzzle != PAD).sum(-1) == SUDOKU.cells
    places = _sudoku_places(puzzle)
    broken = SUDOKU.violations(puzzle.gather(-1, places), answer.gather(-1, places))
    return torch.where(fits, broken, BROKEN)


PENCIL = Pencil()
