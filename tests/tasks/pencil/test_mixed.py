"""The task pencil: five types in one batch, told apart by their tokens."""

import pytest
import torch

from tiltrm import load
from tiltrm.errors import PuzzleError
from tiltrm.tasks import by_name
from tiltrm.tasks.base import PAD
from tiltrm.tasks.pencil import PENCIL, TASKS
from tiltrm.tasks.pencil.mixed import STARTS, board_of_sudoku, sudoku_of_board
from tiltrm.tasks.pencil.tokens import BLANK
from tiltrm.tasks.sudoku import SUDOKU
from tiltrm.train.settings import load_preset


@pytest.fixture(scope="module")
def puzzles() -> tuple[torch.Tensor, torch.Tensor]:
    """One of each type and its solution: (type, cell) each."""
    pytest.importorskip("ortools")
    made = [PENCIL.generate(seed) for seed in range(5)]
    return torch.stack([q for q, _ in made]), torch.stack([a for _, a in made])


def test_the_tokens_say_the_type(puzzles: tuple[torch.Tensor, torch.Tensor]) -> None:
    assert PENCIL.types(puzzles[0]).tolist() == [0, 1, 2, 3, 4]


def test_rules_are_those_of_the_type(puzzles: tuple[torch.Tensor, torch.Tensor]) -> None:
    questions, answers = puzzles
    table = PENCIL.is_solved(questions[:, None], answers[None])  # each answer to each question
    assert torch.equal(table, torch.eye(5, dtype=torch.bool))
    own = torch.stack([TASKS[n - 1].violations(questions[n], answers[0]) for n in range(1, 5)])
    assert torch.equal(PENCIL.violations(questions[1:], answers[0]), own)


def test_symmetries_keep_solutions(puzzles: tuple[torch.Tensor, torch.Tensor]) -> None:
    questions, answers = (each.repeat(64, 1) for each in puzzles)
    generator = torch.Generator().manual_seed(0)
    moved, solved = PENCIL.symmetries(questions, answers, generator)
    assert bool(PENCIL.is_solved(moved, solved).all())
    assert bool(PENCIL.well_formed(moved).all())
    assert bool(PENCIL.well_formed(solved, answer=True).all())
    sudokus = sudoku_of_board(moved[::5])
    assert len(sudokus.unique(dim=0)) == 64  # far more than the eight of the square
    views = PENCIL.symmetry(len(questions), generator)
    assert bool(PENCIL.is_solved(views.apply(questions), views.apply(answers)).all())
    assert torch.equal(views.undo(views.apply(questions)), questions)


def test_a_sudoku_moves_with_its_board() -> None:
    question, answer = SUDOKU.generate(3)
    board, solved = board_of_sudoku(question, PAD), board_of_sudoku(answer, BLANK)
    assert torch.equal(sudoku_of_board(board), question)
    turned = board.view(10, 10).flip(0, 1).flatten()
    assert torch.equal(sudoku_of_board(turned), question.flip(0))
    assert int(PENCIL.violations(turned, solved.view(10, 10).flip(0, 1).flatten())) == 0
    assert int(PENCIL.violations(board, solved.flip(0))) > 0


def test_text_reads_back(puzzles: tuple[torch.Tensor, torch.Tensor]) -> None:
    for question, answer in zip(*puzzles, strict=True):
        assert torch.equal(PENCIL.encode(PENCIL.decode(question)), question)
        assert torch.equal(PENCIL.encode(PENCIL.decode(answer), answer=True), answer)
        assert PENCIL.render(question, answer, colour=False)
        assert PENCIL.picture(question, answer).startswith("<svg")


def test_what_is_no_board_is_not_well_formed() -> None:
    blank = torch.ones(100, dtype=torch.uint8)
    assert not bool(PENCIL.well_formed(blank))
    assert int(PENCIL.violations(blank, blank)) > 0
    with pytest.raises(PuzzleError):
        PENCIL.encode("https://puzz.link/p?slither/5/5/a")


def test_the_tasks_are_known_by_name() -> None:
    for task in (*TASKS, PENCIL):
        assert by_name(task.name) is task


def test_the_shipped_model_and_the_preset_tell_types_as_the_task_does() -> None:
    assert load("pencil").config.puzzle_starts == STARTS
    assert load_preset("pencil", "fast").model.puzzle_starts == STARTS
