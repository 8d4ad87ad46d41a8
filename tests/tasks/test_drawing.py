"""Grids in a terminal of any width, and as SVG.

Colours and shapes are a matter of taste. These tests prove that the drawings tell apart what a
reader must tell apart, and that each mark is in its own cell.
"""

import re
import xml.etree.ElementTree as ET
from collections import Counter

import pytest
import torch
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.tasks import MAZE, STANDARD, SUDOKU, Grid, Maze, Sudoku, Task, drawing, maze_format

SVG = "{http://www.w3.org/2000/svg}"
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
TILES = Grid("tiles", 5, ".ab")


def widths(text: str) -> set[int]:
    """The columns that the lines take in a terminal."""
    return {len(ESCAPE.sub("", line)) for line in text.split("\n")}


@pytest.mark.parametrize("task", [SUDOKU, Sudoku(2)], ids=lambda task: task.name)
@pytest.mark.parametrize("width", [None, 20, 1])
def test_a_plain_sudoku_reads_back_at_any_width(task: Sudoku, width: int | None) -> None:
    puzzle, answer = task.generate(0)
    assert torch.equal(task.encode(task.render(puzzle, colour=False, width=width)), puzzle)
    coloured = task.render(puzzle, answer, torch.rand(task.cells), width=width)
    assert ESCAPE.sub("", coloured) == task.render(puzzle, answer, colour=False, width=width)
    assert torch.equal(task.encode(ESCAPE.sub("", coloured)), answer)


@pytest.mark.parametrize(
    ("task", "forms"),
    [
        (SUDOKU, {25: 25, 24: 17, 17: 17, 16: 9, 9: 9, 5: 9}),  # ruled, spaced, digits alone
        (Sudoku(2), {13: 13, 12: 7, 6: 4}),
        (TILES, {9: 9, 8: 5}),
        (MAZE, {60: 60, 59: 30, 30: 30, 10: 30}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_grid_takes_the_widest_form_that_fits(task: Task, forms: dict[int, int]) -> None:
    puzzle = torch.ones(task.cells).long() if task is TILES else task.generate(0)[0]
    usual = task.render(puzzle)
    assert widths(usual) == {max(forms.values())}
    for width, columns in forms.items():
        drawn = task.render(puzzle, width=width)
        assert widths(drawn) == {columns}
        assert (drawn == usual) == (columns == max(forms.values()))


def test_a_narrow_maze_shows_the_same_cells() -> None:
    puzzle, answer = MAZE.generate(0)
    wide, narrow = (MAZE.render(puzzle, answer, colour=False, width=w) for w in (60, 59))
    assert [line[::2] for line in wide.split("\n")] == narrow.split("\n")
    confidence = torch.rand(900)
    coloured = [MAZE.render(puzzle, answer, confidence, width=w) for w in (60, 59)]
    assert ESCAPE.findall(coloured[0]) == ESCAPE.findall(coloured[1])


def test_clues_differ_from_answers_and_sure_answers_from_unsure_ones() -> None:
    """Of a clue and five answers with confidence 0, 0, a half, 1 and NaN, which counts as 0."""
    puzzle = SUDOKU.encode("1" + "." * 80)
    answer = puzzle.clone()
    answer[1:6] = torch.tensor([3, 4, 5, 6, 7])
    confidence = torch.tensor([0.0, 0.0, 0.0, 0.5, 1.0, float("nan")] + [0.0] * 75)
    text = SUDOKU.render(puzzle, answer, confidence)
    clue, *same, half, sure, unknown = re.findall(r"(\x1b\[[0-9;]+m)[1-9]", text)
    assert same[0] == same[1] == unknown
    assert len({clue, same[0], half, sure}) == 4


def test_a_clue_that_the_answer_changed_is_not_shown_as_a_clue() -> None:
    puzzle = SUDOKU.encode("1" + "." * 80)
    changed = puzzle.clone()
    changed[0] = 3
    (clue,) = re.findall(r"(\x1b\[[0-9;]+m)1", SUDOKU.render(puzzle, puzzle))
    assert clue not in SUDOKU.render(puzzle, changed)


def test_a_maze_shows_its_path() -> None:
    puzzle, answer = MAZE.generate(0)
    path = MAZE.path_length(puzzle, answer) - 2  # without S and G
    assert MAZE.render(puzzle, answer, colour=False).count("•") == path
    confidence = torch.arange(900) / 899
    plain, coloured = (MAZE.render(puzzle, each, confidence) for each in (puzzle, answer))
    new = Counter(ESCAPE.findall(coloured)) - Counter(ESCAPE.findall(plain))
    new.pop("\x1b[0m")
    assert new.total() == path
    assert len(new) > 5  # by confidence


def test_a_changed_maze_cell_is_shown_as_strange() -> None:
    task = Maze(2)
    puzzle = task.encode("S# G")
    answer = torch.tensor([3, 5, 0, 4])
    assert task.render(puzzle, answer, colour=False) == "S ? \n? G "
    assert task.render(puzzle, answer, colour=False, width=3) == "S?\n?G"


def added(task: Task, puzzle: Tensor, answer: Tensor, **marks: Tensor) -> list[tuple[int, int]]:
    """The cells (row, column) in which a picture has elements that it lacks without the marks."""
    layout = maze_format if isinstance(task, Maze) else drawing
    plain, marked = (
        Counter(ET.tostring(each) for each in ET.fromstring(picture))
        for picture in (task.picture(puzzle, answer), task.picture(puzzle, answer, **marks))
    )
    found = set()
    for each in map(ET.fromstring, (marked - plain).elements()):
        y, x = (min(float(each.get(axis + n, "inf")) for n in ("", "1", "2")) for axis in "yx")
        found.add(tuple(int((at - layout.MARGIN) // layout.CELL) for at in (y, x)))
    return sorted(found)


@pytest.mark.parametrize("task", STANDARD, ids=lambda task: task.name)
def test_doubt_and_errors_are_marked_in_their_cells(task: Task) -> None:
    puzzle, answer = task.generate(0)
    free = (~task.given(puzzle)).nonzero().flatten()[:3]
    places = [divmod(int(cell), task.side) for cell in free]
    confidence = torch.ones(task.cells)
    confidence[free] = 0.25
    assert added(task, puzzle, answer, confidence=confidence) == places
    wrong = torch.zeros(task.cells, dtype=torch.bool)
    wrong[free[0]] = True
    assert added(task, puzzle, answer, wrong=wrong) == places[:1]


def test_a_sudoku_picture_holds_every_digit_and_sets_clues_apart() -> None:
    puzzle, answer = SUDOKU.generate(0)
    texts = ET.fromstring(SUDOKU.picture(puzzle, answer)).findall(f"{SVG}text")
    assert "".join(text.text or "" for text in texts) == SUDOKU.decode(answer)
    styles = [(text.get("font-weight"), text.get("fill")) for text in texts]
    given = SUDOKU.given(puzzle).tolist()
    clues, answers = (
        {s for s, g in zip(styles, given, strict=True) if g is w} for w in (True, False)
    )
    assert len(clues) == len(answers) == 1
    assert clues != answers


def test_a_wrong_shape_is_named() -> None:
    puzzle, answer = Sudoku(2).generate(0)
    with pytest.raises(SettingsError, match=r"confidence of shape \(16,\), got \(15,\)"):
        Sudoku(2).render(puzzle, answer, torch.ones(15))
