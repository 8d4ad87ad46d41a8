"""Tiny runs on ARC tasks that only knowledge of the task can solve: by its header or its id."""

import random
from pathlib import Path

import pytest
import torch

from tiltrm.data.arc_files import ArcTask
from tiltrm.records import build_record
from tiltrm.tasks.arc import ARC, MINI_ARC
from tiltrm.train.demonstrations import read_demonstrations
from tiltrm.train.learner import Learner, statistics
from tiltrm.train.settings import TrainSettings
from tiltrm.train.trainer import Trainer

from . import arc_toys, toys

SIZES = {"width": 32, "heads": 2, "inner_steps": 2}
LEARNS = {
    "batch": 32, "head_rate": 1e-2, "head_weight_decay": 0.0, "weight_decay": 0.0, "ema": 0.9,
    "depth": {"start": [1, 1], "end": [1, 1]}, "steps": 150,
}  # fmt: skip


def same_inputs() -> list[ArcTask]:
    """Two tasks that answer the same grids with themselves, and with black everywhere."""
    chance = random.Random(3)
    grids = [tuple(tuple(chance.randrange(1, 4) for _ in range(5)) for _ in range(5))
             for _ in range(4)]  # fmt: skip
    black = ((0,) * 5,) * 5
    copied, blackened = ((*((g, g) for g in grids),), (*((g, black) for g in grids),))
    return [ArcTask("copy", copied, grids[:1]), ArcTask("black", blackened, grids[:1])]


def learner(folder: Path, settings: TrainSettings) -> Learner:
    task = ARC if settings.task == "arc" else MINI_ARC
    data = read_demonstrations(task, same_inputs(), settings)
    return Trainer(settings, data.train, data.val, folder, device="cpu", names=data.names).learner


def exact(own: Learner, steps: int) -> float:
    """The share of right answers at the end of a run."""
    sums = torch.stack([own.step(number, number / steps) for number in range(steps)])
    return statistics(sums[-10:]).right


def test_mini_arc_learns_its_tasks(tmp_path: Path) -> None:
    values = toys.TINY | arc_toys.SMALL | LEARNS
    values["model"] = values["model"] | SIZES | {"prefix": 0}
    settings = build_record(TrainSettings, values | {"augment": "none"})
    assert exact(learner(tmp_path, settings), 150) > 0.9


@pytest.mark.parametrize("rate", [0.05, 0.0])
def test_arc_learns_its_ids(tmp_path: Path, rate: float) -> None:
    """The questions differ in their ids alone, so a table that stays zero cannot do it."""
    values = toys.TINY | arc_toys.LARGE | LEARNS
    values["model"] = values["model"] | SIZES
    values["table"] = {"augmentations": 1, "rate": rate}
    values["window"] = {"side": 6, "until": 1.0}
    settings = build_record(TrainSettings, values | {"augment": "none"})
    right = exact(learner(tmp_path, settings), 150)
    assert right > 0.9 if rate else right < 0.8
