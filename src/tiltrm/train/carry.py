"""The halting carry: every row of the batch is a puzzle at its own supervision step."""

from typing import NamedTuple

import torch
from torch import Generator, Tensor

from tiltrm.model.base import State


class Carry(NamedTuple):
    """What one training step hands to the next. The next step replaces the rows that `halted`."""

    questions: Tensor  # (row, cell)
    labels: Tensor  # (row, cell)
    state: State  # (row, position, width), detached
    steps: Tensor  # (row,) supervision steps taken
    halted: Tensor  # (row,) bool


class HaltingDraws(NamedTuple):
    """The random numbers of the halting rule, one of each per row."""

    chance: Tensor  # (row,) uniform in [0, 1): below the exploration rate, the minimum holds
    minimum: Tensor  # (row,) supervision steps that such a row must take


def empty(questions: Tensor, labels: Tensor, start: State) -> Carry:
    """A carry whose rows have all halted, so that `refill` replaces them.

    `start` is the initial state of one row: (1, position, width).
    """
    rows = questions.shape[0]
    steps = torch.zeros(rows, dtype=torch.int32, device=questions.device)
    state = State(*(half.expand(rows, -1, -1) for half in start))
    return Carry(questions, labels, state, steps, torch.ones_like(steps, dtype=torch.bool))


def refill(carry: Carry, questions: Tensor, labels: Tensor, start: State) -> Carry:
    """Halted rows take a new puzzle and the initial state (1, position, width); others go on."""
    row = carry.halted
    cells, states = row[:, None], row[:, None, None]
    return Carry(
        torch.where(cells, questions, carry.questions),
        torch.where(cells, labels, carry.labels),
        State(
            torch.where(states, start.answer, carry.state.answer),
            torch.where(states, start.latent, carry.state.latent),
        ),
        torch.where(row, 0, carry.steps),
        torch.zeros_like(row),
    )


def advance(
    carry: Carry, state: State, halt_logit: Tensor, draws: HaltingDraws, *, max_steps: int,
    exploration: float,
) -> Carry:  # fmt: skip
    """After a supervision step: halt where the logit is above 0 or the steps are used up.

    With probability `exploration` a row must first reach a minimum drawn from 2..max_steps.
    Proved by tests/train/test_carry.py::test_halting_rule_case_by_case.
    """
    steps = carry.steps + 1
    least = torch.where(draws.chance < exploration, draws.minimum, 0)
    halted = (steps >= max_steps) | ((halt_logit > 0) & (steps >= least))
    return carry._replace(
        state=State(state.answer.detach(), state.latent.detach()), steps=steps, halted=halted
    )


def draw(rows: int, max_steps: int, generator: Generator) -> HaltingDraws:
    """Draw for `advance`: uniforms, and minima uniform in 2..max_steps (1 if max_steps is 1)."""
    device = generator.device
    chance = torch.rand(rows, generator=generator, device=device)
    high = max(3, max_steps + 1)
    minimum = torch.randint(2, high, (rows,), generator=generator, device=device)
    return HaltingDraws(chance, minimum.clamp(max=max_steps).int())
