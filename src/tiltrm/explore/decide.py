"""When is a puzzle decided? Judges look at a cloud after every outer step; they combine."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tiltrm.explore.cloud import Cloud, Context
from tiltrm.explore.rows import in_groups
from tiltrm.explore.select import Candidates, first_best, majority, same_answer
from tiltrm.model.base import RecursiveModel


class Verdict(NamedTuple):
    """What a judge says of every puzzle."""

    decided: Tensor  # (puzzle,) bool
    particle: Tensor  # (puzzle,) whose answer it is
    probability: Tensor  # (puzzle,) how sure that the answer is right


Judge = Callable[[Cloud, Context], Verdict]  # the cloud after weighing, before resampling


def by_halting(
    model: RecursiveModel, above: float, *, before: float = -math.inf, settled: bool = False
) -> Judge:
    """Decided once a living particle's halt logit exceeds `above`; the highest one answers.

    Only those are asked whose halt logit exceeded `before` one outer step earlier, too, and if
    `settled` those whose answer was the same there.
    """

    def judge(cloud: Cloud, context: Context) -> Verdict:
        alive = cloud.log_weights > -torch.inf
        if before > -math.inf:
            alive = alive & (in_groups(model.halt_logit, context.previous.answer) > before)
        if settled:
            alive = alive & context.settled
        logit = in_groups(model.halt_logit, context.state.answer)
        particle = first_best(logit, alive)
        best = logit.gather(1, particle[:, None])[:, 0]
        decided = (best > above) & alive.any(-1)
        # Not torch.sigmoid, whose last bit depends on an element's place in the batch.
        return Verdict(decided, particle, torch.exp(F.logsigmoid(best)))

    return judge


def by_agreement(share: float, particles: int) -> Judge:
    """Decided once `share` of the living particles give one answer, in a cloud of at least so many.

    Heads are counted, not weights: tilts add up, and one heavy particle is no agreement.
    """

    def judge(cloud: Cloud, context: Context) -> Verdict:
        puzzles, size = cloud.log_weights.shape
        if size < particles:
            nobody = torch.zeros(puzzles, dtype=torch.bool, device=cloud.log_weights.device)
            return Verdict(nobody, nobody.long(), nobody.float())
        alive = cloud.log_weights > -torch.inf
        particle = majority(Candidates(context.answers, cloud.log_weights, cloud.score))
        same = same_answer(context.answers).gather(1, particle[:, None, None].expand(-1, 1, size))
        agreed = (alive & same[:, 0]).sum(-1) / alive.sum(-1).clamp(min=1)
        return Verdict((agreed >= share) & alive.any(-1), particle, agreed)

    return judge


def by_rules(violations: Callable[[Tensor, Tensor], Tensor]) -> Judge:
    """Decided once a living particle's answer breaks no rule; where rules certify a solution."""

    def judge(cloud: Cloud, context: Context) -> Verdict:
        broken = violations(context.question.tokens[:, None], context.answers)
        solved = (broken == 0) & (cloud.log_weights > -torch.inf)
        return Verdict(solved.any(-1), first_best(cloud.score, solved), solved.any(-1).float())

    return judge
