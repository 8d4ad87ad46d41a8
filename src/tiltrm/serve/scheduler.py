"""Batches between two steps: which puzzles step together, and which batch is next.

Puzzles with the same model and settings share a `SharedSearch`, and their batches are joined
whenever they have taken the same steps. Half of the time goes to the request that was given least
so far, so that small ones are fast and new ones catch up, and half to the oldest batch, so that
none starves. A turn takes about `turn_seconds`: batches are cut to as many trajectories as fit, and
the step of a larger cloud is taken a few particles at a time, with other batches' turns between.
Proved by tests/serve/test_scheduler.py.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import torch

from tiltrm.explore.bank import Bank
from tiltrm.explore.batches import Batch, OpenStep
from tiltrm.explore.batching import chunk_size
from tiltrm.explore.cloud import Cloud
from tiltrm.explore.search import StagedSearch
from tiltrm.model.base import RecursiveModel, State, evaluations_per_step
from tiltrm.model.puzzle_rows import with_puzzle
from tiltrm.serve.frames import baseline_search
from tiltrm.solving import build_search, task_of
from tiltrm.tasks import Task

Rank = Callable[[int], Any]  # of the puzzle with this number; values must have an order
CHEAPEST, OLDEST, BOTH = "cheapest", "oldest", "both"  # kinds of turns
FIRST_ROWS = 4  # trajectories a thread in the first turn of a model, before any was timed
LONGEST_DEBT = 5.0  # seconds by which one kind of turn may be ahead of the other


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model that requests can name, and how much of it fits."""

    name: str
    model: RecursiveModel
    task: Task
    rows: int  # trajectories to step at once
    trajectory_bytes: int  # of one trajectory in a cloud, at most
    threads: int = 1  # that step it
    bundled: bool = False  # whether `tiltrm solve` knows it by its name
    source: str | None = None  # its path for commands of people on this machine


def load_model(
    name: str, model: RecursiveModel, task: Task, device: torch.device, threads: int,
    **origin: Any,
) -> LoadedModel:  # fmt: skip
    """Measure a model that is on this device; `threads` step it where that is a CPU.

    `origin` may have the fields `bundled` and `source` of LoadedModel.
    """
    with torch.inference_mode():
        inputs = model.embed(torch.ones(1, task.cells, dtype=torch.uint8, device=device))
    size = 3 * inputs[0].numel() * inputs.element_size()  # answer, latent, and the particle's view
    return LoadedModel(name, model, task, chunk_size(inputs, 1, threads), size, threads, **origin)


@dataclass(frozen=True, eq=False)
class SharedSearch:
    """The search of one loaded model with one combination of settings."""

    loaded: LoadedModel
    task: Task
    search: StagedSearch


@lru_cache(maxsize=64)
def shared_search(
    loaded: LoadedModel, task: str | None, settings: tuple[tuple[str, Any], ...]
) -> SharedSearch:
    """The search of these arguments of `build_search`, sorted by name; raises SettingsError.

    Equal arguments give the same object, so that their puzzles share batches.
    """
    own = task_of(loaded.model, task or loaded.task)
    return SharedSearch(loaded, own, build_search(loaded.model, own, **dict(settings)))


@lru_cache(maxsize=16)
def shared_baseline(loaded: LoadedModel, puzzle_id: int | None = None) -> SharedSearch:
    """The deterministic run that is shown beside others."""
    model = with_puzzle(loaded.model, puzzle_id)
    return SharedSearch(loaded, loaded.task, baseline_search(model))


