"""Staged search: the one driver of the outer loop.

`StagedSearch.advance` takes a batch of puzzles one outer step further. Algorithm 1 is a search with
one stage and no stopping rule (`fixed_search`); adaptive solving has stages that grow and rules
that let a puzzle leave as soon as it is decided (`adaptive_search`). A batch is an immutable
record, so the caller may split it, put it aside, or try again after running out of memory:
`run_search` goes depth first, a server takes turns between the batches of its clients.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.explore.batching import chunk_size, in_groups, out_of_memory, single_threaded, too_small
from tiltrm.explore.choices import make_noise, make_potential, make_resample
from tiltrm.explore.cloud import Clock, Cloud, Problem, StepInfo, initial_cloud, make_problem
from tiltrm.explore.guides import Score, halting
from tiltrm.explore.inputs import checked_inputs, device_of
from tiltrm.explore.plan import Adaptive, Stage
from tiltrm.explore.resample import Resample
from tiltrm.explore.result import (
    Recorder,
    SearchResult,
    conclude,
    halt_probability,
    marginal_entropy,
    token_marginals,
)
from tiltrm.explore.select import Candidates, same_answer, weighted_map
from tiltrm.explore.step import Propose, Tilt, in_blocks, step, trajectory_sampler
from tiltrm.explore.stopping import Decision, StoppingRule
from tiltrm.explore.weights import degenerate
from tiltrm.model.base import RecursiveModel, State, evaluations_per_step
from tiltrm.settings import Exploration
from tiltrm.tasks.base import Symmetry

EMBEDDED = 4096  # puzzles embedded at once
UNDECIDED = "budget"  # `decided_by` of a puzzle that no rule decided

Progress = Callable[[int, int], None]  # (done, total)
Watch = Callable[[StepInfo], None]  # called after every outer step of every batch
Columns = dict[str, Tensor]  # the fields of SearchResult but `decided_by`


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
    weigh = Tilt(guide or halting(model), settings.beta, make_potential(settings))
    return StepFunctions(propose, weigh, make_resample(settings))


class Batch(NamedTuple):
    """Undecided puzzles that have taken the same steps."""

    ids: Tensor  # (puzzle,) the caller's numbers of the puzzles
    problem: Problem
    cloud: Cloud | None = None  # None before the first step
    stage: int = 0
    stage_step: int = 0  # steps taken in this stage
    steps: int = 0  # steps taken in all stages
    evaluations: int = 0  # spent on each puzzle

    def part(self, puzzles: slice | Tensor) -> "Batch":
        """Some of its puzzles."""
        cloud = None if self.cloud is None else self.cloud.part(puzzles)
        return self._replace(ids=self.ids[puzzles], problem=self.problem.part(puzzles), cloud=cloud)

    def split(self, size: int) -> list["Batch"]:
        """The same puzzles in batches of at most `size`."""
        return [self.part(slice(i, i + size)) for i in range(0, len(self.ids), size)]


class Finished(NamedTuple):
    """Results of puzzles that are done, a row each."""

    ids: Tensor  # (row,)
    decided_by: str  # the name of the stopping rule, or UNDECIDED
    columns: Columns


class StepResult(NamedTuple):
    """The outcome of one outer step of a batch."""

    rest: Batch | None  # None where all puzzles are done
    finished: list[Finished]
    cloud: Cloud  # after resampling, of all puzzles of the batch
    info: StepInfo


Readout = Callable[[Cloud, StepInfo], Columns]  # the results of a cloud after its last step


@dataclass(frozen=True)
class StagedSearch:
    """A search through the stages of a plan; shared by all of its batches."""

    model: RecursiveModel
    plan: Adaptive
    functions: StepFunctions
    rules: Mapping[str, StoppingRule]  # asked in order; the first that decides gives the reason
    views: Sequence[Symmetry] = ()  # of the particles of every stage; (): puzzles unchanged
    readout: Readout | None = None  # for puzzles that no rule decided; None: the weighted vote

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
        stage = self.stage(batch)
        slots = torch.arange(stage.particles, device=batch.ids.device)
        problem = batch.problem._replace(particles=slots)
        cloud = batch.cloud
        if batch.stage_step == 0 or cloud is None:
            if self.views:
                problem = problem.with_views(self.model, self.views[batch.stage])
            cloud = self._grown(problem, stage, cloud)
        clock = Clock(batch.steps + 1, self.plan.outer_steps)
        cloud, info = step(cloud, problem, clock, self.model, **self.functions._asdict())
        spent = batch.evaluations + stage.particles * evaluations_per_step(self.model)
        after = batch._replace(
            problem=problem, cloud=cloud, steps=clock.step, evaluations=spent,
            stage_step=batch.stage_step + 1,
        )  # fmt: skip
        if after.stage_step == stage.outer_steps:
            after = after._replace(stage=after.stage + 1, stage_step=0)
        finished, left = self._finished(after, info, fresh=self.plan.fresh_after(batch.stage))
        if len(left) == 0:
            rest = None
        else:
            rest = after if len(left) == len(after.ids) else after.part(left)
        return StepResult(rest, finished, cloud, info)

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

        A dead cloud ends a puzzle unless `fresh` particles come with a later stage. Without
        stopping rules every puzzle takes all steps.
        """
        cloud = Cloud(info.context.state, info.log_weights, info.score)
        left = torch.ones_like(batch.ids, dtype=torch.bool)
        finished = []
        for name, rule in self.rules.items():
            decision = rule(cloud, info.context)
            now = decision.decided & left
            if now.any():
                rows = now.nonzero()[:, 0]
                columns = self._columns(info, decision, rows, vouched=True)
                finished.append(self._report(batch, rows, name, columns))
                left &= ~now
        last = batch.steps == self.plan.outer_steps
        out = left if last else degenerate(info.log_weights) & left
        if last or (self.rules and not fresh and out.any()):
            rows = out.nonzero()[:, 0]
            if len(rows):
                finished.append(self._report(batch, rows, UNDECIDED, self._vote(batch, info, rows)))
            left = left & ~out
        return finished, left.nonzero()[:, 0]

    def _vote(self, batch: Batch, info: StepInfo, rows: Tensor) -> Columns:
        """The results of undecided puzzles: by `readout`, or by the weighted MAP (line 20)."""
        if self.readout is not None:
            assert batch.cloud is not None
            return self.readout(batch.cloud, info)
        answers = info.context.answers
        particle = weighted_map(Candidates(answers, info.log_weights, info.score))
        others = particle[:, None, None].expand(-1, 1, answers.shape[1])
        same = same_answer(answers).gather(1, others)[:, 0]
        weight = (info.log_weights.exp() * same).sum(-1)
        decision = Decision(torch.ones_like(particle, dtype=torch.bool), particle, weight)
        return self._columns(info, decision, rows, vouched=False)

    def _columns(
        self, info: StepInfo, decision: Decision, rows: Tensor, *, vouched: bool
    ) -> Columns:
        """The results of the puzzles at `rows`.

        Token marginals are the cloud's weighted votes. Where a rule vouches for the answer, they
        are the chosen particle's own, mixed with the answer by the rule's probability.
        """
        dead = degenerate(info.log_weights[rows])
        particle = decision.particle[rows]
        context = info.context
        chosen = context.answers[rows, particle]
        probability = decision.probability[rows].float()
        if vouched:
            answer = context.state.answer[rows, particle][:, None]  # (row, 1, position, width)
            own = in_groups(lambda x: torch.softmax(self.model.decode(x), -1), answer)[:, 0]
            if context.problem.views is not None:
                own = context.problem.views.part(particle).undo_shares(own)
            certain = probability.double()[:, None, None]
            marginal = own.double() * (1.0 - certain)
            marginal.scatter_add_(-1, chosen.long()[..., None], certain.expand_as(own[..., :1]))
        else:
            weights = info.log_weights[rows].double().exp()
            marginal = token_marginals(context.answers[rows], weights, self.model.vocabulary)
        share = marginal.gather(-1, chosen.long()[..., None])[..., 0].float()
        halting = halt_probability(context.halt_logit()[rows, particle])
        return {
            "answers": chosen.masked_fill(dead[:, None], 0),
            "confidence": probability.masked_fill(dead, 0.0),
            "cell_confidence": share.masked_fill(dead[:, None], 0.0),
            "terminal_entropy": marginal_entropy(marginal).masked_fill(dead[:, None], 1.0),
            "halt_probability": halting.masked_fill(dead, 0.0),
            "degenerate": dead,
        }

    def _report(self, batch: Batch, rows: Tensor, decided_by: str, columns: Columns) -> Finished:
        """The results on the CPU, with what they cost."""
        assert batch.cloud is not None
        spent = {
            "evaluations": batch.evaluations, "outer_steps": batch.steps,
            "particles": batch.cloud.log_weights.shape[1],
        }  # fmt: skip
        counts = {name: torch.full((len(rows),), value) for name, value in spent.items()}
        held = {name: column.cpu() for name, column in columns.items()}
        return Finished(batch.ids[rows].cpu(), decided_by, held | counts)


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
    return StagedSearch(model, plan, functions, {}, readout=select if readout else nothing)


