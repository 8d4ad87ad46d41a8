"""The results of an exploration, and how Algorithm 1 computes its own from the last cloud."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from tiltrm.explore.ancestry import Ancestry
from tiltrm.explore.batching import in_groups
from tiltrm.explore.choices import make_select
from tiltrm.explore.cloud import Cloud, StepInfo, take
from tiltrm.explore.select import Candidates
from tiltrm.explore.weights import degenerate
from tiltrm.model.base import RecursiveModel, evaluations_per_step
from tiltrm.settings import Exploration


@dataclass(frozen=True)
class Trace:
    """Every outer step as `StepInfo` reports it: after weighing, before resampling."""

    scores: Tensor  # (puzzle, step, particle)
    log_weights: Tensor  # (puzzle, step, particle), normalised
    ess: Tensor  # (puzzle, step)
    ancestors: Tensor  # (puzzle, step, particle): the parent of each slot of the next cloud
    answers: Tensor  # (puzzle, step, particle, cell) uint8


@dataclass(frozen=True)
class SearchResult:
    """The answers of a search, how far to trust them, why it stopped, and what it cost."""

    answers: Tensor  # (puzzle, cell) uint8; all pad (0) where degenerate
    confidence: Tensor  # (puzzle,): probability that the answer is right, as its rule sees it
    cell_confidence: Tensor  # (puzzle, cell): the same of every cell
    terminal_entropy: Tensor  # (puzzle, cell): of the token marginals, in [0, 1] (eq. 20)
    halt_probability: Tensor  # (puzzle,): of the particle that answers
    evaluations: Tensor  # (puzzle,) int64: network calls spent
    outer_steps: Tensor  # (puzzle,) int64: steps taken in all stages
    particles: Tensor  # (puzzle,) int64: size of its last cloud
    degenerate: Tensor  # (puzzle,) bool: no particle was left, so the answer is an abstention
    decided_by: tuple[
        str, ...
    ]  # the stopping rule's name, or "budget" or "time" where none decided


@dataclass(frozen=True, repr=False)
class Result:
    """The answers, how far to trust them, and what they cost. All tensors are on the CPU."""

    answers: Tensor  # (puzzle, cell) uint8; all pad (0) where degenerate
    confidence: Tensor  # (puzzle,): the cloud's weight on the answer
    cell_confidence: Tensor  # (puzzle, cell): the cloud's weight on the answer's token
    terminal_entropy: Tensor  # (puzzle, cell): H of eq. (20); C is the vocabulary, pad included
    path_entropy: Tensor | None  # (puzzle, cell): mean H along the path (eq. 21)
    halt_probability: Tensor  # (puzzle,): of the chosen particle
    score: Tensor  # (puzzle,): of the chosen particle; -inf where degenerate
    evaluations: Tensor  # (puzzle,) int64: network calls spent
    degenerate: Tensor  # (puzzle,) bool: no particle was left, so the answer is an abstention
    log_evidence: Tensor  # (puzzle,): log of the running product of mean potentials
    evidence_variance: Tensor  # (puzzle,): relative, of the evidence (tiltrm.explore.ancestry)
    ess: Tensor  # (puzzle,): after the last weighing, before any resampling
    log_weights: Tensor  # (puzzle, particle), of the final cloud
    scores: Tensor  # (puzzle, particle), of the final cloud
    particle_answers: Tensor  # (puzzle, particle, cell) uint8
    oracle: Tensor | None  # (puzzle,) bool: some living particle is right in every cell
    trace: Trace | None

    @property
    def contraction(self) -> Tensor | None:
        """C = mean path entropy - terminal entropy, per cell (eq. 22)."""
        return None if self.path_entropy is None else self.path_entropy - self.terminal_entropy

    @property
    def agreement(self) -> Tensor:
        """Share of the living particles that give the answer, whatever they weigh: (puzzle,)."""
        alive = self.log_weights > -torch.inf
        same = (self.particle_answers == self.answers[:, None]).all(-1)
        return (alive & same).sum(-1) / alive.sum(-1).clamp(min=1)

    def solution_columns(self, settings: Exploration) -> dict[str, Tensor]:
        """The fields that a SearchResult shares with it.

        The confidence is the vote: by weight (map) or by number (majority). Where there is no
        vote (a single particle, or the best score), it is the halt probability.
        """
        confidence = self.halt_probability
        if settings.particles > 1 and settings.select == "map":
            confidence = self.confidence
        elif settings.particles > 1 and settings.select == "majority":
            confidence = self.agreement
        names = ("answers", "cell_confidence", "terminal_entropy", "halt_probability", "degenerate")
        return {"confidence": confidence} | {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        puzzles, cells = self.answers.shape
        return (
            f"Result({puzzles} puzzles x {cells} cells, {self.log_weights.shape[1]} particles, "
            f"mean confidence {float(self.confidence.mean()):.3f}, "
            f"{float(self.evaluations.double().mean()):,.0f} evaluations a puzzle)"
        )


Record = TypeVar("Record", Result, Trace)


def token_marginals(answers: Tensor, weights: Tensor, vocabulary: int) -> Tensor:
    """p(cell = token) under the cloud (section 5.3): (puzzle, cell, vocabulary).

    answers: (puzzle, particle, cell); weights, not their logarithms: (puzzle, particle).
    """
    tokens = answers.long().transpose(1, 2)  # (puzzle, cell, particle)
    spread = weights[:, None].expand(tokens.shape)
    empty = weights.new_zeros(*tokens.shape[:2], vocabulary)
    return empty.scatter_add_(-1, tokens, spread)


def marginal_entropy(marginal: Tensor) -> Tensor:
    """Shannon entropy over log C, in [0, 1] (eq. 20): (..., token) -> (...) float32."""
    entropy: Tensor = torch.special.entr(marginal).sum(-1)
    return (entropy / math.log(max(marginal.shape[-1], 2))).clamp(0.0, 1.0).float()


def token_entropy(answers: Tensor, log_weights: Tensor, vocabulary: int) -> Tensor:
    """Entropy of the cloud's token marginals: (puzzle, cell); 1 for a dead cloud."""
    marginal = token_marginals(answers, log_weights.double().exp(), vocabulary)
    return torch.where(degenerate(log_weights)[:, None], 1.0, marginal_entropy(marginal))


