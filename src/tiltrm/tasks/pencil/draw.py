"""Pencil puzzles for the terminal and as SVG."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.tasks import drawing
from tiltrm.tasks.base import PAD
from tiltrm.tasks.drawing import CELL, INK, MARGIN, PAPER, RULE, letter, line, rect
from tiltrm.tasks.pencil import tokens as ids
from tiltrm.tasks.pencil.puzzle import HEYAWAKE, LIGHTUP, UNKNOWN, PencilPuzzle, edges

SHADE, LAMP = drawing.ANSWER, "#f2b705"


@dataclass(frozen=True)
class Drawing:
    """A puzzle and, by its cells, what an answer marks and how sure and how right it is."""

    puzzle: PencilPuzzle
    marked: Sequence[bool]
    sure: Sequence[float]
    wrong: Sequence[bool]

    def clue(self, cell: int) -> str:
        """The clue as it is shown; '' where there is none."""
        unknown = "" if self.puzzle.kind == LIGHTUP else "?"
        return "".join(unknown if n == UNKNOWN else str(n) for n in self.puzzle.clues[cell])

    def black(self, cell: int) -> bool:
        """Whether it is a black cell of Light Up."""
        return self.puzzle.kind == LIGHTUP and bool(self.puzzle.clues[cell])


def show(
    puzzle: PencilPuzzle, question: Tensor, answer: Tensor | None, confidence: Tensor | None,
    wrong: Tensor | None,
) -> Drawing:  # fmt: skip
    """Values on the whole board of 10 x 10 -> those of the puzzle's cells."""
    for name, values in (("answer", answer), ("confidence", confidence), ("wrong", wrong)):
        if values is not None and values.shape != (ids.CELLS,):
            raise SettingsError(
                f"expected {name} of shape ({ids.CELLS},), got {tuple(values.shape)}"
            )
    inside = question != PAD
    mark = ids.mark(puzzle.kind)
    nothing = [False] * puzzle.cells
    marked = nothing if answer is None else (answer[inside] == mark).tolist()
    sure = [1.0] * puzzle.cells
    if confidence is not None:
        sure = confidence[inside].float().nan_to_num(0.0).clamp(0.0, 1.0).tolist()
    crossed = nothing if wrong is None else wrong[inside].bool().tolist()
    return Drawing(puzzle, marked, sure, crossed)


def terminal(shown: Drawing, *, colour: bool) -> str:
    """A framed grid; marks from red (unsure) to green (sure), borders of rooms as lines."""
    puzzle = shown.puzzle
    width = max(2, *(len(shown.clue(cell)) for cell in range(puzzle.cells)))
    walls = _walls(puzzle)
    lines = []
    for row in range(puzzle.height + 1):
        rule = ""
        for column in range(puzzle.width + 1):
            cell = row * puzzle.width + column
            across = column < puzzle.width and _is_wall(puzzle, walls, cell - puzzle.width, cell)
            rule += _corner(puzzle, walls, row, column)
            rule += ("─" if across else " ") * width if column < puzzle.width else ""
        if puzzle.kind == HEYAWAKE or row in (0, puzzle.height):
            lines.append(rule)
        if row < puzzle.height:
            text = ""
            for column in range(puzzle.width):
                cell = row * puzzle.width + column
                left = column == 0 or (cell - 1, cell) in walls
                text += ("│" if left else " ") + _cell(shown, cell, width, colour)
            lines.append(text + "│")
    return "\n".join(lines)


def _cell(shown: Drawing, cell: int, width: int, colour: bool) -> str:
    clue = shown.clue(cell)
    if shown.black(cell):
        text = clue.center(width) if clue else "█" * width
        return drawing.paint(text if clue else " " * width, "7") if colour else text
    if not shown.marked[cell]:
        text = (clue or "·").center(width)
        return drawing.paint(text, drawing.BOLD) if colour and clue else text
    light = shown.puzzle.kind == LIGHTUP
    text = "o".center(width) if light else clue.center(width, "▓") if clue else "▓" * width
    if not colour:
        return text
    return drawing.paint(text, f"38;5;{drawing.heat(shown.sure[cell])}")


