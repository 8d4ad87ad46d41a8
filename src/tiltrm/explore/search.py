"""Staged search: the one driver of the outer loop.

`StagedSearch.advance` takes a batch of puzzles one outer step further. Algorithm 1 is a search with
one stage and no stopping rule (`fixed_search`); adaptive solving has stages that grow and rules
that let a puzzle leave as soon as it is decided (`adaptive_search`). A batch is an immutable
record, so the caller may split it, put it aside, or try again after running out of memory:
`run_search` (running.py) goes depth first, a server takes turns between its clients' batches.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

import torch
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.explore.bank import VisitedValue, banked, by_guide_score
from tiltrm.explore.batches import Batch, Columns, Finished, OpenStep, StepResult
from tiltrm.explore.batching import require_memory
from tiltrm.explore.choices import BEST_SO_FAR, make_noise, make_potential, make_resample
from tiltrm.explore.cloud import Clock, Cloud, Problem, StepInfo, initial_cloud
from tiltrm.explore.columns import banked_columns, decided_columns, voted_columns
from tiltrm.explore.guesses import GUESSING, add_votes, fill_in
from tiltrm.explore.guides import Score, halting
from tiltrm.explore.keys import derive
from tiltrm.explore.plan import Adaptive, Stage
from tiltrm.explore.resample import Resample
from tiltrm.explore.result import Recorder, conclude
from tiltrm.explore.step import Propose, Tilt, drop_undecodable, in_blocks, step, trajectory_sampler
from tiltrm.explore.stopping import StoppingRule
from tiltrm.explore.weights import degenerate
from tiltrm.model.base import RecursiveModel, State, evaluations_per_step
from tiltrm.settings import Exploration
from tiltrm.tasks.base import Clues, Symmetry

UNDECIDED = "budget"  # `decided_by` of a puzzle that no rule decided
TIMED_OUT = "time"  # the same where the time limit came before the last step
NOT_DECIDED = (UNDECIDED, TIMED_OUT)

Progress = Callable[[int, int], None]  # (done, total)
Watch = Callable[[StepInfo], None]  # called after every outer step of every batch


class StepFunctions(NamedTuple):
    """The three interchangeable functions of an outer step."""

    propose: Propose
    weigh: Tilt
    resample: Resample


def step_functions(
    model: RecursiveModel, settings: Exploration, guide: Score | None = None
) -> StepFunctions:
    """The step that the settings describe; the guide is the halting head unless given."""
    propose = in_blocks(trajectory_sampler(model, make_noise(settings, model)))
    weigh = Tilt(
        guide or halting(model), settings.beta, make_potential(settings), settings.target_ess
    )
    return StepFunctions(propose, weigh, make_resample(settings))


Readout = Callable[[Cloud, StepInfo], Columns]  # the results of a cloud after its last step
StateConfidence = Callable[[Tensor, str, Columns], Tensor]  # puzzles, rule, results -> (row,)


@dataclass(frozen=True)
class StagedSearch:
    """A search through the stages of a plan; shared by all of its batches."""

    model: RecursiveModel
    plan: Adaptive
    functions: StepFunctions
    rules: Mapping[str, StoppingRule]  # asked in order; the first that decides gives the reason
    views: Sequence[Symmetry] = ()  # of the particles of every stage; (): puzzles unchanged
    clues: Clues | None = None  # that stages may guess; None: no stage guesses
    readout: Readout | None = None  # for puzzles that no rule decided; None: the weighted vote
    confidence: StateConfidence | None = None  # None: as the stopping rule sees it
    seconds: float = math.inf  # a puzzle that has taken so many gets no further step
    visited: VisitedValue | None = None  # of answers in the bank; None: the search keeps no bank

    def stage(self, batch: Batch) -> Stage:
        """The stage that the batch's next step belongs to."""
        return self.plan.stages[batch.stage]

    def run(self, batch: Batch) -> Iterator[StepResult]:
        """Every step of a batch, until all of its puzzles are done."""
        rest: Batch | None = batch
        while rest is not None:
            result = self.advance(rest)
            yield result
            rest = result.rest

    def advance(self, batch: Batch) -> StepResult:
        """One outer step: grow the cloud where a stage begins, step it, drop decided puzzles."""
        return self.finish(self.propose(self.open(batch)))

    def open(self, batch: Batch) -> OpenStep:
        """Begin an outer step: grow the cloud where a stage begins."""
        begun = perf_counter()
        stage = self.stage(batch)
        slots = torch.arange(stage.particles, device=batch.ids.device)
        problem = batch.problem._replace(particles=slots)
        cloud = batch.cloud
        if batch.stage_step == 0 or cloud is None:
            require_memory(problem.inputs, stage.particles)
            # Bank and votes outlive the stage.
            bank, votes = (None, None) if cloud is None else (cloud.bank, cloud.votes)
            if self.views:
                seen = self._guessed(batch, stage, votes)
                problem = problem.with_views(self.model, self.views[batch.stage], seen)
            cloud = self._grown(problem, stage, cloud)._replace(bank=bank, votes=votes)
        grown = batch._replace(problem=problem, cloud=cloud)
        return OpenStep(self._timed(grown, begun))

    def propose(self, opened: OpenStep, particles: int | None = None) -> OpenStep:
        """Propose the next so many particles, or all that are left (line 12 of Algorithm 1).

        The result of the step does not depend on how its particles are divided.
        Proved by tests/explore/test_adaptive.py::test_a_step_may_be_taken_in_parts.
        """
        begun = perf_counter()
        batch, first = opened.batch, opened.done
        assert batch.cloud is not None
        part = slice(first, None if particles is None else first + particles)
        state = State(*(half[:, part] for half in batch.cloud.state))
        new = self.functions.propose(
            state, batch.problem.part(slice(None), part), self._clock(batch)
        )
        return OpenStep(self._timed(batch, begun), (*opened.proposed, new))

    def finish(self, opened: OpenStep) -> StepResult:
        """Weigh and resample the proposed particles, and drop decided puzzles."""
        begun = perf_counter()
        batch, clock = opened.batch, self._clock(opened.batch)
        stage, functions = self.stage(batch), self.functions._asdict()
        assert batch.cloud is not None
        functions["propose"] = lambda *_: opened.state
        cloud, info = step(batch.cloud, batch.problem, clock, self.model, **functions)
        if self.rules or clock.step == clock.steps or self.seconds < math.inf:
            cloud, info = drop_undecodable(cloud, info)
        if self.visited is not None:
            weighed = Cloud(info.context.state, info.log_weights, info.score, batch.cloud.bank)
            cloud = cloud._replace(bank=banked(weighed, info.context, self.visited))
        ends = batch.stage_step + 1 == stage.outer_steps
        cloud = cloud._replace(votes=self._votes(batch, info) if ends else batch.cloud.votes)
        spent = batch.evaluations + stage.particles * evaluations_per_step(self.model)
        after = batch._replace(
            cloud=cloud, steps=clock.step, evaluations=spent, stage_step=batch.stage_step + 1
        )
        after = self._timed(after, begun)
        if ends:
            after = after._replace(stage=after.stage + 1, stage_step=0)
        late = after.seconds >= self.seconds
        if not (self.rules or late) and clock.step < clock.steps:  # nothing can end a puzzle here
            return StepResult(after, [], cloud, info)
        finished, left = self._finished(after, info, fresh=self.plan.fresh_after(batch.stage))
        rest = after if len(left) == len(after.ids) else after.part(left) if len(left) else None
        return StepResult(rest, finished, cloud, info)

    def _guessed(self, batch: Batch, stage: Stage, votes: Tensor | None) -> Tensor | None:
        """The puzzles as the particles of a stage that guesses find them."""
        if not stage.guesses or votes is None:
            return None
        assert self.clues is not None
        keys = derive(batch.problem.keys, GUESSING, batch.stage)
        return fill_in(
            batch.problem.tokens, votes, keys, stage.particles, stage.guesses, self.clues
        )

    def _votes(self, batch: Batch, info: StepInfo) -> Tensor | None:
        """The votes with those of a stage that ends, if a later one guesses."""
        assert batch.cloud is not None
        votes, alive = batch.cloud.votes, info.log_weights > -torch.inf
        if not self.plan.guesses_from(batch.stage + 1):
            return None
        assert self.clues is not None
        said = self.clues.in_answers(batch.problem.tokens, info.context.answers)
        return add_votes(votes, said, alive, self.model.vocabulary)

    def _clock(self, batch: Batch) -> Clock:
        return Clock(batch.steps + 1, self.plan.outer_steps)

    def _timed(self, batch: Batch, begun: float) -> Batch:
        """The batch with the time since `begun` added, shared by its puzzles.

        Without a time limit nothing is added, since a GPU must be waited for.
        """
        if self.seconds == math.inf:
            return batch
        if batch.ids.is_cuda:
            torch.cuda.synchronize(batch.ids.device)
        return batch._replace(seconds=batch.seconds + (perf_counter() - begun) / len(batch.ids))

    def _grown(self, problem: Problem, stage: Stage, cloud: Cloud | None) -> Cloud:
        """The first cloud of a stage: particles that continue, then fresh ones, equal weights.

        A dead particle stays dead.
        """
        if cloud is None or self.plan.symmetric_views:
            return initial_cloud(self.model, problem)
        kept = min(cloud.log_weights.shape[1] if stage.continues else 1, stage.particles)
        fresh = initial_cloud(self.model, problem.part(slice(None), slice(kept, None)))
        state = State(
            torch.cat((cloud.state.answer[:, :kept], fresh.state.answer), 1),
            torch.cat((cloud.state.latent[:, :kept], fresh.state.latent), 1),
        )
        score = torch.cat((cloud.score[:, :kept], fresh.score), 1)
        weights = torch.zeros_like(score)
        weights[:, :kept].masked_fill_(cloud.log_weights[:, :kept] == -torch.inf, -torch.inf)
        return Cloud(state, torch.log_softmax(weights, -1), score)

    def _finished(
        self, batch: Batch, info: StepInfo, *, fresh: bool
    ) -> tuple[list[Finished], Tensor]:
        """The puzzles that are done, with their results, and the rows of the others.

        A dead cloud ends a puzzle unless `fresh` particles come with a later stage. A late puzzle
        ends here, with the answer that it has.
        """
        assert batch.cloud is not None
        cloud = Cloud(info.context.state, info.log_weights, info.score, batch.cloud.bank)
        left = torch.ones_like(batch.ids, dtype=torch.bool)
        finished = []
        for name, rule in self.rules.items():
            decision = rule(cloud, info.context)
            now = decision.decided & left
            if now.any():
                rows = now.nonzero()[:, 0]
                columns = decided_columns(self.model, info, decision, rows, cloud.bank)
                finished.append(self._report(batch, rows, name, columns))
                left &= ~now
        last, late = batch.steps == self.plan.outer_steps, batch.seconds >= self.seconds
        out = left if last or late else degenerate(info.log_weights) & left
        if (late or not fresh) and out.any():
            rows = out.nonzero()[:, 0]
            reason = TIMED_OUT if late and not last else UNDECIDED
            finished.append(self._report(batch, rows, reason, self._vote(batch, info, rows)))
            left = left & ~out
        return finished, left.nonzero()[:, 0]

    def _vote(self, batch: Batch, info: StepInfo, rows: Tensor) -> Columns:
        """The results of undecided puzzles: by `readout`, the bank, or weighted MAP (line 20)."""
        assert batch.cloud is not None
        if self.readout is not None:
            return self.readout(batch.cloud, info)
        if batch.cloud.bank is not None:
            return banked_columns(self.model, info, batch.cloud.bank, rows)
        return voted_columns(self.model, info, rows)

    def _report(self, batch: Batch, rows: Tensor, decided_by: str, columns: Columns) -> Finished:
        """The results on the CPU, with what they cost."""
        assert batch.cloud is not None
        spent = {
            "evaluations": batch.evaluations, "outer_steps": batch.steps,
            "particles": batch.cloud.log_weights.shape[1],
        }  # fmt: skip
        counts = {name: torch.full((len(rows),), value) for name, value in spent.items()}
        held = {name: column.cpu() for name, column in columns.items()} | counts
        if self.confidence is not None and "confidence" in held:
            tokens = batch.problem.tokens[rows].cpu()
            held["confidence"] = self.confidence(tokens, decided_by, held)
        return Finished(batch.ids[rows].cpu(), decided_by, held)


