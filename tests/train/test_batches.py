"""Batches, augmentation and depth: functions of the seed and the step alone."""

import pytest
import torch
from torch import Generator, Tensor

from tiltrm.data import Puzzles
from tiltrm.errors import DataError, SettingsError
from tiltrm.tasks import Maze
from tiltrm.train import batches
from tiltrm.train.settings import Depth, Hints, TrainSettings

from . import toys

CPU = torch.device("cpu")


def rows(tokens: Tensor) -> set[bytes]:
    return {row.numpy().tobytes() for row in tokens}


def draw(augment: str, seed: int = 0, **changes: object) -> tuple[Tensor, Tensor]:
    settings = toys.settings(augment=augment, batch=64, **changes)
    source = batches.training_set(toys.puzzles(), settings, CPU)
    return batches.draw(source, settings, Generator().manual_seed(seed))


@pytest.mark.parametrize("augment", ["none", "endless", "fixed"])
def test_a_batch_is_solved_puzzles_and_depends_on_the_seed(augment: str) -> None:
    questions, labels = draw(augment, shuffles=5)
    assert toys.TASK.is_solved(questions, labels).all()
    again, _ = draw(augment, shuffles=5)
    other, _ = draw(augment, seed=1, shuffles=5)
    assert torch.equal(questions, again)
    assert not torch.equal(questions, other)


def test_augmentation_shows_what_it_should() -> None:
    known = rows(toys.puzzles().questions)
    assert rows(draw("none")[0]) <= known
    assert len(rows(draw("endless")[0]) - known) > 32


def test_fixed_shuffles_are_so_many_in_blocks_of_any_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = toys.settings(augment="fixed", shuffles=7)
    source = batches.training_set(toys.puzzles(), settings, CPU)
    assert len(source.questions) == 7 * len(toys.puzzles())
    assert toys.TASK.is_solved(source.questions, source.labels).all()
    assert len(rows(source.questions)) > 6 * len(toys.puzzles())
    drawn = {bytes(r) for seed in range(50) for r in rows(
        batches.draw(source, settings, Generator().manual_seed(seed))[0])}  # fmt: skip
    assert drawn <= rows(source.questions)
    monkeypatch.setattr(batches, "BLOCK", 13)
    small = batches.training_set(toys.puzzles(), settings, CPU)
    assert toys.TASK.is_solved(small.questions, small.labels).all()
    assert len(small.questions) == len(source.questions)


@pytest.mark.parametrize("augment", ["fixed", "moved", "fresh"])
def test_what_is_made_beforehand_is_of_the_seed(augment: str) -> None:
    maze = Maze(7)
    given = Puzzles(maze, *maze.fresh(3, Generator().manual_seed(9)))
    one, again, other = (
        batches.training_set(
            given, toys.settings(augment=augment, shuffles=4, seed=seed), CPU
        ).questions
        for seed in (1, 1, 2)
    )
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_hints_add_clues_of_the_answer_and_nothing_else() -> None:
    """As many as were drawn, in the share of puzzles that was asked for, from 1 to the most."""
    plain, labels = draw("none")
    added: list[int] = []
    for seed in range(30):
        questions, labels = draw("none", seed, hints={"share": 0.5, "most": 3})
        plain, same = draw("none", seed)
        assert torch.equal(labels, same)
        new = questions != plain
        assert not (new & toys.TASK.given(plain)).any()
        assert torch.equal(questions[new], labels[new])
        added += new.sum(-1).tolist()
    assert set(added) == {0, 1, 2, 3}
    assert abs(added.count(0) / len(added) - 0.5) < 0.06
    assert abs(added.count(3) / len(added) - 1 / 6) < 0.05
    everything, labels = draw("none", hints={"share": 1.0, "most": 999})
    assert (everything == labels).all(-1).any()


def test_hints_are_refused_where_an_answer_is_no_clue() -> None:
    with pytest.raises(SettingsError, match="hints"):
        TrainSettings("maze", hints=Hints(0.5, 3))


def test_fresh_mazes_take_the_place_of_the_given_ones() -> None:
    maze = Maze(5)
    questions, answers = maze.fresh(4, Generator().manual_seed(9))
    settings = toys.settings(augment="fresh", shuffles=3, batch=8)
    given = Puzzles(maze, questions, answers)
    source = batches.training_set(given, settings, CPU)
    assert len(source.questions) == 12
    assert maze.is_solved(source.questions, source.labels).all()
    assert torch.equal(source.questions, batches.training_set(given, settings, CPU).questions)
    drawn, _ = batches.draw(source, settings, Generator().manual_seed(0))
    assert rows(drawn) <= rows(source.questions)
    with pytest.raises(SettingsError, match="is for mazes"):
        batches.training_set(toys.puzzles(), settings, CPU)


@pytest.mark.parametrize("window", [0, 4])
def test_moved_mazes_are_made_of_the_given_walls(window: int) -> None:
    maze = Maze(7)
    given = Puzzles(maze, *maze.fresh(3, Generator().manual_seed(9)))
    settings = toys.settings(augment="moved", shuffles=40)
    source = batches.training_set(given, settings, CPU, window)
    assert 60 < len(source.questions) <= 120
    assert source.questions.shape[1] == (window or 7) ** 2
    assert Maze(window or 7).is_solved(source.questions, source.labels).all()
    again = batches.training_set(given, settings, CPU, window)
    assert torch.equal(source.questions, again.questions)
    with pytest.raises(SettingsError, match="is for mazes"):
        batches.training_set(toys.puzzles(), settings, CPU)


def test_puzzles_without_answers_are_refused() -> None:
    bare = Puzzles(toys.TASK, toys.puzzles().questions)
    with pytest.raises(DataError, match="with answers"):
        batches.training_set(bare, toys.settings(), CPU)


def test_batch_seeds_differ_and_repeat() -> None:
    seeds = {batches.batch_seed(seed, step) for seed in range(20) for step in range(50)}
    assert len(seeds) == 1000
    assert batches.batch_seed(3, 4) == batches.batch_seed(3, 4)
    assert all(0 <= seed < 2**62 for seed in seeds)


@pytest.mark.parametrize(
    ("progress", "expected"),
    [(0.0, {1, 2}), (0.2, {1, 2}), (0.4, {2, 3, 4}), (0.6, {3, 4, 5, 6}), (1.0, {3, 4, 5, 6})],
)
def test_depth_is_uniform_in_a_moving_range(progress: float, expected: set[int]) -> None:
    depth = Depth(start=(1, 2), end=(3, 6), over=(0.2, 0.6))
    draws = [batches.draw_depth(depth, progress, seed) for seed in range(3000)]
    assert set(draws) == expected
    share = 3000 / len(expected)
    spread = (3000 * (1 / len(expected)) * (1 - 1 / len(expected))) ** 0.5
    assert all(abs(draws.count(value) - share) < 5 * spread for value in expected)


def test_depth_jumps_where_the_range_has_no_length() -> None:
    depth = Depth(start=(1, 1), end=(9, 9), over=(0.5, 0.5))
    assert batches.draw_depth(depth, 0.49, 0) == 1
    assert batches.draw_depth(depth, 0.51, 0) == 9
