"""Rendering for the terminal and as SVG."""

import re
import xml.etree.ElementTree as ET

import pytest
import torch
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.tasks import MAZE, STANDARD, SUDOKU, Maze, Sudoku, Task, by_name

SVG = "{http://www.w3.org/2000/svg}"
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def puzzle_and_answer(task: Task) -> tuple[Tensor, Tensor]:
    return task.generate(0)


@pytest.mark.parametrize("task", STANDARD, ids=lambda task: task.name)
def test_by_name_knows_the_standard_tasks(task: Task) -> None:
    assert by_name(task.name) is task


def test_by_name_names_what_it_knows() -> None:
    with pytest.raises(SettingsError, match="sudoku, maze, sudoku4, got 'chess'"):
        by_name("chess")


@pytest.mark.parametrize("task", [SUDOKU, Sudoku(2)], ids=lambda task: task.name)
def test_a_plain_sudoku_reads_back(task: Sudoku) -> None:
    puzzle, answer = task.generate(0)
    assert torch.equal(task.encode(task.render(puzzle, colour=False)), puzzle)
    coloured = task.render(puzzle, answer, torch.rand(task.cells))
    assert ESCAPE.sub("", coloured) == task.render(puzzle, answer, colour=False)
    assert torch.equal(task.encode(ESCAPE.sub("", coloured)), answer)


def test_sudoku_clues_are_bold_and_answers_coloured_by_confidence() -> None:
    puzzle = SUDOKU.encode("1" + "." * 80)
    answer = puzzle.clone()
    answer[1], answer[2], answer[3], answer[4] = 3, 4, 5, 6
    confidence = torch.tensor([0.0, 0.0, 0.5, 1.0, float("nan")] + [0.0] * 76)
    text = SUDOKU.render(puzzle, answer, confidence)
    bold, red, yellow, green, unknown = re.findall(r"\x1b\[([0-9;]+)m[1-9]", text)
    assert (bold, red, yellow, green, unknown) == (
        "1", "38;5;196", "38;5;226", "38;5;82", "38;5;196",
    )  # fmt: skip


def test_a_clue_that_the_answer_changed_is_not_shown_as_a_clue() -> None:
    puzzle = SUDOKU.encode("1" + "." * 80)
    changed = puzzle.clone()
    changed[0] = 3
    assert "\x1b[1m" not in SUDOKU.render(puzzle, changed)
    assert "\x1b[1m1" in SUDOKU.render(puzzle, puzzle)


def test_a_maze_has_two_characters_a_cell() -> None:
    puzzle, answer = puzzle_and_answer(MAZE)
    plain = MAZE.render(puzzle, answer, colour=False).split("\n")
    assert [len(line) for line in plain] == [60] * 30
    assert sum(line.count("•") for line in plain) == MAZE.path_length(puzzle, answer) - 2
    text = MAZE.render(puzzle, answer, torch.rand(900))
    assert text.count("\x1b[48;5;") == MAZE.path_length(puzzle, answer) - 2


def test_a_changed_maze_cell_is_shown_as_strange() -> None:
    task = Maze(2)
    puzzle = task.encode("S# G")
    answer = torch.tensor([3, 5, 0, 4])
    assert task.render(puzzle, answer, colour=False) == "S ? \n? G "


@pytest.mark.parametrize("task", STANDARD, ids=lambda task: task.name)
def test_pictures_are_well_formed_and_mark_what_they_should(task: Task) -> None:
    puzzle, answer = puzzle_and_answer(task)
    confidence, wrong = torch.ones(task.cells), torch.zeros(task.cells, dtype=torch.bool)
    free = (~task.given(puzzle)).nonzero().flatten()[:3]
    confidence[free], wrong[free[0]] = 0.25, True
    root = ET.fromstring(task.picture(puzzle, answer, confidence, wrong=wrong))
    rects = root.findall(f"{SVG}rect")
    assert [r.get("fill-opacity") for r in rects].count(f"{0.85 * 0.75:.3f}") == 3
    assert [r.get("fill-opacity") for r in rects].count("0.12") == 1
    sure = ET.fromstring(task.picture(puzzle, answer))
    assert not [r for r in sure.findall(f"{SVG}rect") if r.get("fill-opacity")]


def test_a_sudoku_picture_holds_every_digit() -> None:
    puzzle, answer = puzzle_and_answer(SUDOKU)
    texts = ET.fromstring(SUDOKU.picture(puzzle, answer)).findall(f"{SVG}text")
    assert "".join(text.text or "" for text in texts) == SUDOKU.decode(answer)
    bold = sum(text.get("font-weight") == "700" for text in texts)
    assert bold == SUDOKU.given(puzzle).sum()


def test_a_wrong_shape_is_named() -> None:
    puzzle, answer = puzzle_and_answer(Sudoku(2))
    with pytest.raises(SettingsError, match=r"confidence of shape \(16,\), got \(15,\)"):
        Sudoku(2).render(puzzle, answer, torch.ones(15))
