"""ARC tasks as puzzles: their numbers, and that no test output is among the demonstrations."""

from pathlib import Path

import pytest
from tests.tasks.arc.arc_samples import MINI, write_tasks

from tiltrm.data import arc_puzzles, read
from tiltrm.data.arc_files import ArcTask
from tiltrm.errors import DataError
from tiltrm.tasks import SUDOKU
from tiltrm.tasks.arc import ARC, MINI_ARC


def square(colour: int) -> tuple[tuple[int, ...], ...]:
    return ((colour,) * 5,) * 5


TASKS = [
    ArcTask("a", ((square(1), square(2)), (square(3), square(4))), (square(5),), (square(9),)),
    ArcTask("b", ((square(6), square(7)),), (square(8), square(5)), (square(9), square(9))),
]


def test_demonstrations_hold_no_test() -> None:
    found = arc_puzzles.demonstration_puzzles(MINI_ARC, TASKS)
    assert [MINI_ARC.decode(row)[:4] for row in found.questions] == ["0: 1", "0: 3", "1: 6"]
    assert [MINI_ARC.decode(row)[0] for row in found.labels()] == ["2", "4", "7"]
    assert found.sources == ("a", "a", "b")


def test_tests_come_in_order_with_their_outputs() -> None:
    found = arc_puzzles.input_puzzles(ARC, TASKS)
    assert ARC.task_numbers(found.questions).tolist() == [1, 2, 2]
    assert [ARC.decode(row)[:4] for row in found.questions] == ["1: 5", "2: 8", "2: 5"]
    assert found.answers is not None
    unknown = [TASKS[0], ArcTask("b", TASKS[1].demonstrations, TASKS[1].tests)]
    assert arc_puzzles.input_puzzles(ARC, unknown).answers is None


def test_names_give_the_numbers() -> None:
    names = ["<blank>", "b", "a|||t1|||0123456789", "a"]
    assert arc_puzzles.puzzle_numbers(ARC, TASKS, names) == {"a": 3, "b": 1}
    with pytest.raises(DataError, match="task 'b': expected a task that the model has a puzzle id"):
        arc_puzzles.puzzle_numbers(ARC, TASKS, ["a"])


def test_the_size_of_the_grids_tells_the_task() -> None:
    assert arc_puzzles.guess_task(TASKS) is MINI_ARC
    large = ArcTask("c", ((square(1), ((1,),)),), (square(1),))
    assert arc_puzzles.guess_task([*TASKS, large]) is ARC
    with pytest.raises(DataError, match="task 'c': expected a grid of 5 x 5 cells"):
        arc_puzzles.demonstration_puzzles(MINI_ARC, [large])


def test_more_tasks_than_tokens_are_refused() -> None:
    many = [ArcTask(str(number), ((square(1), square(1)),), (square(1),)) for number in range(241)]
    with pytest.raises(DataError, match=r"task '240': expected a task number in 0\.\.239"):
        arc_puzzles.input_puzzles(MINI_ARC, many)


def test_read_gives_the_inputs_whose_outputs_are_known(tmp_path: Path) -> None:
    path = write_tasks(tmp_path / "mini.json", [MINI[2], *MINI])
    with pytest.raises(
        DataError, match="expected puzzles of sudoku, got ARC tasks; add --task min"
    ):
        read(path, SUDOKU)
    path = write_tasks(tmp_path / "mini.json", [MINI[2], *MINI[:2]])
    found = read(path)
    assert found.task is MINI_ARC
    assert MINI_ARC.task_numbers(found.questions).tolist() == [1, 2, 2]  # 0 has no outputs
    assert found.answers is not None
    assert len(read(path, limit=1)) == 1
    only = read(write_tasks(tmp_path / "asked.json", MINI[2:]), ARC)
    assert (only.answers, ARC.task_numbers(only.questions).tolist()) == (None, [1])


def test_the_names_of_a_model_number_the_puzzles(tmp_path: Path) -> None:
    path = write_tasks(tmp_path / "part.json", MINI[1:2])
    found = read(path, names=("first", "other", "second"))
    assert MINI_ARC.task_numbers(found.questions).tolist() == [2, 2]
    with pytest.raises(DataError, match="not among the 1 names"):
        read(path, names=("first",))
