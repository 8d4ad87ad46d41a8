"""Augmentations: named as in the peers' identifiers, undone exactly, the same for the same seed."""

import torch

from tiltrm.tasks.arc.augmentation import Augmentation, by_task, draw_augmentations, parse_name

GRID = ((0, 1, 2), (3, 4, 9))


def test_a_name_says_what_was_done() -> None:
    task, own = parse_name("007bbfb7|||t3|||0213456789")
    assert (task, own) == ("007bbfb7", Augmentation(3, (0, 2, 1, 3, 4, 5, 6, 7, 8, 9)))
    assert own.name(task) == "007bbfb7|||t3|||0213456789"
    assert own.apply(((1, 2),)) == ((2,), (1,))  # 1 becomes 2 and 2 becomes 1, then three quarters
    assert parse_name("a|||b") == ("a|||b", Augmentation())
    assert parse_name("a|||t1|||0013456789")[1] == Augmentation()  # no permutation
    assert Augmentation().name("x") == "x"


def test_everything_is_undone() -> None:
    found = draw_augmentations(200, torch.Generator().manual_seed(0), keep_black=False)
    assert len(set(found)) == 200
    assert {own.turn for own in found} == set(range(8))
    assert all(own.undo(own.apply(GRID)) == GRID for own in found)


def test_black_is_kept_unless_told_otherwise() -> None:
    kept = draw_augmentations(50, torch.Generator().manual_seed(1))
    assert kept[0] == Augmentation()
    assert all(own.colours[0] == 0 for own in kept)
    moved = draw_augmentations(50, torch.Generator().manual_seed(1), keep_black=False)
    assert any(own.colours[0] for own in moved)
    assert kept == draw_augmentations(50, torch.Generator().manual_seed(1))
    assert kept != draw_augmentations(50, torch.Generator().manual_seed(2))


def test_names_are_grouped_by_task() -> None:
    names = ["<blank>", "a", "b", "a|||t1|||0123456789"]
    assert by_task(names)["a"] == [(1, Augmentation()), (3, Augmentation(1))]
