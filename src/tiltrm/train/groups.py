"""Groups of settings, each checked as it is made."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from tiltrm.errors import SettingsError

SHAPES = ("constant", "linear", "cosine")
MOST = 2**31 - 1  # far above any use; keeps a slip of the hand out of the C libraries


@dataclass(frozen=True)
class Schedule:
    """The factor on every learning rate over the progress (0 to 1) of the run."""

    shape: str = "cosine"  # constant, linear or cosine, once `hold` is over
    hold: float = 0.0  # share of the run at the full rate
    final: float = 0.0  # factor at the end
    warmup_steps: int = 0

    def __post_init__(self) -> None:
        among("schedule.shape", self.shape, SHAPES)
        within(self, ("hold", "final"), 0.0, 1.0, "schedule.")
        within(self, ("warmup_steps",), 0, MOST, "schedule.")


@dataclass(frozen=True)
class Depth:
    """Outer steps in one supervision step while training, drawn anew for every step.

    The range moves linearly from `start` to `end` between the progress points `over`.
    Only the last outer step of each carries a gradient.
    """

    start: tuple[int, int] = (3, 3)
    end: tuple[int, int] = (3, 3)
    over: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            low, high = getattr(self, name)
            if not 1 <= low <= high <= MOST:
                raise SettingsError(f"depth.{name} must be 1 <= low <= high, got {low}, {high}")
        first, last = self.over
        if not 0.0 <= first <= last <= 1.0:
            raise SettingsError(f"depth.over must be 0 <= first <= last <= 1, got {first}, {last}")


@dataclass(frozen=True)
class Hints:
    """Further clues from the answer, for some of the puzzles of every batch.

    A Sudoku with more of its cells given has the same answer and is easier. So the 1,000 puzzles
    show themselves in endless forms, and none can be told by the pattern of its clues.
    """

    share: float = 0.5  # of the puzzles
    most: int = 0  # clues added, uniform in 1..most; 0: none at all

    def __post_init__(self) -> None:
        within(self, ("share",), 0.0, 1.0, "hints.")
        within(self, ("most",), 0, MOST, "hints.")


@dataclass(frozen=True)
class Window:
    """The first part of a run on mazes sees windows cut out of them, which cost far less.

    Every cell keeps the rotary angle it would have in the whole maze, so that what is learned about
    neighbours holds there too.
    """

    side: int = 0  # cells; 0: none at all
    until: float = 0.1  # progress at which the whole mazes take over

    def __post_init__(self) -> None:
        within(self, ("side",), 0, MOST, "window.")
        within(self, ("until",), 0.0, 1.0, "window.")


@dataclass(frozen=True)
class Scan:
    """The checkpoint scan of Appendix E: three ways of inference on a fixed part of val."""

    every: float = 0.0  # seconds of training between two scans; 0: none by the clock
    steps: tuple[int, ...] = ()  # and after these steps
    puzzles: int = 100  # the first so many of val
    particles: int = 16
    noise: float = 0.3
    beta: float = 0.25
    resample_below: float = 0.3
    outer_steps: int = 48

    def __post_init__(self) -> None:
        within(self, ("every", "noise", "beta"), 0.0, math.inf, "scan.")
        within(self, ("resample_below",), 0.0, 1.0, "scan.")
        within(self, ("puzzles", "particles", "outer_steps"), 1, MOST, "scan.")
        if any(not 1 <= step <= MOST for step in self.steps):
            raise SettingsError(f"scan.steps must be at least 1, got {min(self.steps)}")


def among(name: str, value: str, allowed: Iterable[str]) -> None:
    if value not in allowed:
        raise SettingsError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")


def within(
    record: object, names: Iterable[str], least: float, most: float, where: str = ""
) -> None:
    """Numbers must be finite and in [least, most]; NaN is neither."""
    for name in names:
        value = getattr(record, name)
        if not least <= value <= most or math.isinf(value):
            limits = f"in [{least:g}, {most:.10g}]" if most < math.inf else f"at least {least:g}"
            raise SettingsError(f"{where}{name} must be a number {limits}, got {value!r}")
