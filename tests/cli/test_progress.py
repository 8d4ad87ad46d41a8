"""The bar shows after two seconds, on a terminal only, and leaves nothing behind."""

import io
from typing import Any

from tiltrm.cli.progress import ERASE, Bar


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_it_waits_two_seconds_and_cleans_up(terminal: Any) -> None:
    clock = Clock()
    with Bar("solving", 8, stream=terminal, clock=clock) as bar:
        part = bar.within(4, 2)
        clock.now += 1.9
        part(1, 2)
        assert terminal.getvalue() == ""
        clock.now += 1.1
        part(1, 2)
        assert terminal.getvalue().endswith("5 of 8, 3 s")
        assert terminal.getvalue().count("█") == 15  # of 24
        before = terminal.getvalue()
        bar(8)  # at once: not drawn again
        assert terminal.getvalue() == before
        clock.now += 1.0
        bar()  # only the time
        assert terminal.getvalue().endswith("8 of 8, 4 s")
    assert terminal.getvalue().endswith(ERASE)


def test_it_is_silent_elsewhere() -> None:
    clock, stream = Clock(), io.StringIO()
    with Bar("solving", 8, stream=stream, clock=clock) as bar:
        clock.now += 60
        bar(3)
    assert stream.getvalue() == ""
