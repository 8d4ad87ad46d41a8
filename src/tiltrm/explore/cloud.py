"""The records of an exploration: the problem, the cloud that a step carries, its report."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from tiltrm.checks import require_whole
from tiltrm.explore.bank import Bank
from tiltrm.explore.batching import in_groups
from tiltrm.explore.keys import derive, puzzle_keys
from tiltrm.model.base import RecursiveModel, State, model_info
from tiltrm.tasks.base import Symmetry


class Problem(NamedTuple):
    """A batch of puzzles, embedded: the part of an exploration that does not change."""

    tokens: Tensor  # (puzzle, cell)
    inputs: Tensor  # x: (puzzle, 1, position, width), shared by the particles; or one for each
    keys: Tensor  # (puzzle,) int64, the root of a puzzle's randomness
    particles: Tensor  # (particle,) 0, 1, ..., S - 1
    views: Symmetry | None = None  # one symmetry per particle; None: all see the puzzle unchanged

    def part(self, puzzles: slice | Tensor, particles: slice = slice(None)) -> "Problem":
        """The same problem for some puzzles and some slots of their clouds."""
        inputs, views = self.inputs[puzzles], self.views
        if views is not None:
            inputs, views = inputs[:, particles], views.part(particles)
        return Problem(
            self.tokens[puzzles], inputs, self.keys[puzzles], self.particles[particles], views
        )

    @property
    def unchanged(self) -> Tensor:
        """Which particles see the puzzle as it is: (particle,) bool."""
        if self.views is None:
            return torch.ones_like(self.particles, dtype=torch.bool)
        return self.views.is_identity

    def with_views(
        self, model: RecursiveModel, views: Symmetry, seen: Tensor | None = None
    ) -> "Problem":
        """The same puzzles, each particle under its own symmetry.

        seen: (puzzle, particle, cell) the puzzles with the guesses of each particle, if any.
        """
        particles = len(self.particles)
        tokens = self.tokens[:, None].expand(-1, particles, -1) if seen is None else seen
        moved = views.apply(tokens.transpose(0, 1))  # (particle, puzzle, cell)
        inputs = model.embed(moved.transpose(0, 1).flatten(0, 1))
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
    bank: Bank | None = None  # the best answers so far, in searches that keep them
    votes: Tensor | None = None  # (puzzle, cell, vocabulary) of the stages so far, for guesses

    def part(self, puzzles: slice | Tensor) -> "Cloud":
        """The clouds of some puzzles."""
        state = State(self.state.answer[puzzles], self.state.latent[puzzles])
        bank = None if self.bank is None else self.bank.part(puzzles)
        votes = None if self.votes is None else self.votes[puzzles]
        return Cloud(state, self.log_weights[puzzles], self.score[puzzles], bank, votes)


@dataclass(frozen=True)
class Context:
    """What a guide or a stopping rule may look at besides the state it scores."""

    problem: Problem
    clock: Clock
    previous: State  # h_(n-1), particle by particle
    state: State  # h_n, before resampling
    model: RecursiveModel

    @property
    def answers(self) -> Tensor:
        """a_n = Dec(y_n) (section 3), symmetries undone: (puzzle, particle, cell) uint8."""
        return self._own_answers[0]

    @property
    def decodable(self) -> Tensor:
        """Whether `decode` gave finite logits in every cell: (puzzle, particle) bool.

        A logit of -inf rules out one token; a cell needs one that is not.
        """
        return self._own_answers[1]

    @cached_property
    def _own_answers(self) -> tuple[Tensor, Tensor]:
        return self._decoded(self.state)

    @cached_property
    def settled(self) -> Tensor:
        """Whether a particle's answer equals that of the step before: (puzzle, particle) bool."""
        return (self.answers == self._decoded(self.previous)[0]).all(-1)

    def halt_logit(self, model: RecursiveModel | None = None) -> Tensor:
        """The halt logits of the state, (puzzle, particle); computed once for the own model."""
        if model is None or model is self.model:
            return self._halt_logit
        return in_groups(model.halt_logit, self.state.answer)

    @cached_property
    def _halt_logit(self) -> Tensor:
        return in_groups(self.model.halt_logit, self.state.answer)

    def _decoded(self, state: State) -> tuple[Tensor, Tensor]:
        """Answers (puzzle, particle, cell), and whether their logits are finite."""
        found = in_groups(self._tokens, state.answer)
        tokens, finite, views = found[..., :-1], found[..., -1].bool(), self.problem.views
        tidy = model_info(self.model).tidy_answers
        if tidy is not None:
            tokens = tidy(tokens)
        if views is not None:
            tokens = views.undo(tokens.transpose(0, 1)).transpose(0, 1)
        return tokens, finite

    def _tokens(self, answer: Tensor) -> Tensor:
        """The most likely token of every cell, then 1 if the logits are finite: (row, cell + 1)."""
        logits = self.model.decode(answer)
        finite = torch.isfinite(logits.amax(-1)).all(-1, keepdim=True)
        return torch.cat((logits.argmax(-1).to(torch.uint8), finite.to(torch.uint8)), -1)


class StepInfo(NamedTuple):
    """The report of one step. All values are those before resampling."""

    score: Tensor  # (puzzle, particle)
    log_weights: Tensor  # (puzzle, particle), normalised
    ess: Tensor  # (puzzle,)
    log_evidence: Tensor  # (puzzle,): log of the mean potential under the last weights
    ancestors: Tensor  # (puzzle, particle): the parent of each slot of the next cloud
    context: Context


def make_problem(
    model: RecursiveModel, tokens: Tensor, particles: int, *, seed: int = 0,
    keys: Tensor | None = None,
) -> Problem:  # fmt: skip
    """Embed the puzzles and derive their random keys: from `keys`, or else from their tokens."""
    roots = puzzle_keys(tokens) if keys is None else keys.to(tokens.device)
    slots = torch.arange(particles, device=tokens.device)
    whole = require_whole("seed", seed)
    return Problem(tokens, model.embed(tokens)[:, None], derive(roots, whole), slots)


def initial_cloud(model: RecursiveModel, problem: Problem) -> Cloud:
    """h_0 for every particle, weights 1/S (Algorithm 1, line 9). Nothing is copied."""
    puzzles, particles = len(problem.keys), len(problem.particles)
    first = model.start(problem.inputs)
    shape = (puzzles, particles, *first.answer.shape[2:])
    state = State(first.answer.expand(shape), first.latent.expand(shape))
    zero = torch.zeros(puzzles, particles, device=problem.keys.device)
    return Cloud(state, torch.log_softmax(zero, -1), zero)


def take(value: Tensor, ancestors: Tensor) -> Tensor:
    """value[p, ancestors[p, s]] for every puzzle p and slot s."""
    puzzles, slots = value.shape[:2]
    first = torch.arange(0, puzzles * slots, slots, device=ancestors.device)[:, None]
    return value.flatten(0, 1)[first + ancestors]  # whole rows, which a GPU copies faster
