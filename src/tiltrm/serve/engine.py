"""The engine: one thread that steps the puzzles of all clients in shared batches.

Newcomers enter between two steps, the finished leave at once with their results, and a client that
went away takes its puzzles along. What a puzzle gets does not depend on its company, since its
randomness is keyed by itself. Proved by tests/serve/test_server.py.
"""

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import nullcontext

import torch

from tiltrm.explore.batching import one_thread_each
from tiltrm.serve.orders import ClosingError, FullError, Job, Order
from tiltrm.serve.stepper import Counts, Stepper

LOG = logging.getLogger("tiltrm.serve")
COMPANY = 0.003  # seconds that the first puzzle after a rest waits for others
PARTY, PATIENCE = (
    32,
    0.05,
)  # while others are under way, newcomers enter so many at once, or after so
# many seconds: small groups make small batches
LONGEST_WAIT = 60  # seconds that a refused client is told at most


class Engine:
    """Accepts up to `queue` puzzles that are not finished, and refuses more."""

    def __init__(self, device: torch.device, queue: int) -> None:
        self.device, self.queue = device, queue
        self.held = 0  # puzzles accepted and not finished
        self.threads = 1
        self._waiting: deque[Job] = deque()
        self._since = 0.0  # when the first of those waiting came
        self._closing = False
        self._change = threading.Condition()
        self._stepper = Stepper(device, self._left)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tiltrm-engine", daemon=True)
        self._thread.start()
        self._ready.wait()

    @property
    def alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive()

    @property
    def closing(self) -> bool:
        """Whether it refuses everything new."""
        return self._closing

    @property
    def counts(self) -> Counts:
        """What it has done so far."""
        return self._stepper.counts

    def submit(self, jobs: Sequence[Job]) -> None:
        """Accept all of them, or raise FullError or ClosingError."""
        with self._change:
            if self._closing:
                raise ClosingError
            if self.held + len(jobs) > self.queue:
                raise FullError(self._wait(len(jobs)))
            self.held += len(jobs)
            self._since = self._since if self._waiting else time.monotonic()
            self._waiting.extend(jobs)
            self._change.notify()

    def abandon(self, order: Order) -> None:
        """Nobody waits for this order any more: its places are free."""
        with self._change:
            order.open = False
            kept = deque(job for job in self._waiting if job.order.open)
            gone = len(self._waiting) - len(kept)
            self._waiting = kept
            self.held -= gone
            self.counts.abandoned += gone

    def close(self) -> None:
        """Accept nothing more; what was accepted is finished, then the thread ends."""
        with self._change:
            self._closing = True
            self._change.notify()

    def join(self) -> None:
        """Wait for the end, after `close`."""
        self._thread.join()

    def _wait(self, places: int) -> int:
        """When so many places may be free, in seconds."""
        done = self.counts.solved + self.counts.failed
        seconds = places * self.counts.busy / done if done else 1.0
        return min(LONGEST_WAIT, max(1, math.ceil(seconds)))

    def _left(self) -> None:
        with self._change:
            self.held -= 1

    def _run(self) -> None:
        cpu = self.device.type == "cpu"
        with torch.inference_mode(), one_thread_each() if cpu else nullcontext(1) as threads:
            self.threads = threads
            self._ready.set()
            while self._rest():
                try:
                    self._stepper.enter(self._newcomers())
                    if not self._stepper.idle:
                        self._stepper.turn()
                except Exception as error:  # a fault of the engine itself
                    LOG.exception("the engine failed; its puzzles are given up")
                    self._stepper.give_up(error)

    def _rest(self) -> bool:
        """Sleep until there is work; False once closed and empty."""
        with self._change:
            if self._waiting or not self._stepper.idle:
                return True
            while not self._waiting:
                if self._closing:
                    return False
                self._change.wait()
        time.sleep(COMPANY)
        return True

    def _newcomers(self) -> list[Job]:
        with self._change:
            early = time.monotonic() - self._since < PATIENCE
            if early and len(self._waiting) < PARTY and not self._stepper.idle:
                return []
            room = min(self._stepper.free, len(self._waiting))
            return [self._waiting.popleft() for _ in range(room)]
