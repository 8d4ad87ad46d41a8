"""Were the verdicts right? A label-free prediction against what guidance then did."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from torch import Tensor

from tiltrm.diagnose.verdict import FLAT, HELP, UNSTABLE
from tiltrm.explore import Exploration, explore
from tiltrm.explore.guides import Score
from tiltrm.model.base import RecursiveModel


class Outcome(NamedTuple):
    """Shares of puzzles solved exactly, all with the same noise, particles and steps."""

    deterministic: float
    unguided: float
    guided: float

    @property
    def verdict(self) -> str:
        """What should have been said: that the noise was too much, where it lost half of what the
        noise-free model had and guidance did not bring it back; else whether guidance gained."""
        if self.unguided < self.deterministic / 2 and self.guided < self.deterministic:
            return UNSTABLE
        return HELP if self.guided > self.unguided else FLAT


def measure(
    model: RecursiveModel, tokens: Tensor, labels: Tensor, settings: Exploration,
    guide: Score | None = None, seed: int = 0,
) -> Outcome:  # fmt: skip
    """Run Algorithm 1 as it is set, without its tilt, and without its noise."""
    plain = replace(settings, entropy_every=0, on_degenerate="abstain")
    even = replace(plain, beta=0.0, trigger="never", potential="terminal")
    runs = (replace(even, particles=1, noise=0.0), even, plain)
    solved = []
    for each in runs:
        answers = explore(model, tokens, each, guide=guide, seed=seed).answers
        solved.append(float((answers == labels.cpu()).all(-1).double().mean()))
    return Outcome(*solved)


def hits(predicted: Sequence[str], outcomes: Sequence[Outcome]) -> float:
    """Share of the predictions that came true."""
    pairs = zip(predicted, outcomes, strict=True)
    return sum(said == happened.verdict for said, happened in pairs) / max(1, len(predicted))