def fixed_search(
    model: RecursiveModel, settings: Exploration, guide: Score | None = None, *,
    readout: bool = True,
) -> StagedSearch:  # fmt: skip
    """Algorithm 1: one cloud of one size that takes all of its steps.

    Without `readout`, the finished puzzles have no results; the caller takes them from the cloud.
    """
    plan = Adaptive((Stage(settings.particles, settings.outer_steps),))

    def select(cloud: Cloud, info: StepInfo) -> Columns:
        record = Recorder(model.vocabulary, settings.entropy_every, trace=False)
        record.add(cloud, info)
        return conclude(model, settings, cloud, info, record).solution_columns(settings)

    functions = step_functions(model, settings, guide)
    visited = by_guide_score(functions.weigh.potential)
    return StagedSearch(
        model, plan, functions, {}, readout=select if readout else nothing,
        visited=visited if settings.select == BEST_SO_FAR else None,
    )  # fmt: skip


def nothing(cloud: Cloud, info: StepInfo) -> Columns:
    """A readout for callers that make their own results from the cloud."""
    return {}


def adaptive_search(
    model: RecursiveModel, plan: Adaptive, rules: Mapping[str, StoppingRule],
    guide: Score | None = None, views: Sequence[Symmetry] = (),
    visited: VisitedValue | None = None, clues: Clues | None = None,
) -> StagedSearch:  # fmt: skip
    """Adaptive solving: the stages of a plan, left as soon as a rule decides.

    With `visited`, a puzzle that no rule decides gets the best of all answers that it visited.
    A plan with `symmetric_views` needs the views of every stage (`tiltrm.solving.plan_views`), and
    one that guesses the clues of its task (`tiltrm.solving.plan_clues`).
    """
    if clues is None and plan.guesses_from(0):
        raise SettingsError("expected clues for a plan that guesses, got none; give its task's")
    if len(views) != (len(plan.stages) if plan.symmetric_views else 0):
        raise SettingsError(
            "expected views for every stage of a plan with symmetric_views and none otherwise, "
            f"got {len(views)} for {len(plan.stages)} stages"
        )
    functions = step_functions(model, plan.exploration(), guide)
    return StagedSearch(model, plan, functions, rules, views, clues, visited=visited)
