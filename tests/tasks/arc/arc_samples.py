"""Small ARC tasks and random models for the tests of several packages."""

import json
from pathlib import Path

import torch

from tiltrm.data.arc_files import ArcTask, arc_json
from tiltrm.model.trm import TRM, TRMConfig
from tiltrm.tasks.arc.grids import ColourGrid

NAMES = ("<blank>", "small", "tall", "small|||t1|||0213456789", "small|||t6|||0123456798")


def filled(colour: int, rows: int = 5, columns: int = 5) -> ColourGrid:
    return ((colour,) * columns,) * rows


MINI = [
    ArcTask("first", ((filled(1), filled(2)), (filled(3), filled(4))), (filled(5),), (filled(6),)),
    ArcTask("second", ((filled(6), filled(7)),), (filled(8), filled(9)), (filled(1), filled(2))),
    ArcTask("unknown", ((filled(1), filled(1)),), (filled(3),)),
]
FULL = [
    ArcTask("small", ((filled(1, 2, 3), filled(2, 3, 2)),), (filled(4, 2, 3),), (filled(5, 3, 2),)),
    ArcTask(
        "tall", ((filled(1, 9, 1), filled(2, 1, 9)),), (filled(3, 8, 1),) * 2, (filled(1),) * 2
    ),
]


def write_tasks(path: Path, tasks: list[ArcTask]) -> Path:
    path.write_text(json.dumps(arc_json(tasks)))
    return path


def mini_model() -> TRM:
    """A random model for mini-arc whose particles disagree."""
    torch.manual_seed(0)
    config = TRMConfig(cells=40, vocabulary=256, width=16, layers=1, heads=2, prefix=1,
                       inner_steps=1, cycles=2)  # fmt: skip
    model = _opinionated(TRM(config), "mini-arc")
    model.token_head.weight[:2], model.token_head.weight[12:] = 0.0, 0.0  # it answers in colours
    return model


def full_model(puzzles: int = len(NAMES)) -> TRM:
    """A random model for arc with a row for each of NAMES."""
    torch.manual_seed(1)
    config = TRMConfig(cells=900, vocabulary=12, width=16, layers=1, heads=2, prefix=1,
                       token_mixing=False, rotary=True, inner_steps=1, cycles=1, puzzles=puzzles,
                       id_cells=4)  # fmt: skip
    model = _opinionated(TRM(config), "arc")
    torch.nn.init.normal_(model.prefix)
    model.puzzle_names = NAMES if puzzles == len(NAMES) else None
    return model


def _opinionated(model: TRM, task: str) -> TRM:
    model = model.eval().requires_grad_(False)
    torch.nn.init.normal_(model.halt_head.weight, std=0.2)
    torch.nn.init.zeros_(model.halt_head.bias)
    model.task, model.decide_above = task, 100.0
    return model
