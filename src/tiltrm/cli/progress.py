"""A progress bar on stderr for anything over two seconds; silent where stderr is no terminal."""

import sys
import time
from collections.abc import Callable
from typing import TextIO

PATIENCE = 2.0  # seconds before it shows
EVERY = 0.1  # seconds between drawings
WIDTH = 24
ERASE = "\r\x1b[K"


class Bar:
    """`with Bar("solving", 10) as bar: bar(3)`; called without a number it only tells the time."""

    def __init__(
        self, label: str, total: int, *, stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.label, self.total = label, total
        self.stream, self.clock = stream or sys.stderr, clock
        self.done = 0.0
        self.begun = clock()
        self.next = self.begun + PATIENCE if self.stream.isatty() else float("inf")
        self.shown = False

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def __call__(self, done: float | None = None) -> None:
        """So much is done now."""
        self.done = self.done if done is None else done
        now = self.clock()
        if now < self.next:
            return
        self.next, self.shown = now + EVERY, True
        filled = round(WIDTH * min(1.0, self.done / self.total))
        bar = "█" * filled + "░" * (WIDTH - filled)
        counts = f"{int(self.done)} of {self.total}, {now - self.begun:.0f} s"
        self.stream.write(f"{ERASE}{self.label} {bar} {counts}")
        self.stream.flush()

    def within(self, before: int, share: int) -> Callable[[int, int], None]:
        """A callback (done, of) for a part that counts `share` and comes after `before`."""
        return lambda done, of: self(before + share * done / of)

    def clear(self) -> None:
        """Take it off the screen, so that other output may be written."""
        if self.shown:
            self.stream.write(ERASE)
            self.stream.flush()
            self.shown = False
