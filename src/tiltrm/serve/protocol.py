"""HTTP/1.1 whose clients must say what they want within a time, or are hung up on."""

import asyncio
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

IDLE = 30  # seconds without a request, or with the head of one that does not end


class Protocol(H11Protocol):
    """uvicorn bounds the time between two requests only; a connection that never asks would stay.

    Enough of them would use up what the server accepts.
    Proved by tests/serve/test_server_manners.py::test_who_asks_nothing_is_hung_up_on.
    """

    seconds: ClassVar[float] = IDLE
    _head: asyncio.TimerHandle | None = None  # runs while the head of a request is waited for

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._wait()
        else:
            self._stop()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._head is None:
            self._head = self.loop.call_later(self.seconds, self.transport.close)

    def _stop(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None
