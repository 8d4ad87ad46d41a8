"""A model whose behaviour can be worked out by hand, and a linear one whose norms are known."""

from dataclasses import dataclass

import torch
from torch import Tensor

from tiltrm.model.base import State

EASY, HARD = 1, 2  # a cell that starts well inside the right well, or just inside the wrong one


class Wells:
    """Every cell is a number in a double well; the answer is right where all are positive.

    Token 1 is right everywhere. A hard cell starts on the wrong side, and only noise can bring it
    over. The halting head sees the worst cell.
    """

    cells, vocabulary, inner_steps, cycles = 6, 3, 2, 3
    task = ""

    def embed(self, tokens: Tensor) -> Tensor:
        return torch.where(tokens == HARD, -0.1, 0.5)[..., None]

    def start(self, inputs: Tensor) -> State:
        return State(torch.zeros_like(inputs), inputs)

    def refine(self, inputs: Tensor, state: State) -> Tensor:
        return torch.tanh(3.0 * state.latent)

    def answer(self, state: State) -> Tensor:
        return state.latent

    def decode(self, answer: Tensor) -> Tensor:
        return torch.cat((torch.full_like(answer, -9.0), answer, -answer), -1)

    def halt_logit(self, answer: Tensor) -> Tensor:
        return 6.0 * answer[..., 0].amin(-1)


class AllOnes:
    """The two methods of a task that a diagnosis uses; 1 in every cell is the valid answer."""

    def given(self, puzzle: Tensor) -> Tensor:
        return torch.zeros_like(puzzle, dtype=torch.bool)

    def violations(self, puzzle: Tensor, answer: Tensor) -> Tensor:
        return (answer != EASY).sum(-1)


@dataclass
class Linear:
    """F(z) = A z on (position, 1): its Lipschitz constant is the largest singular value of A."""

    matrix: Tensor  # (position, position)
    inner_steps: int = 5
    vocabulary: int = 2
    cycles: int = 1

    @property
    def cells(self) -> int:
        return len(self.matrix)

    def embed(self, tokens: Tensor) -> Tensor:
        return torch.zeros(*tokens.shape, 1)

    def start(self, inputs: Tensor) -> State:
        return State(torch.zeros_like(inputs), torch.ones_like(inputs))

    def refine(self, inputs: Tensor, state: State) -> Tensor:
        return self.matrix @ state.latent

    def answer(self, state: State) -> Tensor:
        return state.latent

    def decode(self, answer: Tensor) -> Tensor:
        return torch.cat((-answer, answer), -1)

    def halt_logit(self, answer: Tensor) -> Tensor:
        return answer[..., 0, 0]
