"""Three ways to label mirrored and turned mazes in training, compared on a small 8 x 8 model.

`python -m benchmarks.maze_labels rule|carried|none` trains a narrow attention model for about 15
minutes of one CPU core and prints its exact accuracy on unseen mazes. `rule`: a transformed maze
gets the label that the rule of the public labels gives it, as `Maze.symmetries` does. `carried`:
the label is transformed with the maze, so ties are broken another way each time. `none`: no
symmetries.
"""

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

import torch
from torch import Generator, Tensor

from tiltrm.data import Puzzles
from tiltrm.records import build_record
from tiltrm.tasks import Maze
from tiltrm.train.settings import TrainSettings
from tiltrm.train.trainer import Trainer

SIDE, LONG = 8, 14  # side of the mazes, fewest cells of a shortest path
TRAIN, VAL = 500, 200
SETTINGS = {
    "task": f"maze{SIDE}", "batch": 64, "steps": 1200, "augment": "fixed", "shuffles": 32,
    "rate": 0.02, "weight_decay": 0.05, "head_rate": 1e-3, "head_weight_decay": 0.1, "ema": 0.99,
    "label_smoothing": 0.1, "halt_weight": 0.1, "halt_max_steps": 8, "evaluate_every": 90.0,
    "evaluate_steps": 24, "schedule": {"shape": "cosine", "hold": 0.2, "final": 0.02},
    "depth": {"start": [1, 2], "end": [1, 3]},
    "model": {
        "cells": SIDE * SIDE, "vocabulary": 6, "width": 96, "layers": 2, "heads": 3, "prefix": 0,
        "token_mixing": False, "rotary": True, "inner_steps": 4, "cycles": 3,
    },
}  # fmt: skip


class Carried(Maze):
    """A maze whose symmetries transform the label with the walls."""

    def symmetries(
        self, tokens: Tensor, answers: Tensor, generator: Generator
    ) -> tuple[Tensor, Tensor]:
        symmetry = self.symmetry(tokens.shape[0], generator)
        return symmetry.apply(tokens), symmetry.apply(answers)


def mazes(task: Maze, seeds: range) -> Puzzles:
    """Generated mazes with their answers."""
    questions, answers = zip(*(task.generate(seed, LONG) for seed in seeds), strict=True)
    return Puzzles(task, torch.stack(questions), torch.stack(answers))


def main() -> None:
    """Train, and let the trainer print its evaluations."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("labels", choices=("rule", "carried", "none"))
    parser.add_argument("--steps", type=int, default=1200)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    task = Carried(SIDE) if arguments.labels == "carried" else Maze(SIDE)
    settings = replace(build_record(TrainSettings, SETTINGS), steps=arguments.steps)
    if arguments.labels == "none":
        settings = replace(settings, augment="none")
    train, val = mazes(task, range(TRAIN)), mazes(task, range(TRAIN, TRAIN + VAL))
    with tempfile.TemporaryDirectory() as folder:
        found = Trainer(settings, train, val, Path(folder), device="cpu").run()
    print(f"{arguments.labels}: {100 * found.final:.1f} % exact on {VAL} new mazes")


if __name__ == "__main__":
    main()
