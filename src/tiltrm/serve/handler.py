"""The handler between routes and engine: it submits puzzles, waits for results, and abandons."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import ParamSpec, TypeVar

import torch
from fastapi import Request
from torch import Tensor

from tiltrm.errors import PuzzleError, SettingsError, TiltrmError
from tiltrm.explore.result import SearchResult
from tiltrm.explore.search import TIMED_OUT
from tiltrm.model.puzzle_rows import require_rows
from tiltrm.serve.background import BackgroundCalls
from tiltrm.serve.engine import ClosingError, Engine, FullError
from tiltrm.serve.guard import CLIENT, NUMBER
from tiltrm.serve.limits import Limits
from tiltrm.serve.logs import LOG
from tiltrm.serve.requests import LIMITED, Refusal, SearchRequest, SolveRequest
from tiltrm.serve.runner import PendingPuzzle, PendingRequest, ReadResult
from tiltrm.serve.scheduler import LoadedModel, SharedSearch, shared_search
from tiltrm.solving import PuzzleRecord, task_of
from tiltrm.solving.call import count_all, read_texts, risk_rung
from tiltrm.solving.solution import puzzle_record
from tiltrm.tasks import Task
from tiltrm.tasks.registry import defaults_of

LATE = "expected to finish within {:g} s and did not; send fewer puzzles or smaller settings"
Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")
Counting = asyncio.Future[list[int | None]]


class RequestHandler:
    """The engine, the loaded models and the limits that all routes share."""

    def __init__(self, engine: Engine, models: Sequence[LoadedModel], limits: Limits) -> None:
        self.engine, self.limits = engine, limits
        self.models = {loaded.name: loaded for loaded in models}
        self.streams: Counter[str] = Counter()  # open ones, by client
        self.background = BackgroundCalls()
        self._one_count = asyncio.Lock()

    def find(self, model: str | None, task: str | None) -> tuple[LoadedModel, Task]:
        """The loaded model and the task of a request; raises Refusal.

        Without a model, the first loaded one for the task is taken.
        """
        if model is not None and model not in self.models:
            raise Refusal(422, f"model must be one of {', '.join(self.models)}")
        named = [self.models[model]] if model is not None else list(self.models.values())
        served = {None, task, defaults_of(task or "").part_of}
        fitting = [loaded for loaded in named if task is None or loaded.task.name in served]
        found = (fitting or named)[0]
        try:
            return found, task_of(found.model, task or found.task)
        except SettingsError as error:
            raise Refusal(422, str(error)) from None

    def search(self, body: SearchRequest) -> SharedSearch:
        """The search of a request's settings; raises Refusal."""
        loaded, _ = self.find(body.model, body.task)
        given = body.given()
        for name in LIMITED:
            if given.get(name, 0) > (most := getattr(self.limits, name)):
                raise Refusal(422, f"{name}: expected at most {most}, got {given[name]}")
        settings = {"method": body.method, **given}
        try:
            shared = shared_search(loaded, body.task, tuple(sorted(settings.items())))
        except SettingsError as error:
            raise Refusal(422, str(error)) from None
        work = sum(stage.particles * stage.outer_steps for stage in shared.search.plan.stages)
        if work > self.limits.work:
            raise Refusal(
                422, f"expected particles x outer steps of at most {self.limits.work:,} a puzzle, "
                f"got {work:,}",
            )  # fmt: skip
        self._require_memory(shared, len(body.puzzles))
        return shared

    def _require_memory(self, shared: SharedSearch, puzzles: int) -> None:
        """Raise Refusal if a request needs more memory than it may take.

        The engine grows clouds only where memory is left, but one puzzle must fit at least: its
        largest cloud before and after a step, beside the inputs of all puzzles in batches.
        """
        largest = max(stage.particles for stage in shared.search.plan.stages)
        together = min(puzzles, self.limits.running or puzzles)
        needed = (2 * largest + together / 3) * shared.loaded.trajectory_bytes
        if needed > self.limits.memory:
            raise Refusal(
                422, f"expected a request that needs at most {self.limits.memory / 1e6:,.0f} MB, "
                f"got one of about {needed / 1e6:,.0f} MB; take fewer particles or puzzles",
            )  # fmt: skip

    def trusted_above(self, body: SearchRequest, shared: SharedSearch) -> float | None:
        """The trust that an answer needs at the risk of this request; raises Refusal."""
        if body.risk is None:
            return None
        try:
            found = risk_rung(
                shared.loaded.model, shared.task, body.risk, method=body.method, **body.given()
            )
        except TiltrmError as error:
            raise Refusal(422, str(error)) from None
        return found.above

    def submit(self, puzzles: Sequence[PendingPuzzle]) -> None:
        """Hand puzzles to the engine; raises Refusal."""
        try:
            self.engine.submit(puzzles)
        except FullError as full:
            raise Refusal(429, str(full), retry_after=str(full.seconds)) from None
        except ClosingError:
            raise closing() from None

    async def solve(self, request: Request, body: SolveRequest) -> list[PuzzleRecord]:
        """The records of all puzzles, in their order; raises Refusal."""
        limits = self.limits
        require_count(body.puzzles, min(limits.queue, limits.puzzles, limits.client_puzzles))
        shared = self.search(body)
        above = self.trusted_above(body, shared)
        records, good = read_texts(shared.task, body.puzzles)
        if good:
            tokens = list(good.values())
            try:
                require_rows(shared.search.model, torch.stack(tokens))
            except PuzzleError as error:
                raise Refusal(422, str(error)) from None
            done = asyncio.Event()
            scope = request.scope
            pending = PendingRequest(len(good), from_thread(done.set), scope[CLIENT], scope[NUMBER])
            self.submit([
                PendingPuzzle(
                    shared, puzzle, body.seed, pending, index,
                    record_reader(shared.task, puzzle, body.abstain, above),
                )
                for index, puzzle in enumerate(tokens)
            ])  # fmt: skip
            counting = self.count(shared.task, tokens)
            try:
                await self._wait(request, pending, done, partly=True)
                counts = await self.counts(counting) or [None] * len(tokens)
            finally:
                counting.cancel()
            for place, outcome, count in zip(good, pending.outcomes, counts, strict=True):
                found = outcome or unfinished(shared.task, good[place])
                records[place] = replace(found, solutions=count)
        return [found for found in records if found is not None]

    def count(self, task: Task, tokens: Sequence[Tensor]) -> Counting:
        """Begin to count the solutions of a request's puzzles beside the engine.

        One request at a time, since Python runs one thread at a time anyway.
        """

        async def counted() -> list[int | None]:
            if len(tokens) > self.limits.counted:
                return [None] * len(tokens)
            async with self._one_count:
                return await self.background.run(
                    partial(count_all, task, tokens, self.limits.counting_seconds)
                )

        return asyncio.ensure_future(counted())

    async def counts(self, counting: Counting) -> list[int | None] | None:
        """What was counted; None if that fails or takes longer than answers wait for it."""
        return await _finished(counting, self.limits.counting_seconds)

    async def _wait(
        self, request: Request, pending: PendingRequest, done: asyncio.Event, *,
        partly: bool = False,
    ) -> None:  # fmt: skip
        """Wait for the outcomes while the client is connected; raises Refusal.

        With `partly`, some outcomes are enough when the time is over.
        """
        finished = asyncio.ensure_future(done.wait())
        gone = asyncio.ensure_future(disconnected(request))
        try:
            await asyncio.wait(
                (finished, gone), timeout=self.limits.seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )  # fmt: skip
            if pending.error is not None:
                raise failure(pending.error)
            some = partly and any(outcome is not None for outcome in pending.outcomes)
            if not done.is_set() and not some:
                raise Refusal(504, LATE.format(self.limits.seconds))
        finally:
            self.engine.abandon(pending)
            finished.cancel()
            gone.cancel()


