"""Progress on stderr: a bar on a terminal, and elsewhere a plain line now and then."""

import sys
import time
from collections.abc import Callable
from typing import TextIO

BAR_AFTER, BAR_EVERY = 2.0, 0.1  # seconds until the bar is drawn, and between two drawings
LINE_AFTER, LINE_EVERY = 10.0, 30.0  # seconds until the first plain line, and between two of them
WIDTH = 24
ERASE = "\r\x1b[K"


class Bar:
    """`with Bar("solving", 10) as bar: bar(3)`; `bar()` without a number updates only the time.

    label: what is being done. total: how much there is to do, counted in `unit`.
    """

    def __init__(
        self, label: str, total: int, *, unit: str = "", stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.label, self.total, self.unit = label, total, unit
        self.stream, self.clock = stream or sys.stderr, clock
        self.is_terminal = self.stream.isatty()
        self.done = 0.0
        self.begun = clock()
        self.next = self.begun + (BAR_AFTER if self.is_terminal else LINE_AFTER)
        self.shown = False

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def __call__(self, done: float | None = None) -> None:
        """Note that `done` of the total is done, and show it if it is time."""
        self.done = self.done if done is None else done
        now = self.clock()
        if now < self.next:
            return
        elapsed = now - self.begun
        if self.is_terminal:
            self.next, self.shown = now + BAR_EVERY, True
            self.stream.write(f"{ERASE}{self._bar(elapsed)}")
        else:
            self.next = now + LINE_EVERY
            self.stream.write(f"{self._line(elapsed)}\n")
        self.stream.flush()

    def within(self, before: int, share: int) -> Callable[[int, int], None]:
        """A callback (done, of) for a part that counts `share` and comes after `before`."""
        return lambda done, of: self(before + share * done / of)

    def clear(self) -> None:
        """Erase the bar from the screen, so that other output can be written."""
        if self.shown:
            self.stream.write(ERASE)
            self.stream.flush()
            self.shown = False

    def _bar(self, elapsed: float) -> str:
        filled = round(WIDTH * min(1.0, self.done / self.total))
        bar = "█" * filled + "░" * (WIDTH - filled)
        return f"{self.label} {bar} {int(self.done)} of {self.total}, {elapsed:.0f} s"

    def _line(self, elapsed: float) -> str:
        """How much is done, the time it took, and the time left if the pace stays the same."""
        share = min(1.0, self.done / self.total)
        unit = f" {self.unit}" if self.unit else ""
        left = f", about {in_words(elapsed / share - elapsed)} left" if share > 0 else ""
        return (
            f"{self.label}: {int(self.done):,} of {self.total:,}{unit} ({100 * share:.0f} %), "
            f"{in_words(elapsed)} elapsed{left}"
        )


def in_words(seconds: float) -> str:
    """A duration: 42 s, 7 min, 2 h 5 min."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
