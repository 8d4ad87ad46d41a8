"""The verdict on models that solve nothing: untrained, barely trained, of another task."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.diagnose.wells import Wells
from tests.train import toys
from torch import Tensor

from tiltrm.cli import main
from tiltrm.diagnose import NOTHING, diagnose
from tiltrm.diagnose.verdict import SignalMeans, decide
from tiltrm.explore import Exploration
from tiltrm.model import load, save
from tiltrm.model.trm import TRM, TRMConfig
from tiltrm.tasks import Sudoku

TASK = Sudoku(2)
SMALL = Exploration(particles=4, outer_steps=4)


def questions(count: int = 12) -> Tensor:
    return toys.puzzles(40).questions[:count]


def verdict(model: Any, task: Any = TASK, tokens: Tensor | None = None) -> str:
    tokens = questions() if tokens is None else tokens
    return diagnose(model, tokens, task=task, settings=SMALL, rooted=0).verdict


@pytest.mark.parametrize("bias", [-5.0, 3.0])
def test_random_weights(bias: float) -> None:
    """Whatever the halting head says: no answer keeps the rules."""
    for seed in range(3):
        torch.manual_seed(seed)
        config = TRMConfig(cells=16, vocabulary=6, width=32, layers=1, heads=2, inner_steps=2)
        model = TRM(config).eval().requires_grad_(False)
        torch.nn.init.normal_(model.halt_head.weight, std=0.2)
        torch.nn.init.constant_(model.halt_head.bias, bias)
        assert verdict(model) == NOTHING


@pytest.mark.usefixtures("one_thread")
def test_a_barely_trained_model(tmp_path: Path) -> None:
    run = toys.trainer(tmp_path / "run", steps=5)
    toys.advance(run, 5)
    run.learner.model.eval()
    assert verdict(run.learner.model) == NOTHING


class Other:
    """Keeps no rule of Sudoku: every answer is its question's clues, with 2 in all blanks."""

    def given(self, puzzle: Tensor) -> Tensor:
        return TASK.given(puzzle)

    def violations(self, puzzle: Tensor, answer: Tensor) -> Tensor:
        filled = torch.where(TASK.given(puzzle), puzzle, 2)
        return (answer != filled).sum(-1)


def test_a_model_of_another_task() -> None:
    """A model that keeps its own rules, asked about puzzles with others."""

    class Filler(Wells):
        """Solves the task `Other` and nothing else."""

        cells, vocabulary = 16, 6

        def embed(self, tokens: Tensor) -> Tensor:
            return torch.where(TASK.given(tokens), tokens, 2)[..., None].float()

        def refine(self, inputs: Tensor, state: Any) -> Tensor:
            return inputs.expand_as(state.latent) + 0.0

        def decode(self, answer: Tensor) -> Tensor:
            ids = torch.arange(self.vocabulary)
            return -10.0 * (answer - ids).abs()

    assert verdict(Filler(), Other()) != NOTHING
    assert verdict(Filler(), TASK) == NOTHING


def test_answers_that_fit_other_puzzles_as_well() -> None:
    """A share of valid answers is no sign where chance explains it."""
    fine = SignalMeans(moved=0.2, recovery=0.9, survival=1.0, leaning=0.9, valid=0.5)
    assert decide(fine) != NOTHING
    assert decide(fine._replace(borrowed=0.5)) == NOTHING
    assert decide(fine._replace(valid=0.0)) == NOTHING
    assert decide(fine._replace(valid=None, halted=0.0)) == NOTHING
    assert decide(fine._replace(valid=None, halted=0.1)) != NOTHING


def test_without_a_task_a_halting_head_that_never_halts_says_it() -> None:
    class Never(Wells):
        def halt_logit(self, answer: Tensor) -> Tensor:
            return super().halt_logit(answer) - 100.0

    tokens = torch.ones(4, 6, dtype=torch.long)
    assert verdict(Never(), None, tokens) == NOTHING
    assert verdict(Wells(), None, tokens) != NOTHING


def test_the_command_says_it_in_words_and_in_json(
    toy: TRM, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = save(toy, tmp_path / "toy", dtype=None)
    data = toys.write_csv(tmp_path / "puzzles.csv", toys.puzzles(40))
    command = ["diagnose", "--model", str(folder), "--data", str(data), "--puzzles", "6"]
    assert main(command) == 0
    assert capsys.readouterr().out.startswith(NOTHING)
    assert main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == NOTHING
    assert found["suggested"] == {"noise": None, "beta": None}
    assert load(folder).task == "sudoku4"
