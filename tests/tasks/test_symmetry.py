"""Symmetries: they keep rules and solutions, can be undone, and reach the whole group."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.tasks import MAZE, SUDOKU, Maze, Sudoku, Symmetry, Task
from tiltrm.tasks.base import views

TASKS: list[Task] = [SUDOKU, Sudoku(2), Maze(7)]


def batch(task: Task, puzzles: int) -> tuple[Tensor, Tensor]:
    pairs = [task.generate(seed) for seed in range(3)]
    questions = torch.stack([pairs[i % 3][0] for i in range(puzzles)])
    return questions, torch.stack([pairs[i % 3][1] for i in range(puzzles)])


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
@given(seed=st.integers(0, 2**31))
@settings(deadline=None, max_examples=15)
def test_a_moved_solution_solves_the_moved_puzzle(task: Task, seed: int) -> None:
    questions, answers = batch(task, 6)
    moved, solutions = task.symmetries(questions, answers, seeded(seed))
    assert task.is_solved(moved, solutions).all()
    assert moved.dtype == questions.dtype
    assert torch.equal(task.given(moved).sum(-1), task.given(questions).sum(-1))
    spoilt = answers.clone()
    spoilt[:, 0] = 0
    symmetry = task.symmetry(6, seeded(seed))
    # Not only zero stays: every count of broken rules does.
    assert torch.equal(
        task.violations(symmetry.apply(questions), symmetry.apply(spoilt)),
        task.violations(questions, spoilt),
    )


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
@given(seed=st.integers(0, 2**31))
@settings(deadline=None, max_examples=15)
def test_undo_undoes_apply_on_any_tokens(task: Task, seed: int) -> None:
    generator = seeded(seed)
    symmetry = task.symmetry(4, generator)
    for shape in ((4, task.cells), (4, 3, task.cells)):
        tokens = torch.randint(0, task.vocabulary, shape, generator=generator)
        assert torch.equal(symmetry.undo(symmetry.apply(tokens)), tokens)
        assert torch.equal(symmetry.apply(symmetry.undo(tokens)), tokens)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_symmetry_is_a_permutation_of_cells_and_of_ids(task: Task) -> None:
    symmetry = task.symmetry(50, seeded(0))
    assert torch.equal(symmetry.source.sort(-1).values, torch.arange(task.cells).expand(50, -1))
    assert torch.equal(symmetry.names.sort(-1).values, torch.arange(task.vocabulary).expand(50, -1))
    assert (symmetry.names[:, :2] == torch.arange(2)).all()  # pad and blank (or wall) stay


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_the_identity_is_the_symmetry_that_changes_nothing(task: Task) -> None:
    drawn = views(task, 12, seed=0, again=True)
    tokens = torch.randint(0, task.vocabulary, (9, task.cells), generator=seeded(1))
    same = (drawn.apply(tokens.expand(12, -1, -1)) == tokens).flatten(1).all(-1)
    assert torch.equal(drawn.is_identity, same)
    assert drawn.is_identity[0]
    assert not drawn.is_identity[1]


def test_particles_of_a_puzzle_move_alike() -> None:
    symmetry = SUDOKU.symmetry(2, seeded(3))
    tokens = torch.randint(0, 11, (2, 5, 81), generator=seeded(4))
    moved = symmetry.apply(tokens)
    for particle in range(5):
        assert torch.equal(moved[:, particle], symmetry.apply(tokens[:, particle]))


def test_puzzles_move_independently() -> None:
    symmetry = SUDOKU.symmetry(200, seeded(0))
    assert len(symmetry.source.unique(dim=0)) == 200
    assert len(symmetry.names.unique(dim=0)) > 190


def test_the_square_has_eight_symmetries() -> None:
    symmetry = MAZE.symmetry(400, seeded(0))
    turned, counts = symmetry.source.unique(dim=0, return_counts=True)
    assert len(turned) == 8
    assert counts.min() > 400 / 8 / 2  # 5 standard errors below the mean is 17


def test_the_toy_reaches_every_move_of_cells() -> None:
    """4x4: 2 bands x 2x2 rows in them, the same for columns, and transposition: 8 * 8 * 2."""
    symmetry = Sudoku(2).symmetry(4000, seeded(0))
    assert len(symmetry.source.unique(dim=0)) == 128
    assert len(symmetry.names.unique(dim=0)) == 24


def test_corners_of_a_sudoku_reach_every_cell_evenly() -> None:
    """Cell 0 comes from each of the 81 cells with the same chance; the expectation is 100."""
    counts = SUDOKU.symmetry(8100, seeded(0)).source[:, 0].bincount(minlength=81).float()
    chi_square = ((counts - 100) ** 2 / 100).sum()
    assert chi_square < 80 + 5 * (2 * 80) ** 0.5


def test_views_are_different_and_the_first_is_the_puzzle_itself() -> None:
    for seed in range(10):  # of the eight that a maze has, none is missed
        seen = views(Maze(4), 8, seed)
        assert len(seen.source.unique(dim=0)) == 8
        assert torch.equal(seen.source[0], torch.arange(16))
    with pytest.raises(SettingsError, match="at most 8 views, the symmetries of maze4, got 9"):
        views(Maze(4), 9, 0)
    many = views(SUDOKU, 17, 0)
    assert torch.equal(many.source[0], torch.arange(81))
    assert torch.equal(many.names[0], torch.arange(11))
    assert len(many.source[:, 0].unique()) > 8  # drawn fairly, not the nearest ones
    assert torch.equal(views(SUDOKU, 5, 0).source, many.source[:5])


def test_symmetries_are_seeded() -> None:
    first, again, other = (SUDOKU.symmetry(3, seeded(seed)) for seed in (1, 1, 2))
    assert torch.equal(first.source, again.source)
    assert torch.equal(first.names, again.names)
    assert not torch.equal(first.source, other.source)


def test_a_symmetry_is_applied_as_written() -> None:
    symmetry = Symmetry(torch.tensor([[2, 0, 1]]), torch.tensor([[0, 2, 1]]))
    assert symmetry.apply(torch.tensor([[0, 1, 2]])).tolist() == [[1, 0, 2]]


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_device_gives_the_same_rules_and_its_own_symmetries(task: Task) -> None:
    questions, answers = batch(task, 768)
    on_device = questions.cuda(), answers.cuda()
    generator = torch.Generator("cuda").manual_seed(0)
    assert task.is_solved(*task.symmetries(*on_device, generator)).all()
    spoilt = answers.roll(1, 0)
    found = task.violations(on_device[0], spoilt.cuda()).cpu()
    assert torch.equal(found, task.violations(questions, spoilt))


def test_a_task_with_few_symmetries_shows_them_again() -> None:
    eight = views(Maze(4), 8, 0)
    twenty = views(Maze(4), 20, 0, again=True)
    assert torch.equal(twenty.source, eight.source[torch.arange(20) % 8])
    assert torch.equal(views(SUDOKU, 17, 0, again=True).source, views(SUDOKU, 17, 0).source)
