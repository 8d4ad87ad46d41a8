"""A linear-Gaussian 'network' behind the model Protocol, and the Kalman filter that is its truth.

One outer step is z' = a z + sigma xi_0 and y' = b y + c z' + sigma xi_1; the guide is the
log-likelihood of an observation of y'. With beta = 1 the tilted law is the filtering law.
"""

import math

import torch
from torch import Tensor

from tiltrm.explore import Context
from tiltrm.model.base import State

A, B, C = 0.9, 0.3, 0.7
START = (0.2, 1.0)  # y_0, z_0
SIGMA, NOISE = 0.6, 0.8
OBSERVED = (0.3, 1.4, -0.2, 0.9, 2.0, 0.4)


class LinearGaussian:
    """Scalar linear dynamics; a state's half is (puzzle, particle, 1, 1)."""

    cells, vocabulary, inner_steps, cycles = 1, 2, 1, 1

    def embed(self, tokens: Tensor) -> Tensor:
        return torch.zeros(*tokens.shape, 1)

    def start(self, inputs: Tensor) -> State:
        return State(torch.full_like(inputs, START[0]), torch.full_like(inputs, START[1]))

    def refine(self, inputs: Tensor, state: State) -> Tensor:
        return A * state.latent

    def answer(self, state: State) -> Tensor:
        return B * state.answer + C * state.latent

    def decode(self, answer: Tensor) -> Tensor:
        return torch.cat((torch.zeros_like(answer), answer), -1)

    def halt_logit(self, answer: Tensor) -> Tensor:
        return answer[..., 0, 0]


def likelihood(state: State, context: Context) -> Tensor:
    """log N(o_n; y_n, noise^2)."""
    error = (OBSERVED[context.clock.step - 1] - state.answer[..., 0, 0]) / NOISE
    return -0.5 * error.square() - math.log(NOISE * math.sqrt(2 * math.pi))


def kalman(*, answer_noise: bool) -> tuple[Tensor, float]:
    """Filtering mean (y, z) after the last observation, and the log-evidence of all."""
    move = torch.tensor([[B, C * A], [0.0, A]], dtype=torch.float64)
    spread = torch.tensor([[C * C + answer_noise, C], [C, 1.0]], dtype=torch.float64) * SIGMA**2
    mean = torch.tensor(START, dtype=torch.float64)
    cov = torch.zeros(2, 2, dtype=torch.float64)
    log_evidence = 0.0
    for observed in OBSERVED:
        mean, cov = move @ mean, move @ cov @ move.T + spread
        variance = cov[0, 0] + NOISE**2
        error = observed - mean[0]
        log_evidence += float(-0.5 * (error**2 / variance + torch.log(2 * math.pi * variance)))
        gain = cov[:, 0] / variance
        mean, cov = mean + gain * error, cov - torch.outer(gain, cov[0])
    return mean, log_evidence
