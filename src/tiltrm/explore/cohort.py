"""Puzzles that walk through the stages of a plan together, one outer step at a time.

A cohort is a record and a step returns a new one, so whoever steps it may split it, put it aside
for another, or try again after running out of memory. `solve` walks its cohorts depth first; a
server takes turns between those of its clients.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tiltrm.explore.cloud import Clock, Cloud, Question, StepInfo, begin
from tiltrm.explore.decide import Judge, Verdict
from tiltrm.explore.plan import Adaptive, Stage
from tiltrm.explore.result import marginal_entropy, token_marginals
from tiltrm.explore.rows import in_groups
from tiltrm.explore.run import Kit
from tiltrm.explore.select import Candidates, same_answer, weighted_map
from tiltrm.explore.step import step
from tiltrm.explore.weights import degenerate
from tiltrm.model.base import RecursiveModel, State, evaluations_per_step
from tiltrm.tasks.base import Symmetry

UNDECIDED = "budget"  # the reason where no judge decided


class Cohort(NamedTuple):
    """Open puzzles with one history."""

    places: Tensor  # (puzzle,) the caller's numbers for them
    question: Question
    cloud: Cloud | None  # None before the first step
    stage: int = 0
    stage_step: int = 0  # steps taken in this stage
    steps: int = 0  # steps taken in all
    evaluations: int = 0  # spent on each puzzle

    def part(self, puzzles: slice | Tensor) -> "Cohort":
        """Some of its puzzles."""
        cloud = None if self.cloud is None else self.cloud.part(puzzles)
        return self._replace(
            places=self.places[puzzles], question=self.question.part(puzzles), cloud=cloud
        )

    def pieces(self, size: int) -> list["Cohort"]:
        """The same puzzles in cohorts of at most `size`."""
        return [self.part(slice(i, i + size)) for i in range(0, len(self.places), size)]


class Leaving(NamedTuple):
    """Results of puzzles that are done, a row each; see `Solution` for what they mean."""

    places: Tensor  # (row,)
    why: str  # the judge's name, or UNDECIDED
    columns: dict[str, Tensor]


class Taken(NamedTuple):
    """What one step of a cohort gives."""

    rest: Cohort | None  # None where all have left
    leaving: list[Leaving]
    info: StepInfo


class Walk(NamedTuple):
    """What every cohort of one run shares."""

    model: RecursiveModel
    plan: Adaptive
    judges: Mapping[str, Judge]  # asked in order; the first that decides is the reason
    kit: Kit
    views: Sequence[Symmetry] = ()  # of the particles of every stage; none: as the puzzle is

    def stage(self, cohort: Cohort) -> Stage:
        """The stage that the cohort's next step belongs to."""
        return self.plan.stages[cohort.stage]

    def advance(self, cohort: Cohort) -> Taken:
        """One outer step: grow the cloud where a stage begins, step it, let the decided go."""
        stage = self.stage(cohort)
        slots = torch.arange(stage.particles, device=cohort.places.device)
        question = cohort.question._replace(particles=slots)
        cloud = cohort.cloud
        if cohort.stage_step == 0 or cloud is None:
            if self.views:
                question = question.seen(self.model, self.views[cohort.stage])
            cloud = self._grown(question, stage, cloud)
        clock = Clock(cohort.steps + 1, self.plan.outer_steps)
        cloud, info = step(cloud, question, clock, self.model.decode, **self.kit._asdict())
        spent = cohort.evaluations + stage.particles * evaluations_per_step(self.model)
        after = cohort._replace(
            question=question, cloud=cloud, steps=clock.step, evaluations=spent,
            stage_step=cohort.stage_step + 1,
        )  # fmt: skip
        if after.stage_step == stage.outer_steps:
            after = after._replace(stage=after.stage + 1, stage_step=0)
        last, hope = clock.step == clock.steps, self.plan.fresh_after(cohort.stage)
        leaving, open_ = self._judge(after, info, last=last, hope=hope)
        if len(open_) == 0:
            return Taken(None, leaving, info)
        return Taken(after if len(open_) == len(after.places) else after.part(open_), leaving, info)

    def _grown(self, question: Question, stage: Stage, cloud: Cloud | None) -> Cloud:
        """The cloud a stage begins with: who goes on, then fresh particles, all equal in weight."""
        if cloud is None or self.plan.turned:
            return begin(self.model, question)
        kept = min(cloud.log_weights.shape[1] if stage.goes_on else 1, stage.particles)
        fresh = begin(self.model, question.part(slice(None), slice(kept, None)))
        state = State(
            torch.cat((cloud.state.answer[:, :kept], fresh.state.answer), 1),
            torch.cat((cloud.state.latent[:, :kept], fresh.state.latent), 1),
        )
        score = torch.cat((cloud.score[:, :kept], fresh.score), 1)
        even = torch.zeros_like(score)
        even[:, :kept].masked_fill_(cloud.log_weights[:, :kept] == -torch.inf, -torch.inf)
        return Cloud(state, torch.log_softmax(even, -1), score)

    def _judge(
        self, cohort: Cohort, info: StepInfo, *, last: bool, hope: bool
    ) -> tuple[list[Leaving], Tensor]:
        """Who leaves, with their results, and the places of those who stay.

        A dead cloud stays where there is hope: a later stage brings fresh particles.
        """
        cloud = Cloud(info.context.state, info.log_weights, info.score)
        open_ = torch.ones_like(cohort.places, dtype=torch.bool)
        leaving = []
        for name, judge in self.judges.items():
            verdict = judge(cloud, info.context)
            now = verdict.decided & open_
            if now.any():
                leaving.append(self._results(cohort, info, verdict, now.nonzero()[:, 0], name))
                open_ &= ~now
        out = open_ if last else degenerate(info.log_weights) & open_
        if not hope and out.any():
            verdict = self._vote(info)
            leaving.append(self._results(cohort, info, verdict, out.nonzero()[:, 0], UNDECIDED))
            open_ &= ~out
        return leaving, open_.nonzero()[:, 0]

    def _vote(self, info: StepInfo) -> Verdict:
        """The weighted MAP (Algorithm 1, line 20), which is as sure as the weight behind it."""
        answers = info.context.answers
        particle = weighted_map(Candidates(answers, info.log_weights, info.score))
        rows = particle[:, None, None].expand(-1, 1, answers.shape[1])
        same = same_answer(answers).gather(1, rows)[:, 0]
        held = (info.log_weights.exp() * same).sum(-1)
        return Verdict(torch.ones_like(particle, dtype=torch.bool), particle, held)

    def _results(
        self, cohort: Cohort, info: StepInfo, verdict: Verdict, rows: Tensor, why: str
    ) -> Leaving:
        """The columns of `Solution` for the puzzles at `rows`."""
        dead = degenerate(info.log_weights[rows])
        particle = verdict.particle[rows]
        context = info.context
        answer = context.state.answer[rows, particle][:, None]  # (row, 1, position, width)
        chosen = context.answers[rows, particle]
        sure = verdict.probability[rows].float()
        if why == UNDECIDED:
            weights = info.log_weights[rows].double().exp()
            marginal = token_marginals(context.answers[rows], weights, self.model.vocabulary)
        else:
            # The judge vouches for the answer; the rest is spread as the particle itself would.
            own = in_groups(lambda x: torch.softmax(self.model.decode(x), -1), answer)[:, 0]
            if context.question.views is not None:
                own = context.question.views.part(particle).undo_shares(own)
            marginal = own.double() * (1.0 - sure.double())[:, None, None]
            marginal.scatter_add_(
                -1, chosen.long()[..., None], sure.double()[:, None, None].expand_as(own[..., :1])
            )
        held = marginal.gather(-1, chosen.long()[..., None])[..., 0].float()
        halt = in_groups(self.model.halt_logit, answer)[:, 0]
        ones = torch.ones_like(particle)
        columns = {
            "answers": chosen.masked_fill(dead[:, None], 0),
            "confidence": sure.masked_fill(dead, 0.0),
            "cell_confidence": held.masked_fill(dead[:, None], 0.0),
            "terminal_entropy": marginal_entropy(marginal).masked_fill(dead[:, None], 1.0),
            "halt_probability": torch.exp(F.logsigmoid(halt)).masked_fill(dead, 0.0),
            "evaluations": cohort.evaluations * ones,
            "outer_steps": cohort.steps * ones,
            "particles": info.log_weights.shape[1] * ones,
            "degenerate": dead,
        }
        return Leaving(
            cohort.places[rows].cpu(), why, {name: part.cpu() for name, part in columns.items()}
        )
