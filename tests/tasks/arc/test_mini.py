"""mini-arc: the header moves with the grid, so that a view says which view it is."""

import pytest
import torch

from tiltrm.errors import PuzzleError, SettingsError, SizeError
from tiltrm.tasks import by_name
from tiltrm.tasks.arc import MINI_ARC
from tiltrm.tasks.arc.augmentation import Augmentation, draw_augmentations
from tiltrm.tasks.base import exactly_right, views
from tiltrm.tasks.check import check_task

GRID = ((0, 1, 2, 3, 4), (5, 6, 7, 8, 9), (0, 0, 1, 0, 0), (2, 0, 0, 0, 3), (4, 4, 0, 5, 0))
TEXT = "7: 01234/56789/00100/20003/44050"


def test_it_is_a_task() -> None:
    assert by_name("mini-arc") is MINI_ARC
    assert check_task(MINI_ARC) == 0  # it generates none
    with pytest.raises(SettingsError, match="cannot generate"):
        MINI_ARC.generate(0)


def test_a_question_is_a_grid_and_a_header() -> None:
    question = MINI_ARC.encode(TEXT)
    assert question[:25].tolist() == [2 + colour for row in GRID for colour in row]
    assert question[25:].tolist() == [*range(2, 12), 12, 13, 14, 15, 16 + 7]
    assert MINI_ARC.decode(question) == TEXT
    assert int(MINI_ARC.task_numbers(question)) == 7
    answer = MINI_ARC.encode(TEXT[3:], answer=True)
    assert answer[25:].tolist() == [1] * 15
    assert MINI_ARC.decode(answer) == TEXT[3:]


@pytest.mark.parametrize("own", draw_augmentations(24, torch.Generator().manual_seed(3)))
def test_a_view_is_the_question_of_the_augmented_grid(own: Augmentation) -> None:
    plain, moved = MINI_ARC.question(GRID, 7), MINI_ARC.question(GRID, 7, own)
    assert MINI_ARC.question_grid(moved) == own.apply(GRID)
    assert MINI_ARC.augmentation_of(moved) == own
    assert bool(MINI_ARC.well_formed(moved))
    assert torch.equal(MINI_ARC.encode(MINI_ARC.decode(moved)), moved)
    assert torch.equal(moved, plain) is not own.changes


def test_symmetries_are_augmentations_and_are_undone() -> None:
    puzzles = MINI_ARC.question(GRID, 3).repeat(64, 1)
    drawn = MINI_ARC.symmetry(64, torch.Generator().manual_seed(0))
    moved = drawn.apply(puzzles)
    assert bool(MINI_ARC.well_formed(moved).all())
    owns = [MINI_ARC.augmentation_of(row) for row in moved]
    assert {own.turn for own in owns} == set(range(8))
    assert all(own.colours[0] == 0 for own in owns)
    answer = MINI_ARC.answer(GRID)
    for row, own in zip(drawn.apply(answer.repeat(64, 1)), owns, strict=True):
        assert MINI_ARC.answer_grid(row, row) == own.apply(GRID)
    assert torch.equal(drawn.undo(moved), puzzles)


def test_there_are_many_views() -> None:
    assert len(views(MINI_ARC, 300, 0).source) == 300


def test_a_header_that_no_view_has_is_not_well_formed() -> None:
    question = MINI_ARC.encode(TEXT)
    for cell, token in ((25, 3), (35, 13), (39, 15), (0, 1), (0, 12)):
        bad = question.clone()
        bad[cell] = token
        assert not bool(MINI_ARC.well_formed(bad)), cell
    swapped = question.clone()
    swapped[35], swapped[36] = 13, 12  # two corners exchanged: no turn of the square
    assert not bool(MINI_ARC.well_formed(swapped))


def test_an_answer_is_a_grid_of_colours_and_never_known_to_be_right() -> None:
    question, answer = MINI_ARC.encode(TEXT), MINI_ARC.answer(GRID)
    assert int(MINI_ARC.violations(question, answer)) == 0
    assert not bool(MINI_ARC.is_solved(question, answer))
    assert not MINI_ARC.has_rules
    broken = answer.clone()
    broken[3], broken[30] = 12, 5
    assert int(MINI_ARC.violations(question, broken)) == 2
    assert MINI_ARC.answer_grid(question, broken) is None
    assert MINI_ARC.answer_text(question, broken)[:5] == "012?4"
    assert bool(exactly_right(answer, answer))
    assert MINI_ARC.tidy_answers(broken)[25:].tolist() == [1] * 15
    assert MINI_ARC.given(question).nonzero().flatten().tolist() == list(range(25, 40))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("01234/56789/00100/20003/44050", "expected the number of the task before the grid"),
        ("240: 01234/56789/00100/20003/44050", r"task number in 0..239 for mini-arc, got 240"),
        ("7 t9 0123456789: 00000/00000/00000/00000/00000", "perhaps a turn"),
        ("7 t1 0023456789: 00000/00000/00000/00000/00000", "ten different colours"),
        ("7: 0123/5678/0010/2000", "grid of 5 x 5 cells for mini-arc, got 4 rows of 4"),
    ],
)
def test_bad_texts_are_sentences(text: str, said: str) -> None:
    with pytest.raises((PuzzleError, SizeError), match=said):
        MINI_ARC.encode(text)
