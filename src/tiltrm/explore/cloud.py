"""The records of an exploration: what is asked, what is carried, what is reported."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from tiltrm.explore.checks import require_whole
from tiltrm.explore.keys import derive, puzzle_keys
from tiltrm.explore.rows import in_groups
from tiltrm.model.base import RecursiveModel, State
from tiltrm.tasks.base import Symmetry


class Question(NamedTuple):
    """What stays fixed while a batch of puzzles is explored."""

    tokens: Tensor  # (puzzle, cell)
    inputs: Tensor  # x: (puzzle, 1, position, width), shared by the particles; or one for each
    keys: Tensor  # (puzzle,) int64, the root of a puzzle's randomness
    particles: Tensor  # (particle,) 0, 1, ..., S - 1
    views: Symmetry | None = None  # how each particle sees its puzzle; None: all as it is

    def part(self, puzzles: slice | Tensor, particles: slice = slice(None)) -> "Question":
        """The question for some puzzles, and some slots of their clouds."""
        inputs, views = self.inputs[puzzles], self.views
        if views is not None:
            inputs, views = inputs[:, particles], views.part(particles)
        return Question(
            self.tokens[puzzles], inputs, self.keys[puzzles], self.particles[particles], views
        )

    def seen(self, model: RecursiveModel, views: Symmetry) -> "Question":
        """The same puzzles, each particle looking at them in its own way."""
        particles = len(self.particles)
        turned = views.apply(self.tokens.expand(particles, -1, -1))  # (particle, puzzle, cell)
        inputs = model.embed(turned.transpose(0, 1).flatten(0, 1))
        return self._replace(inputs=inputs.unflatten(0, (-1, particles)), views=views)


class Clock(NamedTuple):
    """Where an exploration stands."""

    step: int  # n: 1, 2, ..., steps
    steps: int  # N


class Cloud(NamedTuple):
    """Weighted trajectories of every puzzle: what a step carries to the next."""

    state: State  # (puzzle, particle, position, width) each
    log_weights: Tensor  # (puzzle, particle), normalised; -inf throughout where all are dead
    score: Tensor  # (puzzle, particle), the last guide score; 0 before the first

    def part(self, puzzles: slice | Tensor) -> "Cloud":
        """The clouds of some puzzles."""
        state = State(self.state.answer[puzzles], self.state.latent[puzzles])
        return Cloud(state, self.log_weights[puzzles], self.score[puzzles])


@dataclass(frozen=True)
class Context:
    """What a guide may look at besides the state that it scores."""

    question: Question
    clock: Clock
    previous: State  # h_(n-1), particle by particle
    state: State  # h_n, before resampling
    decode: Callable[[Tensor], Tensor]

    @cached_property
    def answers(self) -> Tensor:
        """a_n = Dec(y_n) (section 3), turned back, decoded once and only if asked for."""
        return self._read(self.state)

    @cached_property
    def settled(self) -> Tensor:
        """Whether a particle's answer is that of one step before: (puzzle, particle) bool."""
        return (self.answers == self._read(self.previous)).all(-1)

    def _read(self, state: State) -> Tensor:
        found = decoded(self.decode, state.answer)  # (puzzle, particle, cell) uint8
        views = self.question.views
        return found if views is None else views.undo(found.transpose(0, 1)).transpose(0, 1)


class StepInfo(NamedTuple):
    """What one step reports. All of it is before resampling, so that it belongs together."""

    score: Tensor  # (puzzle, particle)
    log_weights: Tensor  # (puzzle, particle), normalised
    ess: Tensor  # (puzzle,)
    log_evidence: Tensor  # (puzzle,): log of the mean potential under the last weights
    ancestors: Tensor  # (puzzle, particle): whom each slot of the next cloud continues
    context: Context


def decoded(decode: Callable[[Tensor], Tensor], answer: Tensor) -> Tensor:
    """The most likely token of every cell: (puzzle, particle, position, width) -> uint8."""
    return in_groups(lambda rows: decode(rows).argmax(-1).to(torch.uint8), answer)


def ask(
    model: RecursiveModel, tokens: Tensor, particles: int, *, seed: int = 0,
    keys: Tensor | None = None,
) -> Question:  # fmt: skip
    """Embed the puzzles and key their randomness, by their own tokens unless keys are given."""
    roots = puzzle_keys(tokens) if keys is None else keys.to(tokens.device)
    slots = torch.arange(particles, device=tokens.device)
    whole = require_whole("seed", seed)
    return Question(tokens, model.embed(tokens)[:, None], derive(roots, whole), slots)


def begin(model: RecursiveModel, question: Question) -> Cloud:
    """h_0 for every particle, weights 1/S (Algorithm 1, line 9). Nothing is copied."""
    puzzles, particles = len(question.keys), len(question.particles)
    first = model.start(question.inputs)
    shape = (puzzles, particles, *first.answer.shape[2:])
    state = State(first.answer.expand(shape), first.latent.expand(shape))
    zero = torch.zeros(puzzles, particles, device=question.keys.device)
    return Cloud(state, torch.log_softmax(zero, -1), zero)


def take(value: Tensor, ancestors: Tensor) -> Tensor:
    """value[p, ancestors[p, s]] for every puzzle p and slot s."""
    puzzles, slots = value.shape[:2]
    first = torch.arange(0, puzzles * slots, slots, device=ancestors.device)[:, None]
    return value.flatten(0, 1)[first + ancestors]  # whole rows, which a GPU copies faster
