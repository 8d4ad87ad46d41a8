"""arc: boards with the number of their puzzle, grids of any size, and 'no rectangle'."""

import pytest
import torch

from tiltrm.errors import PuzzleError, SizeError
from tiltrm.tasks import by_name
from tiltrm.tasks.arc import ARC
from tiltrm.tasks.base import PAD, exactly_right

GRID, OUTPUT = ((0, 0, 5), (1, 2, 1)), ((5, 5), (5, 0), (1, 1), (2, 2))


def test_it_is_a_task() -> None:
    assert by_name("arc") is ARC
    assert (ARC.cells, ARC.vocabulary, ARC.side) == (904, 12, 30)


def test_texts_read_back() -> None:
    question = ARC.encode("800001: 005/121")
    assert torch.equal(question, ARC.question(GRID, 800_001))
    assert ARC.decode(question) == "800001: 005/121"
    assert int(ARC.task_numbers(question)) == 800_001
    moved = ARC.question(GRID, 9, (3, 4))
    assert ARC.decode(moved) == "9 +3+4: 005/121"
    assert torch.equal(ARC.encode(ARC.decode(moved)), moved)
    nameless = ARC.question(GRID, 0, (3, 0))
    assert torch.equal(ARC.encode(ARC.decode(nameless)), nameless)
    answer = ARC.encode("55/50/11/22", answer=True)
    assert torch.equal(answer, ARC.answer(OUTPUT))
    assert ARC.decode(answer) == "55/50/11/22"
    assert answer[900:].tolist() == [PAD] * 4
    assert bool(ARC.well_formed(question))
    assert bool(ARC.well_formed(moved))
    assert bool(ARC.well_formed(answer, answer=True))
    assert not bool(ARC.well_formed(question, answer=True))


def test_an_answer_has_its_own_size_and_may_have_noise_outside() -> None:
    question, answer = ARC.question(GRID, 5), ARC.answer(OUTPUT)
    noisy = answer.clone()
    noisy[29 * 30 + 20] = 7
    noisy[10 * 30] = 3
    assert ARC.answer_grid(question, noisy) == OUTPUT
    assert ARC.answer_text(question, noisy) == "55/50/11/22"
    assert torch.equal(ARC.tidy(question, noisy), answer)
    assert int(ARC.violations(question, noisy)) == 2
    assert int(ARC.violations(question, answer)) == 0
    assert bool(exactly_right(noisy, answer))  # pads are no labels
    assert not bool(ARC.is_solved(question, answer))
    moved = ARC.question(GRID, 5, (6, 7))
    assert ARC.answer_grid(moved, ARC.answer(OUTPUT, (6, 7))) == OUTPUT


def test_an_answer_without_a_colour_in_its_corner_is_no_rectangle() -> None:
    question, answer = ARC.question(GRID, 5), ARC.answer(OUTPUT)
    answer[0] = 1
    assert ARC.answer_grid(question, answer) is None
    assert ARC.answer_text(question, answer) == "no rectangle"
    assert int(ARC.violations(question, answer)) == ARC.cells
    assert ARC.decode(torch.zeros(904, dtype=torch.uint8)) == "no rectangle"


def test_boards_that_no_grid_gives_are_not_well_formed() -> None:
    question = ARC.question(GRID, 5)
    for cell, token in ((0, 0), (3, 0), (3, 2), (60, 0), (70, 1), (899, 5), (0, 12)):
        bad = question.clone()
        bad[cell] = token
        assert not bool(ARC.well_formed(bad)), (cell, token)
    assert not bool(ARC.well_formed(torch.zeros(904, dtype=torch.uint8)))


def test_training_moves_question_and_answer_to_one_place() -> None:
    questions = ARC.question(GRID, 70_000).repeat(200, 1)
    answers = ARC.answer(OUTPUT).repeat(200, 1)
    moved, labels = ARC.symmetries(questions, answers, torch.Generator().manual_seed(0))
    assert bool(ARC.well_formed(moved).all())
    assert bool(ARC.well_formed(labels, answer=True).all())
    assert torch.equal(moved[:, 900:], questions[:, 900:])
    corners = set()
    for question, label in zip(moved, labels, strict=True):
        assert ARC.question_grid(question) == GRID
        assert ARC.answer_grid(question, label) == OUTPUT
        place = int((question[:900] > 1).nonzero()[0])
        corners.add(divmod(place, 30))
    assert max(top for top, _ in corners) == 26  # 30 rows, less the 4 of the output
    assert max(left for _, left in corners) == 27
    assert min(top for top, _ in corners) == min(left for _, left in corners) == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("7 t3 0213456789: 0", "number of the augmented puzzle"),
        ("99999999999: 0", "expected a number"),
        ("x: 0", "expected a number"),
        ("7 +29+0: 01/23", "within the board of 30 x 30, got 2 rows of 2 at row 30, column 1"),
    ],
)
def test_bad_texts_are_sentences(text: str, said: str) -> None:
    with pytest.raises((PuzzleError, SizeError), match=said):
        ARC.encode(text)