def beliefs(info: StepInfo, vocabulary: int, row: int = 0) -> Tensor:
    """Token probabilities of the puzzle at `row`: (cell, vocabulary).

    Several particles vote by weight (section 5.3); a single one gives its own probabilities.
    Proved by tests/cli/test_watch.py.
    """
    context, weights = info.context, info.log_weights[row : row + 1].double().exp()
    if weights.shape[1] > 1:
        return token_marginals(context.answers[row : row + 1], weights, vocabulary)[0]
    logits = in_groups(context.model.decode, context.state.answer[row : row + 1])[0, 0]
    return torch.softmax(logits, -1).nan_to_num(0.0).double()


class Recorder:
    """Collects during the steps what the result needs besides the final cloud."""

    def __init__(
        self, vocabulary: int, entropy_every: int, trace: bool, *, always_resampled: bool = False
    ) -> None:
        self.vocabulary = vocabulary
        self.entropy_every = entropy_every
        self.entropy: Tensor | float = 0.0  # a running sum, the same in any batch
        self.terms = 0
        self.steps: list[tuple[Tensor, ...]] | None = [] if trace else None
        self.log_evidence: Tensor | None = None
        self.ancestry = Ancestry(always=always_resampled)

    def add(self, cloud: Cloud, info: StepInfo) -> None:
        """Note one outer step; answers are decoded only if something here needs them."""
        previous = self.log_evidence
        self.log_evidence = info.log_evidence if previous is None else previous + info.log_evidence
        self.ancestry.add(cloud, info)
        if self.entropy_every and info.context.clock.step % self.entropy_every == 0:
            answers = take(info.context.answers, info.ancestors)
            term = token_entropy(answers, cloud.log_weights, self.vocabulary)
            self.entropy, self.terms = self.entropy + term, self.terms + 1
        if self.steps is not None:
            kept = (info.score, info.log_weights, info.ess, info.ancestors, info.context.answers)
            self.steps.append(kept)

    def path_entropy(self) -> Tensor | None:
        """Mean over the noted steps (eq. 21), or None where none was noted."""
        return (self.entropy / self.terms).cpu() if isinstance(self.entropy, Tensor) else None

    def trace(self) -> Trace | None:
        """All steps, (puzzle, step, ...), or None where no trace was asked for."""
        if self.steps is None:
            return None
        return Trace(*(torch.stack(part, dim=1).cpu() for part in zip(*self.steps, strict=True)))