def _walls(puzzle: PencilPuzzle) -> set[tuple[int, int]]:
    """The pairs of cells with a border between them."""
    pairs = edges(puzzle.width, puzzle.height)
    return {pair for pair, wall in zip(pairs, puzzle.borders, strict=False) if wall}


def _is_wall(puzzle: PencilPuzzle, walls: set[tuple[int, int]], above: int, below: int) -> bool:
    return above < 0 or below >= puzzle.cells or (above, below) in walls


def _corner(puzzle: PencilPuzzle, walls: set[tuple[int, int]], row: int, column: int) -> str:
    """The character where up to four lines meet."""
    w, h = puzzle.width, puzzle.height
    cell = row * w + column  # to the lower right of the corner
    up = row > 0 and (column in (0, w) or (cell - w - 1, cell - w) in walls)
    down = row < h and (column in (0, w) or (cell - 1, cell) in walls)
    left = column > 0 and (row in (0, h) or (cell - w - 1, cell - 1) in walls)
    right = column < w and (row in (0, h) or (cell - w, cell) in walls)
    return " ╵╷│╴┘┐┤╶└┌├─┴┬┼"[up + 2 * down + 4 * left + 8 * right]


def svg(shown: Drawing) -> str:
    """A picture: shaded cells blue, lights yellow, unsure cells tinted, wrong cells crossed."""
    puzzle = shown.puzzle
    width, height = (2 * MARGIN + CELL * side for side in (puzzle.width, puzzle.height))
    cells = [part for cell in range(puzzle.cells) for part in _figures(shown, cell)]
    return drawing.svg(width, height, puzzle.kind.name, (*cells, *_rules(puzzle)))


def _place(puzzle: PencilPuzzle, cell: int) -> tuple[int, int]:
    row, column = divmod(cell, puzzle.width)
    return MARGIN + column * CELL, MARGIN + row * CELL


def _figures(shown: Drawing, cell: int) -> Iterator[str]:
    """The parts of one cell, from the lowest to the topmost."""
    x, y = _place(shown.puzzle, cell)
    light = shown.puzzle.kind == LIGHTUP
    clue = shown.clue(cell)
    if shown.black(cell):
        yield rect(x, y, CELL, CELL, INK)
    elif shown.marked[cell] and not light:
        yield rect(x, y, CELL, CELL, SHADE)
    if shown.sure[cell] < 1.0 and not shown.black(cell):
        yield drawing.shade(x, y, CELL, 1.0 - shown.sure[cell])
    middle = x + CELL / 2, y + CELL / 2
    if shown.marked[cell] and light:
        place = f'cx="{middle[0]:g}" cy="{middle[1]:g}" r="{CELL * 0.3:g}"'
        yield f'<circle {place} fill="{LAMP}" stroke="{INK}"/>'
    if clue:
        dark = shown.black(cell) or (shown.marked[cell] and not light)
        size = CELL * (0.52 if len(clue) < 3 else 0.34)
        yield letter(*middle, clue, size, PAPER if dark else INK, bold=True)
    if shown.wrong[cell]:
        yield drawing.cross(x, y, CELL)


def _rules(puzzle: PencilPuzzle) -> Iterator[str]:
    """Thin lines between cells, thick ones between rooms, and the frame."""
    walls = _walls(puzzle)
    pairs = sorted(edges(puzzle.width, puzzle.height), key=lambda pair: pair in walls)
    for cell, other in pairs:
        x, y = _place(puzzle, other)
        end = (x, y + CELL) if other == cell + 1 else (x + CELL, y)
        ink, width = (INK, 3) if (cell, other) in walls else (RULE, 1)
        yield line(x, y, *end, ink, width)
    frame = f'stroke="{INK}" stroke-width="3"'
    yield rect(MARGIN, MARGIN, CELL * puzzle.width, CELL * puzzle.height, "none", frame)
