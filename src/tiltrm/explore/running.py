"""Running a staged search to its end, as many puzzles at once as fit in memory."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from tiltrm.explore.bank import VisitedValue
from tiltrm.explore.batches import Batch, Finished, StepResult
from tiltrm.explore.batching import chunk_size, out_of_memory, single_threaded, too_small
from tiltrm.explore.cloud import make_problem
from tiltrm.explore.guides import Score
from tiltrm.explore.inputs import checked_inputs, device_of
from tiltrm.explore.plan import Adaptive
from tiltrm.explore.result import SearchResult
from tiltrm.explore.search import Progress, StagedSearch, Watch, adaptive_search
from tiltrm.explore.stopping import StoppingRule
from tiltrm.model.base import RecursiveModel
from tiltrm.tasks.base import Clues, Symmetry

EMBEDDED = 4096  # puzzles embedded at once


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
    visited: VisitedValue | None = None, clues: Clues | None = None,
    seconds: float = math.inf, seed: int = 0, keys: Tensor | None = None,
    progress: Progress | None = None, watch: Watch | None = None,
) -> SearchResult:  # fmt: skip
    """`run_search` of an `adaptive_search`, with at most `seconds` of computing a puzzle."""
    search = adaptive_search(model, plan or Adaptive(), rules, guide, views, visited, clues)
    search = replace(search, seconds=seconds)
    return run_search(search, tokens, seed=seed, keys=keys, progress=progress, watch=watch)
