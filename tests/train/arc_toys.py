"""ARC tasks of 5 x 5 that turn or recolour their grids, and runs on them that take milliseconds."""

import random
from pathlib import Path
from typing import Any

from tiltrm.data.arc_files import ArcTask
from tiltrm.records import build_record
from tiltrm.tasks.arc import ARC, MINI_ARC
from tiltrm.tasks.arc.augmentation import Augmentation
from tiltrm.train.demonstrations import read_demonstrations
from tiltrm.train.settings import TrainSettings
from tiltrm.train.trainer import Trainer

from . import toys

SMALL: dict[str, Any] = {
    "task": "mini-arc",
    "model": toys.TINY["model"] | {"cells": 40, "vocabulary": 256},
}
LARGE: dict[str, Any] = {
    "task": "arc",
    "model": toys.TINY["model"]
    | {
        "cells": 900, "vocabulary": 12, "id_cells": 4, "prefix": 2, "token_mixing": False,
        "rotary": True,
    },
    "table": {"augmentations": 3},
}  # fmt: skip


def tasks(count: int, demonstrations: int = 4) -> list[ArcTask]:
    """Task k turns its grid by turn k mod 8 and renames colours; two tests, both answered."""
    chance, made = random.Random(5), []
    for number in range(count):
        colours = (0, *chance.sample(range(1, 10), 9))
        rule = Augmentation(number % 8, colours)
        grids = [
            tuple(tuple(chance.randrange(10) for _ in range(5)) for _ in range(5))
            for _ in range(demonstrations + 2)
        ]
        pairs = tuple((grid, rule.apply(grid)) for grid in grids)
        tests = tuple(grids[demonstrations:])
        outputs = tuple(out for _, out in pairs[demonstrations:])
        made.append(ArcTask(f"a{number}", pairs[:demonstrations], tests, outputs))
    return made


def settings(**changes: Any) -> TrainSettings:
    """A tiny run on mini-arc."""
    return build_record(TrainSettings, toys.TINY | SMALL | changes)


def table_settings(augmentations: int = 3, **changes: Any) -> TrainSettings:
    """A tiny run on arc, with a table."""
    own = LARGE | {"table": {"augmentations": augmentations}}
    return build_record(TrainSettings, toys.TINY | own | changes)


def trainer(folder: Path, chosen: TrainSettings) -> Trainer:
    """A run on five of these tasks, on a CPU."""
    data = read_demonstrations(ARC if chosen.task == "arc" else MINI_ARC, tasks(5), chosen)
    return Trainer(
        chosen, data.train, data.val, folder, device="cpu", names=data.names,
        held_out=data.held_out,
    )  # fmt: skip
