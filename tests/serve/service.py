"""A real server in a thread, and the plainest of clients."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from tiltrm.serve.limits import Limits
from tiltrm.serve.server import Server, build

JSON = {"Content-Type": "application/json"}


class Service:
    """What a test needs of a running server."""

    def __init__(self, server: Server, port: int) -> None:
        self.server, self.port, self.engine = server, port, server.engine

    def ask(
        self, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], Any]:
        """Status, headers, and the body read as JSON where it is."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        line.request("GET" if body is None else "POST", path, data, {**JSON, **(headers or {})})
        answer = line.getresponse()
        content = answer.read()
        line.close()
        kind = answer.headers.get("content-type", "")
        found = json.loads(content) if kind == "application/json" else content.decode()
        return answer.status, {k.lower(): v for k, v in answer.headers.items()}, found

    def raw(self, text: bytes) -> socket.socket:
        """A connection on which this was sent."""
        line = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        line.sendall(text)
        return line

    def until(self, held: int, seconds: float = 10.0) -> None:
        """Wait until so many puzzles are not finished."""
        end = time.monotonic() + seconds
        while self.engine.held != held:
            assert time.monotonic() < end, f"{self.engine.held} puzzles held, expected {held}"
            time.sleep(0.005)


@contextmanager
def serving(model: Any, token: str | None = None, **limits: Any) -> Iterator[Service]:
    """`model` served on a free port under the name 'toy'."""
    server, listener = build(
        {"toy": model}, torch.device("cpu"), port=0, token=token, limits=Limits(**limits)
    )
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield Service(server, listener.getsockname()[1])
    finally:
        if not server.engine.closing:  # a second signal would end the tests as well
            server.handle_exit(15, None)
        thread.join(30)
        listener.close()
        assert not thread.is_alive()


def request_of(body: Any) -> bytes:
    """POST /v1/solve as it goes over the line."""
    data = json.dumps(body).encode()
    head = "POST /v1/solve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data
