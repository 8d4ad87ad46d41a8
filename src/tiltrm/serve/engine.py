"""The engine: one thread that steps the puzzles of all clients in shared batches.

New puzzles are admitted between two steps, and finished ones get their results at once. The puzzles
of a client that disconnected are dropped. A puzzle's result does not depend on the other puzzles
of its batch, since its random numbers have a key of its own. Proved by tests/serve/test_server.py.
"""

import math
import threading
import time
from collections import Counter, deque
from collections.abc import Sequence

import torch

from tiltrm.explore.batching import single_threaded
from tiltrm.serve.limits import Limits
from tiltrm.serve.logs import LOG
from tiltrm.serve.runner import BatchRunner, Counts, PendingPuzzle, PendingRequest

FIRST_WAIT = 0.003  # seconds that the first puzzle after an idle time waits for others to join
# While batches run, new puzzles are admitted so many at once, or after so many seconds: puzzles
# that begin together share their batches to the end, and small batches are slow.
ADMIT_AT_ONCE, ADMIT_AFTER = 32, 0.05
RESERVED = 4  # one in so many places is kept for requests that have begun few puzzles
SMALL = 8  # puzzles that a request has begun, or a client has in batches, for a reserved place
LONGEST_RETRY = 60  # seconds, the highest Retry-After


class FullError(Exception):
    """A queue is full, its client's own or that of all; `seconds`: when to try again."""

    def __init__(self, sentence: str, seconds: int) -> None:
        super().__init__(sentence)
        self.seconds = seconds


class ClosingError(Exception):
    """The engine accepts no more puzzles."""


class Engine:
    """Accepts up to `queue` unfinished puzzles, `client_puzzles` of one client; refuses more."""

    def __init__(self, device: torch.device, limits: Limits) -> None:
        self.device, self.limits = device, limits
        self.held = 0  # puzzles accepted and not finished
        self._held_by: Counter[str] = Counter()  # the same by client
        self.threads = 1
        self._waiting: deque[PendingPuzzle] = deque()
        self._since = 0.0  # when the first of those waiting came
        self._closing = self._ended = False
        self._change = threading.Condition()
        self._runner = BatchRunner(
            device, self._removed, limits.turn_seconds, limits.on(device).running,
            limits.cloud_memory,
        )  # fmt: skip
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tiltrm-engine", daemon=True)
        self._thread.start()
        self._ready.wait()

    @property
    def queue(self) -> int:
        """Puzzles accepted and not finished, at most."""
        return self.limits.queue

    @property
    def alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive() and not self._ended

    @property
    def closing(self) -> bool:
        """Whether it refuses all new puzzles."""
        return self._closing

    @property
    def counts(self) -> Counts:
        """Totals so far."""
        return self._runner.counts

    def submit(self, puzzles: Sequence[PendingPuzzle]) -> None:
        """Accept all of them, or raise FullError or ClosingError."""
        with self._change:
            if self._closing or self._ended:
                raise ClosingError
            wait = self._retry_after(len(puzzles))
            if self.held + len(puzzles) > self.queue:
                raise FullError("the queue is full; try again later", wait)
            client, most = puzzles[0].request.client, self.limits.client_puzzles
            if self._held_by[client] + len(puzzles) > most:
                raise FullError(f"expected at most {most} puzzles of a client at once", wait)
            self.held += len(puzzles)
            self._held_by[client] += len(puzzles)
            self._since = self._since if self._waiting else time.monotonic()
            self._waiting.extend(puzzles)
            self._change.notify()

    def abandon(self, request: PendingRequest) -> None:
        """Drop the unfinished puzzles of a request whose client does not wait any more."""
        with self._change:
            request.wanted = False
            kept = deque(puzzle for puzzle in self._waiting if puzzle.request.wanted)
            dropped = len(self._waiting) - len(kept)
            self._waiting = kept
            self._forget(request.client, dropped)
            self.counts.abandoned += dropped

    def close(self) -> None:
        """Accept nothing more; the thread ends once the accepted puzzles are finished."""
        with self._change:
            self._closing = True
            self._change.notify()

    def join(self) -> None:
        """Wait for the thread's end, after `close`."""
        self._thread.join()

    def _retry_after(self, puzzles: int) -> int:
        """Seconds after which so many more puzzles may be accepted.

        Others wait for places as well, so nobody is told to come back before a quarter is free.
        """
        done = self.counts.solved + self.counts.failed
        seconds = max(puzzles, self.held / 4) * self.counts.busy / done if done else 1.0
        return min(LONGEST_RETRY, max(1, math.ceil(seconds)))

    def _removed(self, puzzle: PendingPuzzle) -> None:
        with self._change:
            self._forget(puzzle.request.client, 1)

    def _forget(self, client: str, puzzles: int) -> None:
        """Count puzzles that are held no more; the lock is held."""
        self.held -= puzzles
        self._held_by[client] -= puzzles
        if not self._held_by[client]:
            del self._held_by[client]

    def _run(self) -> None:
        try:
            with torch.inference_mode(), single_threaded(self.device) as threads:
                self.threads = threads
                self._ready.set()
                while self._wait_for_work():
                    try:
                        self._runner.add(self._admitted())
                        if not self._runner.idle:
                            self._runner.step()
                    except Exception as error:  # an error of the engine itself
                        LOG.exception("the engine failed, and all its puzzles with it")
                        self._runner.fail_all(error)
        except BaseException as error:  # a task or a model may call sys.exit()
            LOG.critical("the engine has ended", exc_info=error)
        finally:
            self._end()

    def _end(self) -> None:
        """Accept nothing more, and fail what is left; at a regular end there is nothing."""
        error = RuntimeError("the engine has ended")
        with self._change:
            self._ended = True
            left, self._waiting = list(self._waiting), deque()
        self._runner.fail_all(error)
        for puzzle in left:
            self._removed(puzzle)
            puzzle.put(None, error)

    def _wait_for_work(self) -> bool:
        """Sleep until there is work; False once closed and empty."""
        with self._change:
            if self._waiting or not self._runner.idle:
                return True
            while not self._waiting:
                if self._closing:
                    return False
                self._change.wait()
        time.sleep(FIRST_WAIT)
        return True

    def _admitted(self) -> list[PendingPuzzle]:
        with self._change:
            early = time.monotonic() - self._since < ADMIT_AFTER
            if early and len(self._waiting) < ADMIT_AT_ONCE and not self._runner.idle:
                return []
            room = self._runner.free
            # Requests take turns, the one that has begun the fewest puzzles first. A part of the
            # places is for requests that have begun few puzzles, and half of that for clients that
            # have few in batches: neither one large request nor one client can fill them all.
            spare = self._runner.most // RESERVED
            few, running = min(SMALL, spare // 2), self._runner.clients.copy()
            admitted: list[PendingPuzzle] = []
            for puzzle in sorted(self._waiting, key=_turn):
                request = puzzle.request
                kept = spare if request.begun >= SMALL else spare // 2
                if request.begun < SMALL and running[request.client] < few:
                    kept = 0
                if len(admitted) < room - kept:
                    request.begun += 1
                    running[request.client] += 1
                    admitted.append(puzzle)
            chosen = {id(puzzle) for puzzle in admitted}
            self._waiting = deque(p for p in self._waiting if id(p) not in chosen)
            return admitted


def _turn(puzzle: PendingPuzzle) -> int:
    """The place of a puzzle among those of its request; the sort keeps the order of arrival."""
    return puzzle.index
