"""Clouds to fit a guide on: states of a model at some outer steps, and how each particle ended."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from tiltrm.data import Puzzles
from tiltrm.explore.bank import path_costs
from tiltrm.explore.batches import Batch
from tiltrm.explore.batching import single_threaded
from tiltrm.explore.cloud import make_problem
from tiltrm.explore.inputs import device_of
from tiltrm.explore.search import fixed_search
from tiltrm.model.base import RecursiveModel
from tiltrm.settings import Exploration
from tiltrm.tasks.base import Task, exactly_right
from tiltrm.tasks.published import require_rules

KEPT = {"cuda": 1 << 32, "cpu": 1 << 27}  # numbers of the states that are kept at once
MOST_PUZZLES = 64  # of a chunk

# (puzzles (puzzle, cell), last answers (puzzle, particle, cell)) -> costs (puzzle, particle)
Judge = Callable[[Tensor, Tensor], Tensor]


class CloudStates(NamedTuple):
    """States of a chunk of clouds at some outer steps; a row is one cloud at one step."""

    state: Tensor  # (row, particle, position, 2 width): y and z side by side
    step: Tensor  # (row,) the outer step
    cost: Tensor  # (row, particle): of the particle's last answer; 0 where it is right
    alive: Tensor  # (row, particle) bool: whether state and last answer are finite


@dataclass(frozen=True)
class Sampling:
    """How clouds are made: unguided, never resampled."""

    particles: int
    outer_steps: int
    noises: tuple[float, ...]  # taken in turn
    kept_steps: int = 4  # steps of a cloud whose states are kept
    seed: int = 0

    def exploration(self, number: int) -> Exploration:
        """The settings of chunk `number`."""
        return Exploration(
            particles=self.particles, outer_steps=self.outer_steps, beta=0.0, trigger="never",
            noise=self.noises[number % len(self.noises)], potential="terminal", entropy_every=0,
            on_degenerate="abstain",
        )  # fmt: skip

    def steps(self, number: int) -> list[int]:
        """The steps of chunk `number` that are kept: one at random of each equal part."""
        chance = torch.Generator().manual_seed((self.seed * 1_000_003 + number) % (1 << 62))
        parts = min(self.kept_steps, self.outer_steps)
        edges = [round(part * self.outer_steps / parts) for part in range(parts + 1)]
        return [
            int(torch.randint(low + 1, high + 1, (), generator=chance))
            for low, high in pairwise(edges)
        ]

    def chunk(self, positions: int, width: int, device: torch.device) -> int:
        """Puzzles whose kept states fit."""
        each = 2 * positions * width * self.particles * min(self.kept_steps, self.outer_steps)
        return max(1, min(MOST_PUZZLES, KEPT.get(device.type, KEPT["cpu"]) // each))


def label_costs(labels: Tensor) -> Judge:
    """0 where every labelled cell is right, else infinite; labels (puzzle, cell)."""

    def costs(_: Tensor, answers: Tensor) -> Tensor:
        right = exactly_right(answers, labels.to(answers.device)[:, None])
        return torch.where(right, 0.0, torch.inf)

    return costs


def solved_costs(task: Task) -> Judge:
    """0 where the rules of the task certify the answer, else infinite."""

    def costs(puzzles: Tensor, answers: Tensor) -> Tensor:
        return torch.where(task.is_solved(puzzles[:, None], answers), 0.0, torch.inf)

    return costs


def rule_costs(task: Task) -> Judge:
    """Broken rules; for a task with paths also how much longer one is (`path_costs`)."""
    length: Callable[[Tensor, Tensor], Tensor] | None = getattr(task, "path_length", None)

    def costs(puzzles: Tensor, answers: Tensor) -> Tensor:
        broken = task.violations(puzzles[:, None], answers)
        if length is None:
            return broken.float()
        return path_costs(broken, length(puzzles[:, None], answers))

    return costs


def judge_of(puzzles: Puzzles, target: str) -> Judge:
    """The costs that a target names: "rules", or "right" by labels where there are any."""
    if target == "rules" or puzzles.answers is None:
        require_rules(puzzles.task, "fitting a guide without answers")
    if target == "rules":
        return rule_costs(puzzles.task)
    return solved_costs(puzzles.task) if puzzles.answers is None else label_costs(puzzles.answers)


@torch.no_grad()
def record_states(
    model: RecursiveModel, tokens: Tensor, judge: Judge, sampling: Sampling, number: int
) -> CloudStates:
    """Run the clouds of one chunk of puzzles (puzzle, cell); they end before anything is judged.

    Noise is keyed by the puzzle, the seed and the number of the chunk.
    """
    device = device_of(model, tokens)
    tokens, wanted = tokens.to(device), sampling.steps(number)
    search = fixed_search(model, sampling.exploration(number), readout=False)
    problem = make_problem(
        model, tokens, sampling.particles, seed=sampling.seed + (number << 20)
    )  # not hashed, so that a chunk can be made again
    kept: list[Tensor] = []
    alive = torch.ones(len(tokens), sampling.particles, dtype=torch.bool, device=device)
    with single_threaded(device):
        for result in search.run(Batch(torch.arange(len(tokens), device=device), problem)):
            context = result.info.context
            if context.clock.step in wanted:
                kept.append(torch.cat((context.state.answer, context.state.latent), -1))
        alive &= context.decodable
        cost = judge(tokens, context.answers)
    alive &= torch.stack([torch.isfinite(each).all(-1).all(-1) for each in kept]).all(0)
    steps = torch.tensor(wanted, device=device).repeat_interleave(len(tokens))
    return CloudStates(
        torch.cat(kept), steps, cost.repeat(len(wanted), 1), alive.repeat(len(wanted), 1)
    )


def soft_targets(cost: Tensor) -> Tensor:
    """exp(-cost): 1 where a particle ended right, 0 where it is infinitely far off."""
    return torch.exp(-cost)


def chunks(puzzles: int, size: int, seed: int) -> Sequence[Tensor]:
    """The places of all puzzles in a random order, cut into chunks."""
    order = torch.randperm(puzzles, generator=torch.Generator().manual_seed(seed))
    return list(order.split(size))