def require_count(puzzles: Sequence[str], most: int) -> None:
    """Raise Refusal if a request has more puzzles."""
    if len(puzzles) > most:
        raise Refusal(422, f"puzzles: expected at most {most} in one request")


def record_reader(
    task: Task, tokens: Tensor, abstain: float | None, trusted_above: float | None
) -> ReadResult:
    """A function that makes the record of a finished puzzle."""

    def read(found: SearchResult, row: int, seconds: float) -> PuzzleRecord:
        rate = seconds / int(found.evaluations[row])
        return puzzle_record(task, tokens, found, row, rate, abstain, trusted_above=trusted_above)

    return read


def unfinished(task: Task, tokens: Tensor) -> PuzzleRecord:
    """The record of a puzzle that was not finished within the time of its request."""
    return PuzzleRecord(task.decode(tokens), abstained=True, decided_by=TIMED_OUT)


def failure(error: BaseException) -> Refusal:
    """The answer to a request that failed. Only errors meant for users show their sentence."""
    if isinstance(error, TiltrmError):
        return Refusal(500, str(error))
    return Refusal(500, "internal error")


def closing() -> Refusal:
    """The answer of a server that accepts nothing new."""
    return Refusal(503, "the server is closing", retry_after="5", connection="close")


def from_thread(call: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """The same call for use in any thread; the event loop that runs now makes it."""
    loop = asyncio.get_running_loop()

    def later(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(lambda: call(*args, **kwargs))

    return later


async def _finished(task: "asyncio.Future[Value]", seconds: float) -> Value | None:
    """The value of a task; None if it fails or takes longer."""
    await asyncio.wait((task,), timeout=seconds)
    if task.done() and (error := task.exception()) is not None:
        LOG.error("a call failed", exc_info=error)
        return None
    return task.result() if task.done() else None


async def disconnected(request: Request) -> None:
    """Returns once the client has disconnected; the body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
