"""One puzzle watched: server-sent events, a frame for every outer step, then the result."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from tiltrm.errors import PuzzleError
from tiltrm.serve import frames
from tiltrm.serve.desk import LATE, Desk, failure, from_thread, recorder
from tiltrm.serve.limits import Refusal, StreamRequest
from tiltrm.serve.orders import Job, Order
from tiltrm.serve.tracks import baseline

USUAL = "sudoku-extreme"  # the model that `tiltrm solve` takes where none is named
LAST = 10.0  # seconds for a slow client to take the last events


class Events(StreamingResponse):
    """A stream that says when it is over, however it ended."""

    def __init__(
        self, content: AsyncIterator[str], seconds: float, over: Callable[[], None]
    ) -> None:
        super().__init__(
            content, media_type="text/event-stream", headers={"Cache-Control": "no-store"}
        )
        self.seconds, self.over = seconds, over

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with asyncio.timeout(self.seconds):
                await super().__call__(scope, receive, send)
        except TimeoutError:
            pass  # the client does not read; uvicorn closes the connection
        finally:
            self.over()


def event(name: str, data: dict[str, Any]) -> str:
    """One server-sent event."""
    return f"event: {name}\ndata: {json.dumps(data, allow_nan=False)}\n\n"


def stream(desk: Desk, body: StreamRequest) -> Events:
    """Accept one puzzle; what is wrong with the request raises Refusal."""
    if desk.streams >= desk.limits.streams:
        raise Refusal(429, "too many streams; try again later", retry_after="1")
    way = desk.track(body)
    try:
        tokens = way.task.encode(body.puzzles[0])
    except PuzzleError as error:
        raise Refusal(422, str(error)) from None
    host = way.host
    texts: asyncio.Queue[str] = asyncio.Queue()
    put = from_thread(texts.put_nowait)
    order = Order(1 + body.baseline, lambda: put(""))
    texts.put_nowait(
        event("start", frames.start(
            way.task, host.model, tokens, method=body.method, seed=body.seed,
            settings=body.given(), model_name=None if host.name == USUAL else host.name,
        ))
    )  # fmt: skip
    jobs = [
        Job(
            way, tokens, body.seed, order, 0, recorder(way, tokens, body.abstain),
            frames.Film(host.model, way.plan), lambda frame: put(event("step", frame)),
        )
    ]  # fmt: skip
    if body.baseline:
        jobs.append(
            Job(
                baseline(host), tokens, 0, order, 1,
                lambda solution, row, _: frames.baseline(way.task, tokens, solution, row),
            )
        )  # fmt: skip
    desk.submit(jobs)
    desk.streams += 1

    def over() -> None:
        desk.streams -= 1
        desk.engine.abandon(order)

    seconds = desk.limits.seconds
    return Events(_events(order, texts, seconds), seconds + LAST, over)


async def _events(order: Order, texts: asyncio.Queue[str], seconds: float) -> AsyncIterator[str]:
    """What comes from the engine, then how it ended."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    try:
        while text := await asyncio.wait_for(texts.get(), end - loop.time()):
            yield text
    except TimeoutError:
        yield event("error", {"error": LATE.format(seconds)})
        return
    if order.error is not None:
        yield event("error", {"error": failure(order.error).sentence})
        return
    solved, *beside = order.outcomes
    for run in beside:
        yield event("baseline", run)
    yield event("result", frames.result(solved))
