"""The desk: between requests and the engine. It makes orders, waits for them, and gives them up."""

import asyncio
from collections.abc import Callable, Sequence
from typing import ParamSpec

from fastapi import Request
from torch import Tensor

from tiltrm.errors import SettingsError, TiltrmError
from tiltrm.explore.result import SearchResult
from tiltrm.serve.engine import Engine
from tiltrm.serve.limits import Limits, Refusal, Settings, SolveRequest
from tiltrm.serve.orders import ClosingError, Conclude, FullError, Job, Order
from tiltrm.serve.tracks import Host, Track, track
from tiltrm.solving import Solved, read_texts, record, task_of
from tiltrm.tasks import Task

LATE = "expected to be done within {:g} s, and was not; send fewer puzzles or smaller settings"
Given = ParamSpec("Given")


class Desk:
    """Everything that the routes share."""

    def __init__(self, engine: Engine, hosts: Sequence[Host], limits: Limits) -> None:
        self.engine, self.limits = engine, limits
        self.hosts = {host.name: host for host in hosts}
        self.streams = 0

    def host(self, model: str | None, task: str | None) -> tuple[Host, Task]:
        """The model that a request means, among those loaded; raises Refusal."""
        if model is not None and model not in self.hosts:
            raise Refusal(422, f"model must be one of {', '.join(self.hosts)}")
        named = [self.hosts[model]] if model is not None else list(self.hosts.values())
        fitting = [host for host in named if task in (None, host.task.name)]
        found = (fitting or named)[0]
        try:
            return found, task_of(found.model, task or found.task)
        except SettingsError as error:
            raise Refusal(422, str(error)) from None

    def track(self, body: Settings) -> Track:
        """The track of a request's settings; raises Refusal."""
        host, _ = self.host(body.model, body.task)
        settings = {"method": body.method, **body.given()}
        try:
            return track(host, body.task, tuple(sorted(settings.items())))
        except SettingsError as error:
            raise Refusal(422, str(error)) from None

    def submit(self, jobs: Sequence[Job]) -> None:
        """Hand jobs to the engine; raises Refusal."""
        try:
            self.engine.submit(jobs)
        except FullError as full:
            sentence = "the queue is full; try again later"
            raise Refusal(429, sentence, retry_after=str(full.seconds)) from None
        except ClosingError:
            raise closing() from None

    async def solve(self, request: Request, body: SolveRequest) -> list[Solved]:
        """The records of all puzzles, in their order; raises Refusal."""
        if len(body.puzzles) > self.engine.queue:
            raise Refusal(422, f"puzzles: expected at most {self.engine.queue} in one request")
        way = self.track(body)
        records, good = read_texts(way.task, body.puzzles)
        if good:
            done = asyncio.Event()
            order = Order(len(good), from_thread(done.set))
            jobs = [
                Job(way, tokens, body.seed, order, index, recorder(way, tokens, body.abstain))
                for index, tokens in enumerate(good.values())
            ]
            self.submit(jobs)
            await self.finish(request, order, done)
            for place, outcome in zip(good, order.outcomes, strict=True):
                records[place] = outcome
        return [found for found in records if found is not None]

    async def finish(self, request: Request, order: Order, done: asyncio.Event) -> None:
        """Wait for an order, as long as its client does; raises Refusal."""
        finished = asyncio.ensure_future(done.wait())
        gone = asyncio.ensure_future(_gone(request))
        try:
            await asyncio.wait(
                (finished, gone), timeout=self.limits.seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )  # fmt: skip
            if order.error is not None:
                raise failure(order.error)
            if not done.is_set():
                raise Refusal(504, LATE.format(self.limits.seconds))
        finally:
            self.engine.abandon(order)
            finished.cancel()
            gone.cancel()


def recorder(way: Track, tokens: Tensor, abstain: float | None) -> Conclude:
    """Makes the record of a puzzle that is done."""

    def conclude(solution: SearchResult, row: int, seconds: float) -> Solved:
        rate = seconds / int(solution.evaluations[row])
        return record(way.task, tokens, solution, row, rate, abstain)

    return conclude


def failure(error: BaseException) -> Refusal:
    """What a client hears of an error: a sentence that is meant for users, or none at all."""
    if isinstance(error, TiltrmError):
        return Refusal(500, str(error))
    return Refusal(500, "internal error")


def closing() -> Refusal:
    """What is said once nothing new is accepted."""
    return Refusal(503, "the server is closing", retry_after="5", connection="close")


def from_thread(call: Callable[Given, None]) -> Callable[Given, None]:
    """The same call, made by the loop that runs now, whichever thread asks for it."""
    loop = asyncio.get_running_loop()

    def later(*given: Given.args, **named: Given.kwargs) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(lambda: call(*given, **named))

    return later


async def _gone(request: Request) -> None:
    """Returns once the client has hung up; the body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