@dataclass(frozen=True, eq=False)
class WaitingBatch:
    """A batch between two turns, and the search that advances it.

    `opened` is set where a turn ended inside a step; such a batch has one puzzle.
    """

    shared: SharedSearch
    batch: Batch
    opened: OpenStep | None = None

    def __len__(self) -> int:
        return len(self.batch.ids)

    @cached_property
    def numbers(self) -> list[int]:
        """Its puzzles; numbers are given in the order of arrival."""
        return [int(number) for number in self.batch.ids.tolist()]

    @cached_property
    def first(self) -> int:
        """Its lowest puzzle number."""
        return min(self.numbers)

    @property
    def position(self) -> tuple[int, int, int, int]:
        """Batches at the same position can be joined; one inside a step joins no other."""
        inside = 0 if self.opened is None else 1 + self.first
        return id(self.shared), self.batch.stage, self.batch.stage_step, inside

    @property
    def cost(self) -> int:
        """Evaluations spent on each puzzle, those of a step that has begun among them."""
        begun = 0 if self.opened is None else self.opened.done
        return self.batch.evaluations + begun * evaluations_per_step(self.shared.loaded.model)

    @property
    def particles(self) -> int:
        """Trajectories of each puzzle in the next step."""
        return self.shared.search.stage(self.batch).particles

    @property
    def cloud_bytes(self) -> int:
        """Bytes of its clouds now."""
        cloud = self.batch.cloud
        rows = 0 if cloud is None else cloud.log_weights.numel()
        return rows * self.shared.loaded.trajectory_bytes

    def growth(self, puzzles: int) -> int:
        """Bytes that the next step of so many of its puzzles adds."""
        cloud = self.batch.cloud
        now = 0 if cloud is None else cloud.log_weights.shape[1]
        return puzzles * (self.particles - now) * self.shared.loaded.trajectory_bytes

    def part(self, puzzles: slice | torch.Tensor) -> "WaitingBatch":
        """Some of its puzzles."""
        return WaitingBatch(self.shared, self.batch.part(puzzles))


def join(parts: list[WaitingBatch]) -> WaitingBatch:
    """One batch of several at the same position."""
    if len(parts) == 1:
        return parts[0]
    batches = [part.batch for part in parts]
    problem = batches[0].problem._replace(
        tokens=torch.cat([b.problem.tokens for b in batches]),
        inputs=torch.cat([b.problem.inputs for b in batches]),
        keys=torch.cat([b.problem.keys for b in batches]),
    )
    clouds = [b.cloud for b in batches if b.cloud is not None]
    cloud = None
    if clouds:
        answer = torch.cat([c.state.answer for c in clouds])
        latent = torch.cat([c.state.latent for c in clouds])
        weights = torch.cat([c.log_weights for c in clouds])
        banks = [c.bank for c in clouds if c.bank is not None]
        bank = Bank(*map(torch.cat, zip(*banks, strict=True))) if banks else None
        scores = torch.cat([c.score for c in clouds])
        votes = [c.votes for c in clouds if c.votes is not None]
        voted = torch.cat(votes) if votes else None
        cloud = Cloud(State(answer, latent), weights, scores, bank, voted)
    ids = torch.cat([b.ids for b in batches])
    seconds = min(b.seconds for b in batches)  # a time limit may be exceeded, never fallen short of
    joined = batches[0]._replace(ids=ids, problem=problem, cloud=cloud, seconds=seconds)
    return WaitingBatch(parts[0].shared, joined)