def nothing(cloud: Cloud, info: StepInfo) -> Columns:
    """A readout for callers that make their own results from the cloud."""
    return {}


def adaptive_search(
    model: RecursiveModel, plan: Adaptive, rules: Mapping[str, StoppingRule],
    guide: Score | None = None, views: Sequence[Symmetry] = (),
) -> StagedSearch:  # fmt: skip
    """Adaptive solving: the stages of a plan, left as soon as a rule decides.

    A plan with `symmetric_views` needs the views of every stage (`tiltrm.solving.plan_views`).
    """
    if len(views) != (len(plan.stages) if plan.symmetric_views else 0):
        raise SettingsError(
            "expected views for every stage of a plan with symmetric_views and none otherwise, "
            f"got {len(views)} for {len(plan.stages)} stages"
        )
    return StagedSearch(model, plan, step_functions(model, plan.exploration(), guide), rules, views)


def run_search(
    search: StagedSearch, tokens: Tensor, *, seed: int = 0, keys: Tensor | None = None,
    progress: Progress | None = None, watch: Watch | None = None,
) -> SearchResult:  # fmt: skip
    """Search a batch of puzzles (puzzle, cell), as many at once as fit in memory.

    A puzzle's result depends on neither the batch nor its order. `progress` counts puzzles, or
    puzzles x outer steps where no rule can end one early.
    Proved by tests/explore/test_adaptive.py.
    """
    model = search.model
    tokens, keys, _ = checked_inputs(model, tokens, keys, None)
    device = device_of(model, tokens)
    finished: list[Finished] = []
    counted = _Count(search, len(tokens), progress)

    def note(result: StepResult) -> None:
        finished.extend(result.finished)
        if watch is not None:
            watch(result.info)
        counted.add(result)

    with torch.inference_mode(), single_threaded(device) as threads:
        for first in range(0, len(tokens), EMBEDDED):
            part = slice(first, first + EMBEDDED)
            own = None if keys is None else keys[part]
            problem = make_problem(model, tokens[part].to(device), 1, seed=seed, keys=own)
            ids = torch.arange(first, first + len(problem.keys), device=device)
            rows = chunk_size(problem.inputs, 1, threads)
            _depth_first(search, Batch(ids, problem), rows, note)
    return collect(finished)


