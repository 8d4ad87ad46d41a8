"""Were the verdicts right? A label-free prediction against what guidance then did."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from torch import Tensor

from tiltrm.diagnose.alignment import mass
from tiltrm.diagnose.verdict import FLAT, HELP, UNSTABLE
from tiltrm.explore import Exploration, explore
from tiltrm.explore.guides import Score
from tiltrm.model.base import RecursiveModel

SURE = 2.0  # standard errors
WORTH = 0.02  # mass; what the paper's bound leaves to its Maze, which guidance does not help


class Played(NamedTuple):
    """What one way of exploring had of each puzzle: (puzzle,)."""

    solved: Tensor  # 1 where its answer is exactly right
    mass: Tensor  # the weight of the particles that are


class Outcome(NamedTuple):
    """Means over puzzles, all with the same noise, particles and steps.

    Guidance is about mass. The vote may gain without it: the guide breaks ties however flat it is.
    """

    deterministic: float  # shares solved exactly
    unguided: float
    guided: float
    gained: float = 0.0  # mass on right particles, guided less unguided
    error: float = 0.0  # its standard error

    @property
    def verdict(self) -> str:
        """What should have been said: that the noise was too much, where it lost half of what the
        noise-free model had and guidance did not bring it back; else whether mass was gained."""
        if self.unguided < self.deterministic / 2 and self.guided < self.deterministic:
            return UNSTABLE
        return HELP if self.gained > max(WORTH, SURE * self.error) else FLAT


def play(
    model: RecursiveModel, tokens: Tensor, labels: Tensor, settings: Exploration,
    guide: Score | None = None, seed: int = 0,
) -> Played:  # fmt: skip
    """Algorithm 1 as it is set."""
    quick = replace(settings, entropy_every=0, on_degenerate="abstain")
    found = explore(model, tokens, quick, guide=guide, seed=seed)
    right = (found.particle_answers == labels.cpu()[:, None]).all(-1)
    solved = (found.answers == labels.cpu()).all(-1).double()
    return Played(solved, mass(found.log_weights.double(), right))


def without_tilt(settings: Exploration) -> Exploration:
    """The same with nothing to guide it."""
    return replace(settings, beta=0.0, trigger="never", potential="terminal")


def without_noise(settings: Exploration) -> Exploration:
    """One quiet trajectory."""
    return replace(without_tilt(settings), particles=1, noise=0.0)


def outcome(deterministic: Played, unguided: Played, guided: Played) -> Outcome:
    """Of the same puzzles."""
    gain = guided.mass - unguided.mass
    quiet, even, tilted = (float(one.solved.mean()) for one in (deterministic, unguided, guided))
    return Outcome(quiet, even, tilted, float(gain.mean()), float(gain.std()) / len(gain) ** 0.5)


class Scorer:
    """What Algorithm 1 does with some puzzles; what its settings have in common is run once."""

    def __init__(self, model: RecursiveModel, tokens: Tensor, labels: Tensor) -> None:
        self.model, self.tokens, self.labels = model, tokens, labels
        self.known: dict[Exploration, Played] = {}

    def __call__(self, settings: Exploration, guide: Score | None = None) -> Outcome:
        """As it is set, without its tilt, and without its noise."""
        quiet, even = self._once(without_noise(settings)), self._once(without_tilt(settings))
        return outcome(quiet, even, play(self.model, self.tokens, self.labels, settings, guide))

    def _once(self, settings: Exploration) -> Played:
        if settings not in self.known:
            self.known[settings] = play(self.model, self.tokens, self.labels, settings)
        return self.known[settings]


def hits(predicted: Sequence[str], outcomes: Sequence[Outcome]) -> float:
    """Share of the predictions that came true."""
    pairs = zip(predicted, outcomes, strict=True)
    return sum(said == happened.verdict for said, happened in pairs) / max(1, len(predicted))
