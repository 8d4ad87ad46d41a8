"""Drawings of ARC grids: every cell in its colour, input and answer side by side."""

import xml.etree.ElementTree as ET

import torch

from tiltrm.tasks.arc import ARC, MINI_ARC
from tiltrm.tasks.arc.draw import PALETTE, TERMINAL

SVG = "{http://www.w3.org/2000/svg}"
GRID = ((0, 1, 2, 3, 4), (5, 6, 7, 8, 9), (0, 0, 1, 0, 0), (2, 0, 0, 0, 3), (4, 4, 0, 5, 0))
SMALL, OUTPUT = ((0, 0, 5), (1, 2, 1)), ((5, 5), (5, 0), (1, 1))


def cells(picture: str) -> list[str]:
    """The colours of all drawn cells; the first rectangle is the paper."""
    return [each.get("fill") or "" for each in ET.fromstring(picture).findall(f"{SVG}rect")[1:]]


def test_a_picture_has_every_cell_in_its_colour() -> None:
    question, answer = ARC.question(SMALL, 3), ARC.answer(OUTPUT)
    expected = [PALETTE[each] for grid in (SMALL, OUTPUT) for row in grid for each in row]
    assert cells(ARC.picture(question, answer)) == expected
    assert cells(ARC.picture(question)) == expected[:6]
    mini = MINI_ARC.picture(MINI_ARC.question(GRID, 0), MINI_ARC.answer(GRID))
    assert cells(mini) == 2 * [PALETTE[each] for row in GRID for each in row]


def test_doubt_and_errors_are_marked() -> None:
    question, answer = ARC.question(SMALL, 3, (2, 2)), ARC.answer(OUTPUT, (2, 2))
    sure = torch.ones(904)
    sure[2 * 30 + 3] = 0.5  # the second cell of the answer
    sure[0] = 0.1  # outside
    doubtful = ET.fromstring(ARC.picture(question, answer, sure))
    assert len(doubtful.findall(f"{SVG}circle")) == 1
    wrong = torch.zeros(904, dtype=torch.bool)
    wrong[4 * 30 + 2] = True
    plain, marked = (ARC.picture(question, answer, wrong=each) for each in (None, wrong))
    assert len(cells(marked)) == len(cells(plain)) + 1


def test_no_rectangle_is_said() -> None:
    question, answer = ARC.question(SMALL, 3), torch.ones(904, dtype=torch.uint8)
    assert "no rectangle" in ARC.picture(question, answer)
    assert "no rectangle" in ARC.render(question, answer, colour=False)


def test_the_terminal_shows_digits_or_colours() -> None:
    question, answer = ARC.question(SMALL, 3), ARC.answer(OUTPUT)
    assert (
        ARC.render(question, answer, colour=False) == "0 0 5  -> 5 5\n1 2 1     5 0\n          1 1"
    )
    narrow = ARC.render(question, answer, colour=False, width=8)
    assert narrow == "0 0 5\n1 2 1\n\n5 5\n5 0\n1 1"
    painted = ARC.render(question, answer)
    assert painted.count(f"48;5;{TERMINAL[5]};") == 4
    broken = MINI_ARC.answer(GRID)
    broken[0] = 13
    assert MINI_ARC.render(MINI_ARC.question(GRID, 0), broken, colour=False).count("?") == 1