def halt_probability(logit: Tensor) -> Tensor:
    """sigmoid(logit), 0 for NaN; not torch.sigmoid, whose last bit depends on the place."""
    return F.logsigmoid(logit).exp().nan_to_num(0.0)


def conclude(
    model: RecursiveModel, settings: Exploration, cloud: Cloud, last: StepInfo, record: Recorder,
    labels: Tensor | None = None,
) -> Result:  # fmt: skip
    """Line 20: the result of a cloud after its last step, which `last` reports."""
    final = Candidates(take(last.context.answers, last.ancestors), cloud.log_weights, cloud.score)
    dead = degenerate(final.log_weights)
    pick = make_select(settings, labels)(final)[:, None]
    answers, score = take(final.answers, pick)[:, 0], take(final.score, pick)[:, 0]
    logit = take(take(last.context.halt_logit(), last.ancestors), pick)[:, 0]
    if cloud.bank is not None:
        score, answers, logit, _ = cloud.bank
        dead = score == -torch.inf
    answers = answers.masked_fill(dead[:, None], 0)
    weights = final.log_weights.double().exp()[..., None]  # (puzzle, particle, 1)
    agree = final.answers == answers[:, None]  # (puzzle, particle, cell)
    halting = halt_probability(logit)
    right = None
    if labels is not None:
        right = ((final.answers == labels[:, None]).all(-1) & final.alive).any(-1).cpu()
    spent = settings.particles * last.context.clock.step * evaluations_per_step(model)
    assert record.log_evidence is not None
    return Result(
        answers=answers.cpu(),
        confidence=(weights * agree.all(-1, keepdim=True)).sum((1, 2)).float().clamp(0, 1).cpu(),
        cell_confidence=(weights * agree).sum(1).float().clamp(0, 1).cpu(),
        terminal_entropy=token_entropy(final.answers, final.log_weights, record.vocabulary).cpu(),
        path_entropy=record.path_entropy(),
        halt_probability=torch.where(dead, 0.0, halting).cpu(),
        score=torch.where(dead, -torch.inf, score).cpu(),
        evaluations=torch.full((len(answers),), spent),
        degenerate=dead.cpu(),
        log_evidence=record.log_evidence.cpu(),
        evidence_variance=record.ancestry.relative_variance().cpu(),
        ess=last.ess.cpu(),
        log_weights=final.log_weights.cpu(),
        scores=final.score.cpu(),
        particle_answers=final.answers.cpu(),
        oracle=right,
        trace=record.trace(),
    )


def join(parts: Sequence[Result]) -> Result:
    """One result for the puzzles of several, in their order; always of new tensors."""
    return _joined(Result, parts)


def _joined(kind: type[Record], parts: Sequence[Record]) -> Record:
    """Field by field: tensors end to end, records likewise, None stays None."""

    def column(values: list[Any]) -> Any:
        if isinstance(values[0], Trace):
            return _joined(Trace, values)
        return None if values[0] is None else torch.cat(values)

    names = [field.name for field in fields(kind)]
    return kind(**{name: column([getattr(part, name) for part in parts]) for name in names})
