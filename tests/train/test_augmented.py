"""Batches of ARC demonstrations with ids: every row is what its id's name says."""

from dataclasses import replace

import torch

from tiltrm.tasks.arc import ARC
from tiltrm.tasks.arc.augmentation import parse_name
from tiltrm.train.augmented import UNMOVED, AugmentedDemonstrations
from tiltrm.train.demonstrations import read_demonstrations

from . import arc_toys

CPU = torch.device("cpu")


def drawn(count: int, *, translate: bool = True, seed: int = 0):
    data = read_demonstrations(ARC, arc_toys.tasks(6), arc_toys.table_settings(augmentations=5))
    made = AugmentedDemonstrations(data.train, data.names, CPU, translate=translate)
    return data, *made.draw(count, torch.Generator().manual_seed(seed))


def test_every_row_is_a_demonstration_under_the_augmentation_of_its_id() -> None:
    data, questions, labels = drawn(400)
    assert bool(ARC.well_formed(questions).all())
    assert bool(ARC.well_formed(labels, answer=True).all())
    known = {each.name: set(each.demonstrations) for each in arc_toys.tasks(6)}
    for question, label in zip(questions, labels, strict=True):
        name, own = parse_name(data.names[int(ARC.task_numbers(question))])
        pair = own.undo(ARC.question_grid(question)), own.undo(ARC.answer_grid(question, label))
        assert pair in known[name]


def test_tasks_ids_demonstrations_and_places_are_drawn_evenly() -> None:
    count = 6000
    _, questions, _ = drawn(count)
    numbers = ARC.task_numbers(questions)
    shares = torch.bincount(numbers, minlength=31)[1:] / count
    assert shares.min() > 1 / 30 - 5 * (1 / 30 / count) ** 0.5
    corner = questions[:, 0] != 0  # the grid's first cell lies in the board's first cell
    expected = UNMOVED + (1 - UNMOVED) / 26**2
    assert abs(float(corner.double().mean()) - expected) < 5 * (expected / count) ** 0.5
    last = (questions[:, :900].view(count, 30, 30)[:, :, 29] > 1).any(1).double().mean()
    assert abs(float(last) - (1 - UNMOVED) / 26) < 5 * ((1 - UNMOVED) / 26 / count) ** 0.5


def test_without_translation_grids_stay_in_the_corner() -> None:
    _, questions, labels = drawn(50, translate=False)
    assert bool((questions[:, 0] > 1).all())
    assert bool((labels[:, 0] > 1).all())


def test_a_window_shows_what_fits_in_it() -> None:
    large = tuple(tuple([1] * 9) for _ in range(9))
    tasks = arc_toys.tasks(3)
    tasks[1] = replace(tasks[1], demonstrations=((large, large), *tasks[1].demonstrations))
    tasks[2] = replace(tasks[2], demonstrations=((tasks[2].tests[0], large),) * 3)
    data = read_demonstrations(ARC, tasks, arc_toys.table_settings())
    made = AugmentedDemonstrations(data.train, data.names, CPU, translate=True, side=8)
    questions, labels = made.draw(300, torch.Generator().manual_seed(0))
    assert questions.shape == labels.shape == (300, 68)
    whole = torch.zeros(300, 30, 30, dtype=torch.uint8)
    whole[:, :8, :8] = questions[:, :64].view(300, 8, 8)
    assert bool(((whole > 1).sum((1, 2)) == 25).all())
    assert bool((whole[:, 7] > 1).any())
    numbers = ARC.task_numbers(torch.cat((whole.flatten(1), questions[:, 64:]), 1))
    assert set(((numbers - 1) // 3).tolist()) == {0, 1}


def test_a_batch_is_a_function_of_its_seed() -> None:
    assert torch.equal(drawn(20)[1], drawn(20)[1])
    assert not torch.equal(drawn(20)[1], drawn(20, seed=1)[1])
