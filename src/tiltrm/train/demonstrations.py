"""ARC tasks as training data: demonstrations, some held out, and the names of the puzzle ids.

The outputs of tests are never read. Proved by tests/train/test_demonstrations.py.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import torch

from tiltrm.data import Puzzles
from tiltrm.data.arc_files import ArcTask
from tiltrm.data.arc_puzzles import AnyArc, demonstration_puzzles
from tiltrm.errors import DataError
from tiltrm.tasks.arc.augmentation import draw_augmentations
from tiltrm.train.settings import TrainSettings

BLANK_NAME = "<blank>"  # row 0 of a table belongs to no puzzle, as in the peers' tables
SHOWN = 200  # training puzzles to validate on, at most, if none is held out
SPARED = 2  # demonstrations that a task keeps at least for training


class TrainingData(NamedTuple):
    """Puzzles to train and to validate on."""

    train: Puzzles
    val: Puzzles
    held_out: bool = True  # whether the puzzles of `val` are not among those of `train`
    names: tuple[str, ...] | None = None  # of the puzzle ids, for ARC


def read_demonstrations(
    task: AnyArc, tasks: Sequence[ArcTask], settings: TrainSettings
) -> TrainingData:
    """The demonstrations of ARC tasks.

    `settings.hold_out` is the share of the tasks with at least three demonstrations that keep one
    for validation. If it is 0, validation has some of the training demonstrations.
    """
    names = [each.name for each in tasks]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"expected tasks with different names, got {twice[:80]!r} twice")
    names_by_id = names_of_ids(names, settings)
    kept, held = hold_out(tasks, settings.hold_out, settings.seed)
    train = demonstration_puzzles(task, kept, names_by_id)
    if not held:
        shown = torch.arange(0, len(train), -(-len(train) // SHOWN))
        return TrainingData(train, train.take(shown), held_out=False, names=names_by_id)
    return TrainingData(train, demonstration_puzzles(task, held, names_by_id), names=names_by_id)


def hold_out(
    tasks: Sequence[ArcTask], share: float, seed: int
) -> tuple[list[ArcTask], list[ArcTask]]:
    """All tasks with their demonstrations for training; some with the one for validation.

    The choice is a function of the names and the seed.
    """
    able = [each.name for each in tasks if len(each.demonstrations) > SPARED]
    count = min(len(able), round(share * len(tasks)))
    chosen = set(random.Random(f"{seed}/tasks").sample(sorted(able), count))
    train, val = [], []
    for each in tasks:
        pairs = each.demonstrations
        if each.name not in chosen:
            train.append(each)
            continue
        place = random.Random(f"{seed}/{each.name}").randrange(len(pairs))
        train.append(replace(each, demonstrations=pairs[:place] + pairs[place + 1 :]))
        val.append(replace(each, demonstrations=pairs[place : place + 1]))
    return train, val


def names_of_ids(tasks: Sequence[str], settings: TrainSettings) -> tuple[str, ...]:
    """The names by puzzle id: those of the tasks, or, for a table, of all their augmentations."""
    count = settings.table.augmentations
    if not count:
        return tuple(tasks)
    names = [BLANK_NAME]
    for name in tasks:
        seed = random.Random(f"{settings.seed}/{name}").getrandbits(62)
        drawn = draw_augmentations(count, torch.Generator().manual_seed(seed))
        names += [each.name(name) for each in drawn]
    return tuple(names)
