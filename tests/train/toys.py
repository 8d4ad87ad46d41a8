"""4x4 Sudokus and runs small enough to take milliseconds a step."""

import random
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tiltrm.data import Puzzles
from tiltrm.records import build_record
from tiltrm.tasks import Sudoku
from tiltrm.tasks.grid import BLANK
from tiltrm.train.learner import Learner
from tiltrm.train.settings import TrainSettings
from tiltrm.train.trainer import Trainer

TASK = Sudoku(2)
TINY: dict[str, Any] = {
    "task": "sudoku4",
    "model": {
        "cells": 16, "vocabulary": 6, "width": 16, "heads": 1, "layers": 1, "prefix": 1,
        "inner_steps": 1, "cycles": 2,
    },
    "batch": 8, "steps": 20, "head_rate": 1e-2, "halt_max_steps": 3, "evaluate_steps": 2,
    "depth": {"start": [1, 2], "end": [2, 3]},
}  # fmt: skip


@cache
def puzzles(count: int = 40) -> Puzzles:
    """Different puzzles with one solution each: minimal ones with a few clues more."""
    chance, found = random.Random(0), dict[str, tuple[Tensor, Tensor]]()
    for seed in range(2 * count):
        question, answer = TASK.generate(seed)
        blanks = (question == BLANK).nonzero().flatten().tolist()
        for cell in chance.sample(blanks, chance.randrange(4)):
            question[cell] = answer[cell]
        found.setdefault(TASK.decode(question), (question, answer))
    questions, answers = zip(*list(found.values())[:count], strict=True)
    return Puzzles(TASK, torch.stack(questions), torch.stack(answers))


def settings(**changes: Any) -> TrainSettings:
    """The tiny run with some settings changed."""
    return build_record(TrainSettings, TINY | changes)


def trainer(folder: Path, **changes: Any) -> Trainer:
    """A tiny run on a CPU."""
    val, train = puzzles().take(slice(0, 8)), puzzles().take(slice(8, None))
    return Trainer(settings(**changes), train, val, folder, device="cpu")


def advance(run: Trainer, steps: int) -> list[float]:
    """So many steps without looking at the clock; returns their losses."""
    losses = []
    for _ in range(steps):
        losses.append(float(run.learner.step(run.clock.step, run.clock.progress)[0]))
        run.clock.step += 1
    return losses


def numbers(learner: Learner) -> dict[str, Tensor]:
    """Weights, averages and moments, by name."""
    found = {f"weight {n}": t for n, t in learner.model.state_dict().items()}
    found |= {f"average {i}": t for i, t in enumerate(learner.ema.average)}
    for which, optimiser in enumerate(learner.optimisers):
        for parameter, state in optimiser.state_dict()["state"].items():
            found |= {
                f"moment {which} {parameter} {k}": torch.as_tensor(v) for k, v in state.items()
            }
    return {name: tensor.detach().clone() for name, tensor in found.items()}


def write_csv(path: Path, table: Puzzles) -> Path:
    """The puzzles as the public files have them."""
    columns = [table.questions] + ([] if table.answers is None else [table.answers])
    lines = [",".join(map(TASK.decode, row)) for row in zip(*columns, strict=True)]
    path.write_text("\n".join(["question,answer" if len(columns) > 1 else "question", *lines, ""]))
    return path
