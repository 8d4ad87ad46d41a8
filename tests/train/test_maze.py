"""The maze's presets, made narrow: attention, rotary positions and 900 cells go through a step."""

from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from tiltrm.data import Puzzles
from tiltrm.records import build_record
from tiltrm.tasks import MAZE
from tiltrm.train.settings import TrainSettings, load_preset
from tiltrm.train.trainer import Trainer

from . import toys


@pytest.mark.parametrize("name", ["fast", "fresh", "paper"])
def test_a_narrow_maze_model_takes_steps_and_saves(tmp_path: Path, name: str) -> None:
    questions, answers = zip(*(MAZE.generate(seed) for seed in range(3)), strict=True)
    mazes = Puzzles(MAZE, torch.stack(questions), torch.stack(answers))
    values = asdict(load_preset("maze", name)) | {"batch": 2, "evaluate_steps": 1, "shuffles": 4}
    values["model"] |= {"width": 16, "heads": 1, "layers": 1}
    run = Trainer(build_record(TrainSettings, values), mazes, mazes, tmp_path, device="cpu")
    before = toys.numbers(run.learner)
    losses = toys.advance(run, 2)
    run.evaluate()
    run.save()
    after = toys.numbers(run.learner)
    still = [n for n in before if n.startswith("weight") and torch.equal(before[n], after[n])]
    assert still == ["weight first_answer", "weight first_latent"]  # all that learns has moved
    assert all(0 < loss < 10 for loss in losses)
    cells = 15 * 15 if name == "fast" else 900  # it begins with windows
    assert run.learner.carry.questions.shape == (2, cells)
    assert run.learner.carry.state.answer.shape == (2, 16 + cells, 16)
