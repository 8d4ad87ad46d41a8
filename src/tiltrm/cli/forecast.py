"""What a command is about to do, said beforehand where it takes more than some minutes."""

import sys
import time

import torch
from torch import Tensor

from tiltrm.cli.progress import in_words
from tiltrm.explore import Exploration, explore
from tiltrm.model.base import RecursiveModel

LONG = 180.0  # seconds from which on a command says what it will do
CERTAINLY_SHORT = 20_000  # evaluations that take less anywhere
PROBED = 8  # puzzles of the probe
WAITED = 10.0  # seconds after which work is forecast from however little is done


def say_if_long(command: str, work: str, seconds: float, advice: str = "") -> None:
    """Print a line to stderr if the estimate is longer than some minutes."""
    if seconds > LONG:
        hint = f"; {advice}" if advice else ""
        print(f"tiltrm {command}: {work}, about {in_words(seconds)} here{hint}", file=sys.stderr)


class ProgressForecast:
    """Says once, when some of the work is done, how long the rest takes, if that is long.

    command, work, advice: as for `say_if_long`. probed: how much is done before that, unless it
    takes longer than WAITED.
    """

    def __init__(
        self, command: str, work: str, total: float, *, probed: float, advice: str = ""
    ) -> None:
        self.command, self.work, self.advice = command, work, advice
        self.total, self.probed = total, probed
        self.first: float | None = None
        self.begun, self.said = 0.0, False

    def __call__(self, done: float) -> None:
        """Note how much is done; the first call says where it began."""
        now = time.perf_counter()
        if self.first is None:
            self.first, self.begun = done, now
        made, took = done - self.first, now - self.begun
        if not self.said and made > 0 and (made >= self.probed or took > WAITED):
            self.said = True
            left = took / made * (self.total - done)
            say_if_long(self.command, self.work, left, self.advice)


def seconds_per_evaluation(model: RecursiveModel, puzzles: Tensor) -> float:
    """Measured with one outer step of a few puzzles, after one to warm up."""
    few = puzzles[:PROBED]
    quiet = Exploration(particles=1, noise=0.0, outer_steps=1, on_degenerate="abstain")
    explore(model, few, quiet)
    begun = time.perf_counter()
    spent = int(explore(model, few, quiet).evaluations.sum())
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return (time.perf_counter() - begun) / spent
