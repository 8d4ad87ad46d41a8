"""The recorder keeps the cloud that each puzzle ended with, and the leading answers before it."""

import pytest
import torch

from tiltrm.explore import Exploration, explore
from tiltrm.explore.running import run_search
from tiltrm.model.trm import TRM
from tiltrm.solving import build_search
from tiltrm.solving.final_clouds import CloudRecorder
from tiltrm.tasks import Sudoku

SETTINGS = {"particles": 3, "outer_steps": 4, "noise": 0.5, "beta": 1.0}


def test_the_last_cloud_is_that_of_the_exploration(toy: TRM) -> None:
    puzzles = torch.stack([Sudoku(2).generate(seed)[0] for seed in range(5)])
    recorder = CloudRecorder()
    search = build_search(toy, method="guided", trigger="never", **SETTINGS)
    run_search(search, puzzles, seed=7, watch=recorder)
    own = explore(toy, puzzles, Exploration(trigger="never", **SETTINGS), seed=7)  # type: ignore[arg-type]
    for row, cloud in enumerate(recorder.clouds(puzzles, 7)):
        assert torch.equal(cloud.answers, own.particle_answers[row])
        assert torch.allclose(cloud.weights, own.log_weights[row].double().exp())
        assert sum(cloud.earlier.values()) == pytest.approx(3)


def test_a_puzzle_that_is_decided_early_keeps_its_cloud(stubborn: type) -> None:
    question, answer = Sudoku(2).generate(1)
    recorder = CloudRecorder()
    run_search(build_search(stubborn(answer)), question[None], watch=recorder)
    (cloud,) = recorder.clouds(question[None], 0)
    assert torch.equal(cloud.answers[0], answer)
    assert float(cloud.weights.sum()) == 1.0
    assert float(cloud.halting[0]) > 0.9