class _Count:
    """Progress of a search."""

    def __init__(self, search: StagedSearch, puzzles: int, progress: Progress | None) -> None:
        self.progress, self.done = progress, 0
        self.by_step = not search.rules
        self.total = puzzles * (search.plan.outer_steps if self.by_step else 1)

    def add(self, result: StepResult) -> None:
        """Count one step."""
        leaving = sum(len(part.ids) for part in result.finished)
        before = self.done
        self.done += len(result.info.ess) if self.by_step else leaving
        if self.progress is not None and self.done > before:
            self.progress(self.done, self.total)


def _depth_first(
    search: StagedSearch, batch: Batch, rows: int, note: Callable[[StepResult], None]
) -> None:
    """Advance a batch to its end, never stepping more than `rows` trajectories at once."""
    waiting = [batch]
    while waiting:
        batch = waiting.pop()
        particles = search.stage(batch).particles
        size = max(1, rows // particles)
        if len(batch.ids) > size:
            waiting.extend(reversed(batch.split(size)))
            continue
        result = _try(search, batch)
        if result is None:  # out of memory: the same again in halves, and nothing larger later
            rows = len(batch.ids) * particles // 2
            waiting.append(batch)
            continue
        if result.rest is not None:
            waiting.append(result.rest)
        note(result)


def _try(search: StagedSearch, batch: Batch) -> StepResult | None:
    """One step, or None where memory ran out and the batch can be made smaller."""
    try:
        return search.advance(batch)
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        if len(batch.ids) == 1:
            raise too_small() from error
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return None


def collect(finished: list[Finished]) -> SearchResult:
    """One record of all results, in the order of their ids, which must be 0, 1, 2, ..."""
    order = torch.cat([part.ids for part in finished]).argsort()
    columns: dict[str, Any] = {
        name: torch.cat([part.columns[name] for part in finished])[order]
        for name in finished[0].columns
    }
    reasons = [part.decided_by for part in finished for _ in range(len(part.ids))]
    return SearchResult(**columns, decided_by=tuple(reasons[place] for place in order.tolist()))


def solve_adaptively(
    model: RecursiveModel, tokens: Tensor, rules: Mapping[str, StoppingRule],
    plan: Adaptive | None = None, *, guide: Score | None = None, views: Sequence[Symmetry] = (),
    seed: int = 0, keys: Tensor | None = None, progress: Progress | None = None,
    watch: Watch | None = None,
) -> SearchResult:  # fmt: skip
    """`run_search` of an `adaptive_search`."""
    search = adaptive_search(model, plan or Adaptive(), rules, guide, views)
    return run_search(search, tokens, seed=seed, keys=keys, progress=progress, watch=watch)
