"""The results of puzzles that a search has finished, as columns with a row for each of them."""

from typing import NamedTuple

import torch
from torch import Tensor

from tiltrm.explore.bank import Bank
from tiltrm.explore.batching import in_groups
from tiltrm.explore.cloud import StepInfo
from tiltrm.explore.result import halt_probability, marginal_entropy, token_marginals
from tiltrm.explore.select import Candidates, agrees_with, weighted_map
from tiltrm.explore.stopping import Decision
from tiltrm.explore.weights import degenerate
from tiltrm.model.base import RecursiveModel


def decided_columns(
    model: RecursiveModel, info: StepInfo, decision: Decision, rows: Tensor, bank: Bank | None
) -> dict[str, Tensor]:
    """Fields of SearchResult for the puzzles at `rows`, which a stopping rule has decided.

    Token marginals are the chosen particle's own, mixed with the answer by the probability that
    the rule gives it.
    """
    context, particle = info.context, decision.particle[rows]
    answer = context.state.answer[rows, particle][:, None]  # (row, 1, position, width)
    own = in_groups(lambda x: torch.softmax(model.decode(x), -1), answer)[:, 0]
    if context.problem.views is not None:
        own = context.problem.views.part(particle).undo_shares(own)
    given = _given(info, rows, particle)
    if decision.from_bank and bank is not None:
        given = _Given(bank.answers[rows], bank.halt_logit[rows])
    chosen = given.answers.long()[..., None]
    probability = decision.probability[rows].float()
    certain = probability.double()[:, None, None]
    marginal = own.double() * (1.0 - certain)
    marginal.scatter_add_(-1, chosen, certain.expand_as(own[..., :1]))
    return _columns(info, rows, given, probability, marginal)


def voted_columns(model: RecursiveModel, info: StepInfo, rows: Tensor) -> dict[str, Tensor]:
    """The same for puzzles that no rule decided: the weighted MAP (line 20) before resampling.

    Its confidence is the weight behind it, and token marginals are weighted votes.
    """
    answers = info.context.answers
    particle = weighted_map(Candidates(answers, info.log_weights, info.score))
    weight = (info.log_weights.exp() * agrees_with(answers, particle)).sum(-1)
    votes = info.log_weights[rows].double().exp()
    marginal = token_marginals(answers[rows], votes, model.vocabulary)
    given = _given(info, rows, particle[rows])
    return _columns(info, rows, given, weight[rows].float(), marginal)


def banked_columns(
    model: RecursiveModel, info: StepInfo, bank: Bank, rows: Tensor
) -> dict[str, Tensor]:
    """The same from the bank; its confidence is the halt probability at the time of the visit.

    Cells have the weighted share of the last cloud that agrees with them.
    """
    held = bank.part(rows)
    votes = info.log_weights[rows].double().exp()
    marginal = token_marginals(info.context.answers[rows], votes, model.vocabulary)
    share = marginal.gather(-1, held.answers.long()[..., None])[..., 0].float()
    halting, none = halt_probability(held.halt_logit), held.value == -torch.inf
    return {
        "answers": held.answers.masked_fill(none[:, None], 0),
        "confidence": halting.masked_fill(none, 0.0),
        "cell_confidence": share.masked_fill(none[:, None], 0.0),
        "terminal_entropy": marginal_entropy(marginal).masked_fill(none[:, None], 1.0),
        "halt_probability": halting.masked_fill(none, 0.0),
        "degenerate": none,
    }


class _Given(NamedTuple):
    """The answers of puzzles, and how sure the halting head was of them."""

    answers: Tensor  # (row, cell)
    halt_logit: Tensor  # (row,)


def _given(info: StepInfo, rows: Tensor, particle: Tensor) -> _Given:
    """The answers of one particle for each row, as they are now."""
    context = info.context
    return _Given(context.answers[rows, particle], context.halt_logit()[rows, particle])


def _columns(
    info: StepInfo, rows: Tensor, given: _Given, confidence: Tensor, marginal: Tensor
) -> dict[str, Tensor]:
    dead = degenerate(info.log_weights[rows])
    share = marginal.gather(-1, given.answers.long()[..., None])[..., 0].float()
    halting = halt_probability(given.halt_logit)
    return {
        "answers": given.answers.masked_fill(dead[:, None], 0),
        "confidence": confidence.masked_fill(dead, 0.0),
        "cell_confidence": share.masked_fill(dead[:, None], 0.0),
        "terminal_entropy": marginal_entropy(marginal).masked_fill(dead[:, None], 1.0),
        "halt_probability": halting.masked_fill(dead, 0.0),
        "degenerate": dead,
    }
