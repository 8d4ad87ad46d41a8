"""One puzzle as server-sent events: a frame for every outer step, then the result."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send
from torch import Tensor

from tiltrm.data.guess import by_addresses
from tiltrm.errors import PuzzleError
from tiltrm.model.puzzle_rows import require_rows
from tiltrm.serve import frames
from tiltrm.serve.handler import LATE, RequestHandler, failure, from_thread, record_reader
from tiltrm.serve.requests import Refusal, StreamRequest
from tiltrm.serve.runner import PendingPuzzle, PendingRequest
from tiltrm.serve.scheduler import SharedSearch, shared_baseline
from tiltrm.tasks import SUDOKU
from tiltrm.tasks.registry import defaults_of

LAST = 10.0  # seconds for a slow client to read the last events


class EventStream(StreamingResponse):
    """A stream that calls `over` at its end, whatever the reason."""

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


def stream(
    handler: RequestHandler, client: str, body: StreamRequest, number: str = ""
) -> EventStream:
    """Accept one puzzle and stream its run; raises Refusal. `number` is that of the request."""
    streams, limits = handler.streams, handler.limits
    if streams.total() >= limits.streams or streams[client] >= limits.client_streams:
        raise Refusal(429, "too many streams; try again later", retry_after="1")
    shared = handler.search(body)
    task, loaded = shared.task, shared.loaded
    above = handler.trusted_above(body, shared)
    try:
        tokens = task.encode(body.puzzles[0])
        require_rows(shared.search.model, tokens[None])
    except PuzzleError as error:
        raise Refusal(422, str(error)) from None
    texts: asyncio.Queue[str] = asyncio.Queue()
    put = from_thread(texts.put_nowait)
    pending = PendingRequest(1 + body.baseline, lambda: put(""), client, number)
    texts.put_nowait(event("start", _start(shared, tokens, body)))
    puzzles = [
        PendingPuzzle(
            shared, tokens, body.seed, pending, 0,
            record_reader(task, tokens, body.abstain, above),
            frames.FrameBuilder(shared.search, task), lambda frame: put(event("step", frame)),
        )
    ]  # fmt: skip
    if body.baseline:
        puzzles.append(
            PendingPuzzle(
                shared_baseline(loaded, body.given().get("puzzle_id")), tokens, 0, pending, 1,
                lambda found, row, _: frames.baseline(task, tokens, found, row),
            )
        )  # fmt: skip
    handler.submit(puzzles)
    streams[client] += 1
    counting = handler.count(task, [tokens])

    def over() -> None:
        streams[client] -= 1
        if not streams[client]:
            del streams[client]
        counting.cancel()
        handler.engine.abandon(pending)

    async def counted() -> int | None:
        found = await handler.counts(counting)
        return None if found is None else found[0]

    seconds = handler.limits.seconds
    return EventStream(_events(pending, texts, seconds, counted), seconds + LAST, over)


def _start(shared: SharedSearch, tokens: Tensor, body: StreamRequest) -> dict[str, Any]:
    """The `start` event; its command works where the model's path is known."""
    task, loaded = shared.task, shared.loaded
    # `tiltrm solve` without --model takes the model of the address, or that of Sudokus.
    default = defaults_of(by_addresses([task.decode(tokens)]) or SUDOKU).model
    usual = loaded.bundled and loaded.name == default
    found = frames.start(
        task, loaded.model, tokens, method=body.method, seed=body.seed, settings=body.given(),
        model_name=None if usual else loaded.source or loaded.name,
        paths=loaded.source is not None,
    )  # fmt: skip
    if loaded.bundled or loaded.source:
        return found
    return found | {"note": f"{loaded.name} is a folder on the server; give your own path of it."}


async def _events(
    pending: PendingRequest, texts: asyncio.Queue[str], seconds: float,
    solutions: Callable[[], Awaitable[int | None]],
) -> AsyncIterator[str]:  # fmt: skip
    """The queued events up to an empty one, then the results or the error."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    try:
        while text := await asyncio.wait_for(texts.get(), end - loop.time()):
            yield text
    except TimeoutError:
        yield event("error", {"error": LATE.format(seconds)})
        return
    if pending.error is not None:
        yield event("error", {"error": failure(pending.error).sentence})
        return
    record, *baselines = pending.outcomes
    for found in baselines:
        yield event("baseline", found)
    yield event("result", frames.result(replace(record, solutions=await solutions())))
