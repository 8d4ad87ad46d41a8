"""ARC training data: demonstrations only, some held out, and names for all puzzle ids."""

from dataclasses import replace

import pytest
import torch

from tiltrm.data.arc_files import ArcTask
from tiltrm.errors import DataError
from tiltrm.tasks.arc import ARC, MINI_ARC
from tiltrm.train.demonstrations import hold_out, read_demonstrations

from . import arc_toys, toys


def rows(puzzles) -> set[bytes]:
    both = torch.cat((puzzles.questions, puzzles.labels()), 1)
    return {bytes(row.tolist()) for row in both}


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("task", [MINI_ARC, ARC])
def test_no_test_output_is_ever_seen(share: float, task) -> None:
    """The same tasks with other tests, or none known, give the same training data."""
    tasks = arc_toys.tasks(8)
    settings = arc_toys.settings(hold_out=share)
    found = read_demonstrations(task, tasks, settings)
    outputs = {tuple(map(tuple, grid)) for each in tasks for grid in each.outputs or ()}
    seen = [task.answer_grid(q, a) for part in found[:2]
            for q, a in zip(part.questions, part.labels(), strict=True)]  # fmt: skip
    assert not outputs & set(seen)
    blind = [replace(each, tests=each.tests[:1] * 2, outputs=None) for each in tasks]
    again = read_demonstrations(task, blind, settings)
    assert torch.equal(again.train.questions, found.train.questions)
    assert torch.equal(again.val.labels(), found.val.labels())


def test_held_out_demonstrations_are_in_val_alone() -> None:
    tasks = arc_toys.tasks(10)
    found = read_demonstrations(MINI_ARC, tasks, arc_toys.settings(hold_out=0.5))
    assert found.held_out
    assert len(found.val) == 5
    assert not rows(found.train) & rows(found.val)
    whole = read_demonstrations(MINI_ARC, tasks, arc_toys.settings())
    assert not whole.held_out
    assert rows(whole.train) == rows(found.train) | rows(found.val)
    assert rows(whole.val) <= rows(whole.train)
    other = read_demonstrations(MINI_ARC, tasks, arc_toys.settings(hold_out=0.5, seed=1))
    assert rows(other.val) != rows(found.val)


def test_a_task_with_two_demonstrations_keeps_both() -> None:
    few = [replace(each, demonstrations=each.demonstrations[:2]) for each in arc_toys.tasks(4)]
    train, val = hold_out(few, 1.0, 0)
    assert train == few
    assert val == []


def test_names_by_id() -> None:
    tasks = arc_toys.tasks(3)
    assert read_demonstrations(MINI_ARC, tasks, arc_toys.settings()).names == ("a0", "a1", "a2")
    settings = arc_toys.table_settings(augmentations=4)
    found = read_demonstrations(ARC, tasks, settings)
    assert found.names is not None
    assert len(found.names) == len(set(found.names)) == 13
    assert found.names[0] == "<blank>"
    assert found.names[1::4] == ("a0", "a1", "a2")
    assert found.names[2].startswith("a0|||t")
    assert found.names == read_demonstrations(ARC, tasks, settings).names
    assert set(ARC.task_numbers(found.train.questions).tolist()) == {1, 5, 9}
    other = read_demonstrations(ARC, tasks, arc_toys.table_settings(augmentations=4, seed=1))
    assert other.names != found.names


def test_a_name_twice_gets_a_sentence() -> None:
    twice: list[ArcTask] = arc_toys.tasks(2) + arc_toys.tasks(1)
    with pytest.raises(DataError, match="different names, got 'a0' twice"):
        read_demonstrations(MINI_ARC, twice, toys.settings())
