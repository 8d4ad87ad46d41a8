"""Models for evaluations whose answers can be worked out, and shards written by hand."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tiltrm.data import Puzzles
from tiltrm.evaluate import Job, Shard
from tiltrm.evaluate.options import complete
from tiltrm.evaluate.target import EvalTarget
from tiltrm.model.base import State
from tiltrm.tasks import Sudoku

TASK = Sudoku(2)


@dataclass
class Wells:
    """Knows the solutions of some 4x4 Sudokus; every cell is a number in a double well.

    A cell is answered rightly where its number is positive. Puzzle i has i % 3 cells that start
    just on the wrong side, and only noise can bring those over. The halting head sees the worst
    cell. The second channel carries ten times the right token, so that noise cannot blur it.
    """

    questions: Tensor  # (puzzle, cell)
    solutions: Tensor  # (puzzle, cell)
    task = "sudoku4"
    decide_above = 3.0
    cells, vocabulary, inner_steps, cycles = 16, 6, 2, 3

    def embed(self, tokens: Tensor) -> Tensor:
        which = (tokens[:, None] == self.questions).all(-1).int().argmax(-1)  # (puzzle,)
        hard = torch.arange(16) < (which % 3)[:, None]
        return torch.stack((torch.where(hard, -0.1, 0.5), 10.0 * self.solutions[which]), -1)

    def start(self, inputs: Tensor) -> State:
        return State(torch.zeros_like(inputs), inputs)

    def refine(self, inputs: Tensor, state: State) -> Tensor:
        number = torch.tanh(3.0 * state.latent[..., 0])
        return torch.stack((number, inputs[..., 1].expand_as(number)), -1)

    def answer(self, state: State) -> Tensor:
        return state.latent

    def decode(self, answer: Tensor) -> Tensor:
        right = (answer[..., 1] / 10).round().long().clamp(2, 5)
        token = torch.where(answer[..., 0] > 0, right, 2 + (right - 1) % 4)
        return torch.nn.functional.one_hot(token, self.vocabulary).float()

    def halt_logit(self, answer: Tensor) -> Tensor:
        return 6.0 * answer[..., 0].amin(-1)


@dataclass
class Countdown:
    """Passes the halting threshold after `wanted` outer steps; answers token 2 everywhere."""

    cells, vocabulary, inner_steps, cycles = 16, 6, 2, 3
    task = "sudoku4"
    decide_above = None

    def embed(self, tokens: Tensor) -> Tensor:
        return self.wanted(tokens).float()[..., None, None].expand(*tokens.shape, 1)

    def wanted(self, tokens: Tensor) -> Tensor:
        return 1 + tokens.long().sum(-1) % 11

    def start(self, inputs: Tensor) -> State:
        return State(0.5 - inputs, torch.zeros_like(inputs))

    def refine(self, inputs: Tensor, state: State) -> Tensor:
        return state.latent

    def answer(self, state: State) -> Tensor:
        return state.answer + 1.0

    def decode(self, answer: Tensor) -> Tensor:
        return torch.tensor([0.0, 0.0, 1.0, 0.0, 0.0, 0.0]).expand(*answer.shape[:-1], 6)

    def halt_logit(self, answer: Tensor) -> Tensor:
        return answer[..., 0, 0]


@dataclass
class Copying:
    """Answers with the question itself, so that it is equivariant under every symmetry."""

    cells, vocabulary, inner_steps, cycles = 16, 6, 2, 3
    task = "sudoku4"
    decide_above = None

    def embed(self, tokens: Tensor) -> Tensor:
        return tokens[..., None].float()

    def start(self, inputs: Tensor) -> State:
        return State(torch.zeros_like(inputs), torch.zeros_like(inputs))

    def refine(self, inputs: Tensor, state: State) -> Tensor:
        return inputs.expand_as(state.latent)

    def answer(self, state: State) -> Tensor:
        return state.latent

    def decode(self, answer: Tensor) -> Tensor:
        return torch.nn.functional.one_hot(answer[..., 0].round().long(), 6).float()

    def halt_logit(self, answer: Tensor) -> Tensor:
        return answer[..., 0].mean(-1) - 3.0


def sudokus(count: int) -> Puzzles:
    """Generated 4x4 puzzles, all different."""
    pairs = [TASK.generate(seed) for seed in range(count)]
    return Puzzles(TASK, torch.stack([q for q, _ in pairs]), torch.stack([a for _, a in pairs]))


def wells(puzzles: Puzzles) -> Wells:
    return Wells(puzzles.questions, puzzles.labels())


def a_job(method: str = "guided", **changes: Any) -> Job:
    """A job about nothing in particular; `settings` are completed."""
    settings = complete(method, changes.pop("settings", {}), "sudoku4")
    fields = {
        "kind": "solve", "model": "m", "weights": "w" * 16, "task": "sudoku4", "data": "d",
        "split": "Test", "checksum": "c", "limit": None, "method": method, "seed": 0, "fold": 0,
        "folds": 1,
    }  # fmt: skip
    return Job(**{**fields, **changes}, settings=tuple(settings.items()))


def a_target(puzzles: int, **changes: Any) -> EvalTarget:
    fields = {
        "model": "m", "weights": "w" * 16, "task": "sudoku4", "data": "d", "split": "Test",
        "checksum": "c", "puzzles": puzzles,
    }  # fmt: skip
    return EvalTarget(**{**fields, **changes})


def a_shard(job: Job, puzzles: list[int], exact: list[int], **columns: Any) -> Shard:
    """A shard whose exactness, and whatever else matters, is given by hand."""
    count = len(puzzles)
    usual: dict[str, Any] = {
        "puzzle": np.array(puzzles), "exact": np.array(exact, dtype=bool), "oracle": None,
        "shortest": None, "valid": np.array(exact, dtype=bool),
        "evaluations": np.full(count, 7), "exact_by_step": np.zeros((count, 0), dtype=bool),
        "oracle_by_step": np.zeros((count, 0), dtype=bool),
        "decided_by": np.array(["budget"] * count, dtype=object),
    }  # fmt: skip
    return Shard(job, {**usual, **columns}, {"seconds": 1.0})
