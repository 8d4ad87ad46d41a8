"""Stopping rules: when is a puzzle decided? They look at the cloud after every outer step."""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tiltrm.explore.bank import BROKEN
from tiltrm.explore.cloud import Cloud, Context
from tiltrm.explore.select import Candidates, agrees_with, first_best, majority
from tiltrm.model.base import RecursiveModel


class Decision(NamedTuple):
    """The opinion of a stopping rule on every puzzle of a batch."""

    decided: Tensor  # (puzzle,) bool
    particle: Tensor  # (puzzle,) the particle that answers
    probability: Tensor  # (puzzle,) that the answer is right, as the rule sees it
    from_bank: bool = False  # the best answer that was visited takes the place of the particle's


StoppingRule = Callable[[Cloud, Context], Decision]  # the cloud after weighing, before resampling


def by_halting(model: RecursiveModel, above: float, *, settled: bool = False) -> StoppingRule:
    """Decided once the halt logit of a living particle exceeds `above`; the highest one answers.

    With `settled`, only particles count whose answer is that of one outer step before.
    """

    def rule(cloud: Cloud, context: Context) -> Decision:
        eligible = cloud.log_weights > -torch.inf
        if settled:
            eligible = eligible & context.settled
        logit = context.halt_logit(model)
        particle = first_best(logit, eligible)
        best = logit.gather(1, particle[:, None])[:, 0]
        decided = (best > above) & eligible.any(-1)
        # Not torch.sigmoid, whose last bit depends on an element's place in the batch.
        return Decision(decided, particle, torch.exp(F.logsigmoid(best)))

    return rule


def by_agreement(share: float, particles: int) -> StoppingRule:
    """Decided once `share` of the living particles agree, in a cloud of at least `particles`.

    Particles are counted, not weighed: tilts add up, and one heavy particle is no agreement.
    """

    def rule(cloud: Cloud, context: Context) -> Decision:
        puzzles, size = cloud.log_weights.shape
        if size < particles:
            none = torch.zeros(puzzles, dtype=torch.bool, device=cloud.log_weights.device)
            return Decision(none, none.long(), none.float())
        alive = cloud.log_weights > -torch.inf
        particle = majority(Candidates(context.answers, cloud.log_weights, cloud.score))
        same = agrees_with(context.answers, particle)
        agreed = (alive & same).sum(-1) / alive.sum(-1).clamp(min=1)
        return Decision((agreed >= share) & alive.any(-1), particle, agreed)

    return rule


def by_rules(is_solved: Callable[[Tensor, Tensor], Tensor]) -> StoppingRule:
    """Decided once the answer of a living particle is a solution: `is_solved(puzzle, answer)`.

    For tasks whose rules certify a solution: a maze path without fault may still be too long.
    """

    def rule(cloud: Cloud, context: Context) -> Decision:
        solved = is_solved(context.problem.tokens[:, None], context.answers)
        solved = solved & (cloud.log_weights > -torch.inf)
        return Decision(solved.any(-1), first_best(cloud.score, solved), solved.any(-1).float())

    return rule


def by_shortest(share: float, particles: int) -> StoppingRule:
    """Decided once `share` of the living particles, in a cloud of at least `particles`, have found
    a valid path as short as the shortest that was visited. They need not agree on its cells.

    For searches with a bank of paths (`tiltrm.explore.bank.by_path`). The best path that was
    visited answers, whether the puzzle is decided or not: of equally short ones the first of the
    unchanged puzzle, so that ties between paths are broken as the model breaks them.
    """

    def rule(cloud: Cloud, context: Context) -> Decision:
        assert cloud.bank is not None
        visited, alive = cloud.bank.visited, cloud.log_weights > -torch.inf
        best = cloud.bank.value.floor()[:, None]  # floor: without what the unchanged puzzle adds
        same = alive & (visited.floor() >= best) & (visited > -BROKEN)
        agreed = same.sum(-1) / alive.sum(-1).clamp(min=1)
        enough = (agreed >= share) & same.any(-1) & (visited.shape[1] >= particles)
        first = first_best(torch.zeros_like(visited), same)
        return Decision(enough, first, agreed, from_bank=True)

    return rule


def every(steps: int, rule: StoppingRule) -> StoppingRule:
    """The rule, applied at multiples of `steps` outer steps only."""

    def applied(cloud: Cloud, context: Context) -> Decision:
        decision = rule(cloud, context)
        if context.clock.step % steps:
            return decision._replace(decided=torch.zeros_like(decision.decided))
        return decision

    return applied
