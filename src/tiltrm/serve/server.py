"""Running the application: sockets, idle connections, and signals, which lose no puzzle."""

import asyncio
import logging
import math
import os
import socket
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from types import FrameType
from typing import ClassVar

import h11
import torch
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from tiltrm.errors import SettingsError
from tiltrm.model.base import RecursiveModel
from tiltrm.model.checkpoint import bundled
from tiltrm.serve.app import create
from tiltrm.serve.background import BackgroundCalls
from tiltrm.serve.engine import Engine
from tiltrm.serve.guard import own_names
from tiltrm.serve.handler import RequestHandler
from tiltrm.serve.limits import Limits
from tiltrm.serve.logs import LOG
from tiltrm.serve.quotas import client_name
from tiltrm.serve.scheduler import load_model
from tiltrm.solving import task_of

TOO_MANY = (
    b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 5\r\nConnection: close\r\n"
    b"Content-Length: 0\r\n\r\n"
)
LAST_CALL = 10.0  # seconds in which an interrupted call has to end


class IdleTimeoutProtocol(H11Protocol):
    """HTTP/1.1 that closes connections whose client sends no complete request head in time.

    It also refuses connections of clients that have too many.

    uvicorn limits only the time between two requests; a client that never sends one would keep its
    connection, and enough of them would use up all that the server accepts.
    Proved by tests/serve/test_server_clients.py::test_idle_connections_are_closed.
    """

    seconds: ClassVar[float] = 30.0  # without a request, or with an incomplete request head
    unread: ClassVar[float] = 30.0  # seconds that a client may leave an answer unread
    most: ClassVar[int] = 1 << 30  # connections of one client
    clients: ClassVar[Counter[str]] = Counter()  # open connections
    _client: str | None = None  # None: not counted
    _writing: asyncio.TimerHandle | None = None  # runs while the client does not read
    _timer: asyncio.TimerHandle | None = None  # runs while a request head is awaited

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        client = client_name({"client": self.client})
        if self.clients[client] >= self.most:
            transport.write(TOO_MANY)
            transport.close()
            return
        self.clients[client] += 1
        self._client = client
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._start_timer()
        else:
            self._stop_timer()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._writing is None:
            self._writing = self.loop.call_later(self.unread, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if self._writing is not None:
            self._writing.cancel()
        if self._client is not None:
            self.clients[self._client] -= 1
            if not self.clients[self._client]:
                del self.clients[self._client]
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self.seconds, self.transport.close)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Server(uvicorn.Server):
    """At the first signal it refuses new puzzles and finishes the others; at the second it ends.

    Diagnoses and generators are ended at the first.
    """

    def __init__(self, config: uvicorn.Config, engine: Engine, background: BackgroundCalls) -> None:
        super().__init__(config)
        self.engine, self.background = engine, background

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Called at SIGTERM and SIGINT."""
        if self.engine.closing:  # at once: threads in the middle of a step would abort the process
            os._exit(128 + sig)
        self.engine.close()
        self.background.close()
        if open_ := len(self.server_state.tasks):
            LOG.warning("closing after %d open requests; a second signal ends it at once", open_)

    async def on_tick(self, counter: int) -> bool:
        """Called ten times a second; returns whether to end."""
        if self.engine.closing and (self.engine.held == 0 or not self.engine.alive):
            self.should_exit = True
        return await super().on_tick(counter)


def build(
    models: Mapping[str, RecursiveModel], device: torch.device, *, host: str = "127.0.0.1",
    port: int = 8000, token: str | None = None, limits: Limits | None = None,
    task: str | None = None, names: Sequence[str] = (), client_header: str | None = None,
    sources: Mapping[str, str] | None = None,
) -> tuple[Server, socket.socket]:  # fmt: skip
    """A server and the socket it will listen on; port 0 is any free one. Raises SettingsError.

    `task` is the task of all models; each has its own unless given. `names` are further host
    names that it answers to. `client_header` is the header in which a proxy names the client.
    `sources` are the bundled names or paths of the models; people on other machines see no paths.
    """
    limits = (limits or Limits()).on(device)
    tasks = {name: task_of(model, task) for name, model in models.items()}
    listener = _listen(host, port)
    engine = Engine(device, limits)
    own, proxied = sources or {}, bool(names or client_header)
    local = ip_address(listener.getsockname()[0]).is_loopback and not proxied
    loaded = [
        load_model(
            name, model, tasks[name], device, engine.threads, bundled=own.get(name) in bundled(),
            source=own.get(name) if local else None,
        )
        for name, model in models.items()
    ]  # fmt: skip
    names = own_names(host, listener.getsockname()[0], names)
    handler = RequestHandler(engine, loaded, limits)
    app = create(handler, names, token, client_header)
    most = limits.connections if client_header else limits.client_connections  # proxies have many
    bounds = {"seconds": limits.idle_seconds, "unread": limits.write_seconds, "most": most,
              "clients": Counter()}  # fmt: skip
    protocol = type("Protocol", (IdleTimeoutProtocol,), bounds)
    config = uvicorn.Config(
        app, log_level=logging.WARNING, access_log=False, server_header=False,
        limit_concurrency=limits.connections, ws="none", lifespan="off",
        timeout_keep_alive=math.ceil(limits.idle_seconds),
        h11_max_incomplete_event_size=limits.head, http=protocol, loop="asyncio",
        proxy_headers=False,
    )  # fmt: skip
    return Server(config, engine, handler.background), listener


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port < 1 << 16:  # the system would take it modulo 65536
        raise SettingsError(f"--port must be 0 to 65535, got {port}")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1024)
    except (OSError, UnicodeError) as error:  # a label that is empty or too long
        raise SettingsError(
            f"expected an address that is free here, got {host}:{port} ({error}); "
            "choose another --host or --port"
        ) from error
    return listener


def address(listener: socket.socket) -> str:
    """The address of the page."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def run(server: Server, listener: socket.socket) -> None:
    """Serve until a signal; on return all accepted requests have been answered."""
    try:
        server.run([listener])
    finally:
        server.engine.close()
        server.background.close()
        listener.close()
    server.engine.join()
    if not server.background.join(LAST_CALL):  # torch aborts a process that ends beside its threads
        sys.stdout.flush()
        os._exit(0)
