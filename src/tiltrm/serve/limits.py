"""The limits of a server. All are in GET /v1/limits; `serve --limit NAME=VALUE` changes them."""

from dataclasses import dataclass, replace

import torch

MOST_RUNNING = {"cpu": 256, "cuda": 8192}  # puzzles in batches at once


@dataclass(frozen=True)
class Limits:
    """A client is an address, or for IPv6 a network of 64 bits, or the name that a proxy gives."""

    # of a request
    puzzles: int = 1000
    diagnosed: int = 64  # puzzles of a diagnosis
    particles: int = 256
    outer_steps: int = 1024
    work: int = 256 * 1024  # particles x outer steps of a puzzle
    memory: int = 4 << 30  # bytes that the clouds of one puzzle and all inputs take, estimated
    seconds: float = 600.0
    body: int = 2 << 20  # bytes
    body_seconds: float = 10.0  # until all of it has arrived
    text: int = 4096  # characters of a puzzle
    head: int = 1 << 16  # bytes of its first line and headers
    idle_seconds: float = 30.0  # without a request, or with an incomplete head
    counted: int = 64  # puzzles of a request whose solutions are counted
    counting_seconds: float = 2.0  # that answers which are there wait for this count
    write_seconds: float = 30.0  # that a client may leave an answer unread
    # of a client
    client_puzzles: int = 2048  # accepted and not finished
    client_requests: int = 256  # at once
    client_streams: int = 16  # at once
    client_connections: int = 500
    client_rate: float = 200.0  # requests a second, in the long run
    client_burst: int = 1000  # requests at once after a rest
    # of the server
    queue: int = 4096  # puzzles accepted and not finished
    running: int | None = None  # of these in batches; None: 256 on a CPU, 8192 on a GPU
    turn_seconds: float = 0.1  # about, of one turn: the work that others wait for
    cloud_memory: int | None = None  # bytes of all clouds; None: a quarter of what is free
    streams: int = 32  # at once
    diagnoses: int = 1  # at once
    generating: int = 8  # requests for a generated puzzle at once
    generate_seconds: float = 30.0  # for one of them
    connections: int = 1000

    def on(self, device: torch.device) -> "Limits":
        """The same limits with the defaults of this device filled in."""
        running = MOST_RUNNING[device.type] if self.running is None else self.running
        return replace(self, running=running)
