"""What the server owes: an order is a request, a job one puzzle of it."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from tiltrm.explore.result import SearchResult
from tiltrm.serve.frames import Film
from tiltrm.serve.tracks import Track

Conclude = Callable[[SearchResult, int, float], Any]  # (solution, row, seconds) -> the outcome


class FullError(Exception):
    """No place is free; `seconds` is when to ask again."""

    def __init__(self, seconds: int) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class ClosingError(Exception):
    """Nothing new is accepted any more."""


class Order:
    """Outcomes of one request's jobs, in their order; `done` is called once, in any thread."""

    def __init__(self, jobs: int, done: Callable[[], None]) -> None:
        self.outcomes: list[Any] = [None] * jobs
        self.error: BaseException | None = None
        self.open = True  # somebody still waits for it
        self._left = jobs
        self._done = done
        self._lock = threading.Lock()

    def put(self, index: int, outcome: Any, error: BaseException | None = None) -> None:
        """Note one outcome; the last one, or the first error, completes the order."""
        with self._lock:
            self.outcomes[index] = outcome
            self._left -= 1
            last = self._left == 0
            first = error is not None and self.error is None
            self.error = self.error or error
            call = first or (last and self.error is None)
        if call:
            self._done()


@dataclass(eq=False)
class Job:
    """One puzzle on its way."""

    track: Track
    tokens: Tensor  # (cell,)
    seed: int
    order: Order
    index: int  # among the jobs of its order
    conclude: Conclude
    film: Film | None = None
    show: Callable[[dict[str, Any]], None] | None = None  # called with every frame of the film
    seconds: float = 0.0  # its share of the time of the steps that it took part in

    def put(self, outcome: Any, error: BaseException | None = None) -> None:
        """Note the outcome with its order."""
        self.order.put(self.index, outcome, error)
