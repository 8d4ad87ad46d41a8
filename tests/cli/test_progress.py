"""A bar after two seconds on a terminal; elsewhere a line after ten seconds, then every thirty."""

import io
from typing import Any

import pytest

from tiltrm.cli.progress import ERASE, Bar, in_words


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


def test_without_a_terminal_there_is_a_line_now_and_then() -> None:
    """A log shows that a long command lives, and a short command leaves it empty."""
    clock, stream = Clock(), io.StringIO()
    with Bar("evaluating", 8000, unit="puzzles", stream=stream, clock=clock) as bar:
        for _ in range(99):  # calls of a tenth of a second each
            clock.now += 0.1
            bar(0)
        assert stream.getvalue() == ""
        clock.now += 0.2
        bar(0)
        clock.now += 29.0
        bar(2000)
        assert stream.getvalue() == "evaluating: 0 of 8,000 puzzles (0 %), 10 s elapsed\n"
        clock.now += 1.0
        bar(2000)
        clock.now += 360.0
        bar()
    assert stream.getvalue().splitlines()[1:] == [
        "evaluating: 2,000 of 8,000 puzzles (25 %), 40 s elapsed, about 2 min left",
        "evaluating: 2,000 of 8,000 puzzles (25 %), 7 min elapsed, about 20 min left",
    ]


def test_without_a_unit_the_numbers_stand_alone() -> None:
    clock, stream = Clock(), io.StringIO()
    with Bar("solving", 8, stream=stream, clock=clock) as bar:
        clock.now += 60
        bar(3.9)
        assert stream.getvalue() == "solving: 3 of 8 (49 %), 60 s elapsed, about 63 s left\n"
    assert "\x1b" not in stream.getvalue()


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.4, "0 s"), (89.4, "89 s"), (90, "2 min"), (3570, "1 h 0 min"), (7500, "2 h 5 min")],
)
def test_durations(seconds: float, said: str) -> None:
    assert in_words(seconds) == said