class Scheduler:
    """All batches between two turns. Their clouds stay below `memory` bytes where possible.

    Puzzles of the lowest `rank` come first in half of the turns.
    """

    def __init__(self, memory: int, turn_seconds: float, rank: Rank = lambda number: 0) -> None:
        self.memory, self.turn_seconds, self.rank = memory, turn_seconds, rank
        self.batches: list[WaitingBatch] = []
        self._rows: dict[LoadedModel, int] = {}  # trajectories that fit in a turn
        self._most: dict[LoadedModel, int] = {}  # smaller limits, after memory ran out
        self._time = {CHEAPEST: 0.0, OLDEST: 0.0}  # seconds of steps taken in these turns
        self._turn = CHEAPEST

    def rows(self, loaded: LoadedModel) -> int:
        """Trajectories of this model to step in one turn."""
        most = self._most.get(loaded, loaded.rows)
        return min(most, self._rows.get(loaded, FIRST_ROWS * loaded.threads))

    def limit_rows(self, loaded: LoadedModel, rows: int) -> None:
        """Step at most so many trajectories of this model at once from now on."""
        self._most[loaded] = max(1, rows)

    def time_rows(self, loaded: LoadedModel, rows: int, seconds: float) -> None:
        """Learn from a turn of so many trajectories how many fit in `turn_seconds`.

        A turn that was too long lowers the number at once; a full one that was short raises it, to
        twice as many at most. A smaller turn tells little, since part of its time is overhead.
        """
        now, share = self.rows(loaded), self.turn_seconds / max(seconds, 1e-9)
        if share < 1.0:
            self._rows[loaded] = max(loaded.threads, min(now, int(rows * share)))
        elif rows >= now:
            self._rows[loaded] = max(now, int(now * min(2.0, share)))

    def take(self) -> WaitingBatch:
        """Remove the next batch, joined with others at its position and cut to a good size."""
        chosen = self._choose()
        size = self._size(chosen)
        others = [b for b in self.batches if b is not chosen and b.position == chosen.position]
        if self._turn == CHEAPEST and self._is_slow(chosen.shared.loaded):
            others = [b for b in others if self._rank_of(b) <= self._rank_of(chosen)]
        taken: list[WaitingBatch] = []
        count = 0
        for batch in (chosen, *others):
            if count == size:
                break
            self.batches.remove(batch)
            kept = min(len(batch), size - count)
            if kept < len(batch):
                batch, rest = self._cut(batch, kept)
                self.batches.append(rest)
            taken.append(batch)
            count += kept
        return join(taken)

    def _cut(self, batch: WaitingBatch, kept: int) -> tuple[WaitingBatch, WaitingBatch]:
        """The puzzles that come first, and the others."""
        key = self.rank if self._turn == CHEAPEST else int
        ranks = [key(number) for number in batch.numbers]
        if ranks == sorted(ranks):  # nearly always; slices copy nothing
            return batch.part(slice(kept)), batch.part(slice(kept, None))
        order = torch.tensor(sorted(range(len(ranks)), key=ranks.__getitem__))
        order = order.to(batch.batch.ids.device)
        return batch.part(order[:kept]), batch.part(order[kept:])

    def _size(self, batch: WaitingBatch) -> int:
        """Puzzles of this batch to step at once."""
        return max(1, self.rows(batch.shared.loaded) // batch.particles)

    def _choose(self) -> WaitingBatch:
        free = max(0, self.memory - sum(batch.cloud_bytes for batch in self.batches))
        fitting = [
            batch for batch in self.batches
            if batch.growth(min(self._size(batch), len(batch))) <= free
        ]  # fmt: skip
        # If none fits, the oldest steps all the same, or nothing would ever finish.
        oldest = min(fitting or self.batches, key=lambda batch: batch.first)
        cheapest = min(
            fitting or [oldest],
            key=lambda batch: (self._rank_of(batch), batch.cost, batch.particles),
        )
        if oldest is cheapest or self._join_in_one_turn(oldest, cheapest):
            self._turn = BOTH
            return oldest
        ahead = self._time[OLDEST] - self._time[CHEAPEST]
        self._turn = CHEAPEST if ahead > 0 else OLDEST
        return cheapest if ahead > 0 else oldest

    def _rank_of(self, batch: WaitingBatch) -> Any:
        return min(map(self.rank, batch.numbers))

    def _is_slow(self, loaded: LoadedModel) -> bool:
        """Whether a turn takes longer with every trajectory, so that to join others is to wait."""
        return self.rows(loaded) < loaded.rows

    def _join_in_one_turn(self, one: WaitingBatch, other: WaitingBatch) -> bool:
        if one.position != other.position:
            return False
        together = (len(b) for b in self.batches if b.position == one.position)
        return sum(together) <= self._size(one)

    def note(self, seconds: float) -> None:
        """Count the time of the step that was taken last.

        Both kinds of turns get the same time, not the same number of steps: after one step of the
        largest cloud, a small request takes as many steps as fit in that time.
        """
        if self._turn != BOTH:
            self._time[self._turn] += seconds
            debt = self._time[OLDEST] - self._time[CHEAPEST]
            bounded = max(-LONGEST_DEBT, min(LONGEST_DEBT, debt))
            self._time = {CHEAPEST: 0.0, OLDEST: bounded}
