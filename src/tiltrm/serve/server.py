"""Running the application: sockets, signals, and an end that loses nothing."""

import logging
import os
import socket
from collections.abc import Mapping
from types import FrameType

import torch
import uvicorn

from tiltrm.errors import SettingsError
from tiltrm.model.base import RecursiveModel
from tiltrm.serve.app import create
from tiltrm.serve.desk import Desk
from tiltrm.serve.engine import LOG, Engine
from tiltrm.serve.guard import own_names
from tiltrm.serve.limits import Limits
from tiltrm.serve.protocol import IDLE, Protocol
from tiltrm.serve.tracks import host as make_host
from tiltrm.solving import task_of


class Server(uvicorn.Server):
    """At the first signal it refuses what is new and finishes what was accepted; at the second
    it ends."""

    def __init__(self, config: uvicorn.Config, engine: Engine) -> None:
        super().__init__(config)
        self.engine = engine

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Called at SIGTERM and SIGINT."""
        if self.engine.closing:  # at once: threads in the midst of a step would abort the process
            os._exit(128 + sig)
        self.engine.close()
        if open_ := len(self.server_state.tasks):
            LOG.warning("closing: %d requests are still answered; a second signal ends it", open_)

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: whether to end."""
        if self.engine.closing and self.engine.held == 0:
            self.should_exit = True
        return await super().on_tick(counter)


def build(
    models: Mapping[str, RecursiveModel], device: torch.device, *, host: str = "127.0.0.1",
    port: int = 8000, token: str | None = None, limits: Limits | None = None,
    task: str | None = None,
) -> tuple[Server, socket.socket]:  # fmt: skip
    """A server and the socket it will listen on; port 0 is any free one. Raises SettingsError.

    `task` is that of all models, each its own unless given.
    """
    limits = limits or Limits()
    tasks = {name: task_of(model, task) for name, model in models.items()}
    listener = _listen(host, port)
    engine = Engine(device, limits.queue)
    hosts = [
        make_host(name, model, tasks[name], device, engine.threads)
        for name, model in models.items()
    ]
    names = own_names(host, listener.getsockname()[0])
    app = create(Desk(engine, hosts, limits), names, token)
    config = uvicorn.Config(
        app, log_level=logging.WARNING, access_log=False, server_header=False,
        limit_concurrency=limits.connections, timeout_keep_alive=IDLE, ws="none", lifespan="off",
        h11_max_incomplete_event_size=1 << 16, http=Protocol, loop="asyncio", proxy_headers=False,
    )  # fmt: skip
    return Server(config, engine), listener


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port < 1 << 16:  # the system would take the rest of a division
        raise SettingsError(f"--port must be 0 to 65535, got {port}")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1024)
    except OSError as error:
        raise SettingsError(
            f"expected an address that is free here, got {host}:{port} ({error}); "
            "choose another --host or --port"
        ) from error
    return listener


def address(listener: socket.socket) -> str:
    """Where the page is, for people."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def run(server: Server, listener: socket.socket) -> None:
    """Serve until a signal; what was accepted has been answered when this returns."""
    try:
        server.run([listener])
    finally:
        server.engine.close()
        listener.close()
    server.engine.join()
