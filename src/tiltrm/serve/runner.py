"""Stepping the accepted puzzles: they join batches, are stepped, shown, and finish or fail.

All of this belongs to the engine's thread. A step that raises is tried again in halves, so that a
puzzle on which a model fails does not fail the others of its batch.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count, groupby
from typing import Any

import torch
from torch import Tensor

from tiltrm.explore.batches import Batch, Finished, StepResult
from tiltrm.explore.batching import free_memory, out_of_memory, too_small
from tiltrm.explore.cloud import StepInfo, make_problem
from tiltrm.explore.keys import derive, puzzle_keys
from tiltrm.explore.result import SearchResult
from tiltrm.model.base import evaluations_per_step
from tiltrm.serve.frames import FrameBuilder
from tiltrm.serve.limits import MOST_RUNNING
from tiltrm.serve.logs import LOG, REQUEST
from tiltrm.serve.quotas import RecentService
from tiltrm.serve.scheduler import Scheduler, SharedSearch, WaitingBatch

SMALL = 8  # puzzles of a request that shares batches with others from the start
MEMORY_SHARE = 0.25  # of the free memory, for clouds
MOST_MEMORY = {"cpu": 1 << 30, "cuda": 1 << 40}  # bytes for clouds

ReadResult = Callable[[SearchResult, int, float], Any]  # (result, row, seconds) -> outcome


class PendingRequest:
    """The outcomes of a request's puzzles, in their order.

    `done` is called once, in any thread: after the last outcome or after the first error.
    """

    def __init__(
        self, puzzles: int, done: Callable[[], None], client: str = "", number: str = ""
    ) -> None:
        self.client, self.number = client, number
        self.outcomes: list[Any] = [None] * puzzles
        self.error: BaseException | None = None
        self.wanted = True  # a client still waits for it
        self.begun = 0  # of its puzzles, those in batches or finished
        self.evaluations = 0  # spent on its puzzles so far
        self._left = puzzles
        self._done = done
        self._lock = threading.Lock()

    def put(self, index: int, outcome: Any, error: BaseException | None = None) -> None:
        """Store one outcome."""
        with self._lock:
            self.outcomes[index] = outcome
            self._left -= 1
            last = self._left == 0
            first = error is not None and self.error is None
            self.error = self.error or error
            call = first or (last and self.error is None)
        if call:
            self._done()


@dataclass(eq=False)
class PendingPuzzle:
    """One puzzle of a request."""

    shared: SharedSearch
    tokens: Tensor  # (cell,)
    seed: int
    request: PendingRequest
    index: int  # in its request
    read: ReadResult
    frames: FrameBuilder | None = None
    show: Callable[[dict[str, Any]], None] | None = None  # called with every frame
    seconds: float = 0.0  # its share of the time of its steps

    def put(self, outcome: Any, error: BaseException | None = None) -> None:
        """Store the outcome in the request."""
        self.request.put(self.index, outcome, error)


@dataclass
class Counts:
    """Totals since the start."""

    solved: int = 0
    failed: int = 0
    abandoned: int = 0
    evaluations: int = 0
    batches: int = 0  # turns
    trajectories: int = 0  # stepped in these batches
    busy: float = 0.0  # seconds


class BatchRunner:
    """Runs the accepted puzzles of one device, at most `running` of them at once.

    `removed` is called with each puzzle that ends.
    """

    def __init__(
        self, device: torch.device, removed: Callable[[PendingPuzzle], None],
        turn_seconds: float = 0.1, running: int | None = None, memory: int | None = None,
    ) -> None:  # fmt: skip
        self.device = device
        self.most = MOST_RUNNING[device.type] if running is None else running
        self.counts = Counts()
        if memory is None:
            memory = min(MOST_MEMORY[device.type], int(MEMORY_SHARE * free_memory(device)))
        self.scheduler = Scheduler(memory, turn_seconds, self._rank)
        self.clients: Counter[str] = Counter()  # puzzles in batches
        self._service = RecentService()
        self._removed = removed
        self._puzzles: dict[int, PendingPuzzle] = {}
        self._numbers = count()

    @property
    def free(self) -> int:
        """Puzzles that can be added now."""
        return self.most - len(self._puzzles)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to step."""
        return not self._puzzles

    def add(self, puzzles: list[PendingPuzzle]) -> None:
        """Begin these puzzles: one new batch for each search."""
        by_search: dict[SharedSearch, dict[int, PendingPuzzle]] = {}
        by_request = {puzzle.request: place for place, puzzle in enumerate(puzzles)}
        for puzzle in sorted(puzzles, key=lambda p: by_request[p.request]):
            number = next(self._numbers)
            self._puzzles[number] = puzzle
            self.clients[puzzle.request.client] += 1
            by_search.setdefault(puzzle.shared, {})[number] = puzzle
        for shared, some in by_search.items():
            self._embed(shared, some)

    def step(self) -> None:
        """One turn: an outer step of one batch, or a part of the step of a large cloud."""
        begun = time.perf_counter()
        batch = self._drop_abandoned(self.scheduler.take())
        if batch is not None:
            self._advance(batch)
        self.counts.batches += 1
        spent = time.perf_counter() - begun
        self.counts.busy += spent
        self.scheduler.note(spent)

    def fail_all(self, error: Exception) -> None:
        """Fail every puzzle and start with no batches."""
        self.scheduler.batches.clear()
        for number in list(self._puzzles):
            self._fail(number, error)

    def _embed(self, shared: SharedSearch, puzzles: dict[int, PendingPuzzle]) -> None:
        try:
            tokens = torch.stack([puzzle.tokens for puzzle in puzzles.values()]).to(self.device)
            seeds = torch.tensor([puzzle.seed for puzzle in puzzles.values()], device=self.device)
            problem = make_problem(shared.search.model, tokens, 1)
            problem = problem._replace(keys=derive(puzzle_keys(tokens), seeds))
        except Exception as error:
            if len(puzzles) == 1:
                number = next(iter(puzzles))
                self._log("a puzzle could not be embedded", number, error)
                self._fail(number, error)
                return
            for number, puzzle in puzzles.items():
                self._embed(shared, {number: puzzle})
            return
        ids = torch.tensor(list(puzzles), device=self.device)
        whole = WaitingBatch(shared, Batch(ids, problem))
        # Large requests keep to themselves, so that a turn's size is theirs to be cut from.
        sizes = Counter(puzzle.request for puzzle in puzzles.values())
        homes = [p.request if sizes[p.request] > SMALL else None for p in puzzles.values()]
        first = 0
        for _, group in groupby(homes):
            last = first + len(list(group))
            self.scheduler.batches.append(whole.part(slice(first, last)))
            first = last

    def _drop_abandoned(self, batch: WaitingBatch) -> WaitingBatch | None:
        """The batch without the puzzles that no client waits for; None if none is left."""
        numbers = batch.numbers
        wanted = [self._puzzles[number].request.wanted for number in numbers]
        for number, keep in zip(numbers, wanted, strict=True):
            if not keep:
                self._remove(number)
                self.counts.abandoned += 1
        if all(wanted):
            return batch
        return batch.part(torch.tensor(wanted, device=self.device)) if any(wanted) else None

    def _advance(self, batch: WaitingBatch) -> None:
        """One step, or the part of it that fits in a turn; where it raises, the same in halves."""
        begun = time.perf_counter()
        search, scheduler, loaded = batch.shared.search, self.scheduler, batch.shared.loaded
        result = None
        try:
            opened = batch.opened or search.open(batch.batch)
            before = opened.done
            whole = len(batch) > 1  # several puzzles were cut to the size of a turn already
            opened = search.propose(opened, None if whole else scheduler.rows(loaded))
            rows = len(batch) * (opened.done - before)
            if not opened.left:
                result = search.finish(opened)
        except Exception as error:
            failure = error
        else:
            seconds = time.perf_counter() - begun
            self.counts.trajectories += rows
            self._note_service(batch, rows, seconds)
            scheduler.time_rows(loaded, rows, seconds)
            if result is None:
                scheduler.batches.append(WaitingBatch(batch.shared, opened.batch, opened))
                self._puzzles[batch.first].seconds += seconds
            else:
                self._distribute(batch, result, seconds)
            return
        rows = len(batch) * batch.particles
        # Outside the handler, so that the failed step's tensors are freed before the next attempt.
        if out_of_memory(failure):
            self.scheduler.limit_rows(batch.shared.loaded, rows // 2)
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
        if len(batch) == 1:
            self._log("a puzzle could not be stepped", batch.first, failure)
            self._fail(batch.first, too_small() if out_of_memory(failure) else failure)
            return
        del failure
        half = len(batch) // 2
        for part in (slice(half), slice(half, None)):
            self._advance(batch.part(part))

    def _note_service(self, batch: WaitingBatch, rows: int, seconds: float) -> None:
        """Add a turn to what its requests and their clients were given."""
        each = rows // len(batch) * evaluations_per_step(batch.shared.loaded.model)
        for number in batch.numbers:
            request = self._puzzles[number].request
            request.evaluations += each
            self._service.add(request.client, seconds / len(batch))

    def _rank(self, number: int) -> tuple[int, int]:
        """Clients that were given little of late come first, then requests given least so far."""
        request = self._puzzles[number].request
        return self._service.level(request.client), request.evaluations

    def _distribute(self, batch: WaitingBatch, result: StepResult, seconds: float) -> None:
        """Share out the time, show the step, deliver the finished, keep the others."""
        numbers = batch.numbers
        for row, number in enumerate(numbers):
            puzzle = self._puzzles[number]
            puzzle.seconds += seconds / len(numbers)
            _show(puzzle, result.info, row)
        for finished in result.finished:
            self._deliver(finished)
        if result.rest is not None:
            self.scheduler.batches.append(WaitingBatch(batch.shared, result.rest))

    def _deliver(self, finished: Finished) -> None:
        reasons = (finished.decided_by,) * len(finished.ids)
        found = SearchResult(**finished.columns, decided_by=reasons)
        for row, number in enumerate(finished.ids.tolist()):
            puzzle = self._remove(number)
            self.counts.solved += 1
            self.counts.evaluations += int(found.evaluations[row])
            try:
                puzzle.put(puzzle.read(found, row, puzzle.seconds))
            except Exception as error:
                more = {REQUEST: puzzle.request.number}
                LOG.error("a result could not be read", exc_info=error, extra=more)
                puzzle.put(None, error)

    def _remove(self, number: int) -> PendingPuzzle:
        puzzle = self._puzzles.pop(number)
        client = puzzle.request.client
        self.clients[client] -= 1
        if not self.clients[client]:
            del self.clients[client]
        self._removed(puzzle)
        return puzzle

    def _log(self, sentence: str, number: int, error: Exception) -> None:
        request = self._puzzles[number].request.number
        LOG.error(sentence, exc_info=error, extra={REQUEST: request})

    def _fail(self, number: int, error: Exception) -> None:
        self.counts.failed += 1
        self._remove(number).put(None, error)


def _show(puzzle: PendingPuzzle, info: StepInfo, row: int) -> None:
    """Send a frame to the puzzle's client. An error here must not stop the others' steps."""
    if puzzle.frames is None or puzzle.show is None:
        return
    try:
        puzzle.show(puzzle.frames.frame(info, row))
    except Exception:
        LOG.exception("a step could not be shown")
        puzzle.frames = None
