"""Adaptive solving: one noise-free trajectory first, more of them only where that is not enough.

A puzzle leaves as soon as a judge calls it decided. Those that stay get a larger cloud. Noisy
trajectories start afresh with every stage unless told to go on: a fresh one is likelier to settle
in its next dozen steps than one that has failed so far. The noise-free one goes on all the time,
but not in a plan that is `turned`: there a fresh trajectory sees the puzzle under a symmetry of its
own, and every stage after the first is made of nothing else.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.explore.chunks import chunk_size, out_of_memory, too_small
from tiltrm.explore.cloud import ask
from tiltrm.explore.cohort import UNDECIDED, Cohort, Leaving, Taken, Walk
from tiltrm.explore.decide import Judge
from tiltrm.explore.guides import Score
from tiltrm.explore.plan import Adaptive, Stage
from tiltrm.explore.rows import one_thread_each
from tiltrm.explore.run import Progress, Watch, checked, device_of, make_kit
from tiltrm.model.base import RecursiveModel
from tiltrm.tasks.base import Symmetry

ENTER = 4096  # puzzles embedded at once

__all__ = ["UNDECIDED", "Adaptive", "Solution", "Stage", "gather", "solve"]


@dataclass(frozen=True)
class Solution:
    """The answers, how far to trust them, why each puzzle stopped, and what it cost."""

    answers: Tensor  # (puzzle, cell) uint8; all pad (0) where degenerate
    confidence: Tensor  # (puzzle,): probability that the answer is right, as its judge sees it
    cell_confidence: Tensor  # (puzzle, cell): the same of every cell
    terminal_entropy: Tensor  # (puzzle, cell): of the token marginals, in [0, 1] (eq. 20)
    halt_probability: Tensor  # (puzzle,): of the particle that answers
    evaluations: Tensor  # (puzzle,) int64: network calls spent
    outer_steps: Tensor  # (puzzle,) int64: steps of all its stages so far
    particles: Tensor  # (puzzle,) int64: size of its last cloud
    degenerate: Tensor  # (puzzle,) bool: no particle was left, so the answer is an abstention
    decided_by: tuple[str, ...]  # the judge's name, or "budget" where none decided


def solve(
    model: RecursiveModel, tokens: Tensor, judges: Mapping[str, Judge],
    plan: Adaptive | None = None, *, guide: Score | None = None, seed: int = 0,
    keys: Tensor | None = None, progress: Progress | None = None, watch: Watch | None = None,
    views: Sequence[Symmetry] = (),
) -> Solution:  # fmt: skip
    """Solve a batch of puzzles, each with as little computing as its judges allow.

    Judges are asked in order after every outer step; the first that decides is the reason given.
    A puzzle's result depends on neither the batch nor its order. A plan that is `turned` needs to
    know for every stage how its particles see a puzzle: `tiltrm.methods.views_of`.
    Proved by tests/explore/test_adaptive.py.
    """
    plan = plan or Adaptive()
    if len(views) != (len(plan.stages) if plan.turned else 0):
        raise SettingsError(
            f"expected views for every stage of a plan that is turned and none otherwise, got "
            f"{len(views)} for {len(plan.stages)} stages"
        )
    tokens, keys, _ = checked(model, tokens, keys, None)
    device = device_of(model, tokens)
    cpu = device.type == "cpu"
    left: list[Leaving] = []

    def note(taken: Taken) -> None:
        left.extend(taken.leaving)
        if watch is not None:
            watch(taken.info)
        if progress is not None and taken.leaving:
            progress(sum(len(part.places) for part in left), len(tokens))

    with torch.inference_mode(), one_thread_each() if cpu else nullcontext(1) as threads:
        kit = make_kit(model, plan.exploration(), guide, threads if cpu else None)
        walk = Walk(model, plan, judges, kit, views)
        for first in range(0, len(tokens), ENTER):
            part = slice(first, first + ENTER)
            own = None if keys is None else keys[part]
            question = ask(model, tokens[part].to(device), 1, seed=seed, keys=own)
            places = torch.arange(first, first + len(question.keys), device=device)
            rows = chunk_size(question.inputs, 1, threads)
            _depth_first(walk, Cohort(places, question, None), rows, note)
    return gather(left)


def _depth_first(walk: Walk, cohort: Cohort, rows: int, note: Callable[[Taken], None]) -> None:
    """Walk a cohort to its end, never stepping more than `rows` trajectories at once."""
    waiting = [cohort]
    while waiting:
        cohort = waiting.pop()
        particles = walk.stage(cohort).particles
        size = max(1, rows // particles)
        if len(cohort.places) > size:
            waiting.extend(reversed(cohort.pieces(size)))
            continue
        taken = _try(walk, cohort)
        if taken is None:  # out of memory: the same again in halves, and nothing larger later
            rows = len(cohort.places) * particles // 2
            waiting.append(cohort)
            continue
        if taken.rest is not None:
            waiting.append(taken.rest)
        note(taken)


def _try(walk: Walk, cohort: Cohort) -> Taken | None:
    """One step, or None where memory ran out and the cohort can be made smaller."""
    try:
        return walk.advance(cohort)
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        if len(cohort.places) == 1:
            raise too_small() from error
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return None


def gather(left: list[Leaving]) -> Solution:
    """One record of all that left, in the order of their places, which must be 0, 1, 2, ..."""
    order = torch.cat([part.places for part in left]).argsort()
    columns = {
        name: torch.cat([part.columns[name] for part in left])[order] for name in left[0].columns
    }
    reasons = [part.why for part in left for _ in range(len(part.places))]
    return Solution(**columns, decided_by=tuple(reasons[place] for place in order.tolist()))
