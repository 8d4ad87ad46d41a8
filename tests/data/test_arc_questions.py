"""Questions of ARC tasks: which augmentations are asked, and that each is undone."""

import pytest
from tests.tasks.arc.arc_samples import FULL, MINI, NAMES

from tiltrm.data.arc_files import ArcTask
from tiltrm.data.arc_questions import arc_questions
from tiltrm.errors import DataError, SettingsError
from tiltrm.tasks.arc import ARC, MINI_ARC

GRID = ((0, 1, 2), (3, 4, 5))
OUTPUT = ((1, 2, 3, 4), (5, 6, 7, 8), (9, 0, 0, 0))
TASK = ArcTask("small", ((GRID, OUTPUT),), (GRID,), (OUTPUT,))


def test_mini_arc_takes_any_augmentation_of_every_input() -> None:
    found = arc_questions(MINI_ARC, MINI, augmentations=5, seed=3)
    assert [(one.task.name, one.index) for one in found[::5]] == [
        ("first", 0), ("second", 0), ("second", 1), ("unknown", 0)]  # fmt: skip
    assert len(found) == 20
    assert not found[0].augmentation.changes
    assert len({one.augmentation for one in found}) == 5  # the same for every task
    for one in found:
        assert MINI_ARC.augmentation_of(one.tokens) == one.augmentation
        grid = one.task.tests[one.index]
        turned = one.augmentation.apply(grid)
        assert one.read(MINI_ARC, MINI_ARC.answer(turned)[None]) == [grid]
    assert int(MINI_ARC.task_numbers(found[5].tokens)) == 1
    again = arc_questions(MINI_ARC, MINI, augmentations=5, seed=3)
    assert [one.augmentation for one in again] == [one.augmentation for one in found]


def test_arc_asks_the_augmentations_that_have_a_name() -> None:
    found = arc_questions(ARC, [TASK], NAMES, augmentations=9)
    assert int(ARC.task_numbers(found[0].tokens)) == 1
    assert {int(ARC.task_numbers(one.tokens)) for one in found} == {1, 3, 4}
    for one in found:
        assert ARC.question_grid(one.tokens) == one.augmentation.apply(GRID)
        assert one.read(ARC, ARC.answer(one.augmentation.apply(OUTPUT))[None]) == [OUTPUT]
    two = arc_questions(ARC, [TASK], NAMES, augmentations=2)
    assert len(two) == 2
    alone = arc_questions(ARC, FULL, NAMES, augmentations=2)[:2]  # the others change nothing
    assert [one.augmentation for one in alone] == [one.augmentation for one in two]


def test_translated_grids_have_room_and_are_read_where_they_are() -> None:
    found = arc_questions(ARC, [TASK], augmentations=30, translate=True)
    places = set()
    for one in found:
        cell = int((one.tokens[:900] > 1).nonzero()[0])
        corner = divmod(cell, 30)
        places.add(corner)
        answer = ARC.answer(one.augmentation.apply(OUTPUT), corner)
        assert one.read(ARC, answer[None]) == [OUTPUT]
    assert len(places) > 20
    assert divmod(int((found[0].tokens[:900] > 1).nonzero()[0]), 30) == (0, 0)


@pytest.mark.parametrize("seed", [-5, 2**63, 10**20])
def test_any_seed_chooses(seed: int) -> None:
    assert len(arc_questions(MINI_ARC, MINI, augmentations=2, seed=seed)) == 8
    assert len(arc_questions(ARC, [TASK], NAMES, augmentations=2, seed=seed)) == 2


def test_what_cannot_be_asked_is_a_sentence() -> None:
    with pytest.raises(
        SettingsError, match="augmentations must be 1 for a model without the names"
    ):
        arc_questions(ARC, [TASK], augmentations=2)
    with pytest.raises(DataError, match="task 'absent': expected a task that the model has"):
        arc_questions(ARC, [ArcTask("absent", TASK.demonstrations, TASK.tests)], NAMES)
    with pytest.raises(SettingsError, match="translate is for arc"):
        arc_questions(MINI_ARC, MINI, translate=True)
    with pytest.raises(SettingsError, match=r"augmentations must lie in 1\.\.100000, got 0"):
        arc_questions(MINI_ARC, MINI, augmentations=0)
    with pytest.raises(DataError, match="task 'small': expected a grid of 5 x 5"):
        arc_questions(MINI_ARC, [TASK])
