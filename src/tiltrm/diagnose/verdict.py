"""The verdict of a diagnosis, from one small run without labels, with reasons and a certainty.

no sign        No particle of any puzzle ends with an answer that keeps the rules, or as many of
               the answers keep the rules of another puzzle as those of their own. Without a task:
               no halt logit is ever above 0. Nothing else is then worth saying.
unstable       The noisy trajectories do not return to the answer on which the noise-free one
               settles. If no puzzle settles, at least half of the inner rollouts must stay in the
               tube of alpha = 1 instead.
too flat       The tilts of a whole run together move less than SHIFT of the mass from one answer
               to another, because the scores are too alike or the particles agree anyway; or the
               guide prefers answers that break the rules of the task. A single tilt, which eq. (19)
               bounds, may be small: tilts add up (docs/LOG.md).
will help      None of these. This is a necessary condition, so it is the weakest of the four.
               It is about the mass on right trajectories: if the most frequent answer is right
               already, more mass on it solves no further puzzle.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tiltrm.explore.keys import derive, uniforms

HELP = "will help"
FLAT = "cannot help: guide too flat"
UNSTABLE = "unstable at this noise: lower it"
NOTHING = "no sign that this model solves anything"
VERDICTS = (HELP, FLAT, UNSTABLE, NOTHING)

SHIFT = 0.05  # mass
HALF = 0.5
SAFE = 0.9  # survival that a suggested noise must have
REPLICATES = 200
BOOTSTRAP = 0x626F6F74  # separates the bootstrap's random numbers from those of the exploration
PRIOR = 3  # verdicts on a model that solves something; 1 / PRIOR is the certainty for no puzzle
LARGEST = 12  # a Poisson(1) number beyond this has probability 1e-11


class Signals(NamedTuple):
    """The evidence of each puzzle for the verdict, without labels: (puzzle,)."""

    moved: Tensor  # mass that the tilts of a whole run move from one answer to another
    settled: Tensor  # 1 if the noise-free trajectory has settled on an answer
    recovered: Tensor  # share of the noisy ones that end with that answer, 0 if not settled
    rolled: Tensor  # rollouts from the puzzle's states
    survived: Tensor  # rollouts that stayed in the tube
    pairs: Tensor  # (valid answer, invalid answer) among the particles of the last cloud
    won: Tensor  # pairs in which the guide prefers the valid answer
    checked: Tensor  # 1 if a task could check the answers
    valid: Tensor  # 1 if the answer of some particle keeps the rules
    borrowed: Tensor  # 1 if the answer of some particle keeps the rules of another puzzle
    halted: Tensor  # 1 if the halt logit of some particle was above 0 at some step

    def vector(self) -> Tensor:
        """(puzzle, number), with a 1 at the end that counts the puzzles."""
        one = torch.ones_like(self.moved)
        return torch.stack([value.double() for value in (*self, one)], 1)


class SignalMeans(NamedTuple):
    """Means of the signals; None if there was nothing to average."""

    moved: float
    recovery: float | None
    survival: float | None
    leaning: float | None  # in-cloud AUROC of the guide for valid answers
    valid: float | None = None  # share of the puzzles with a valid answer; None without a task
    borrowed: float = 0.0  # the same of answers to another puzzle
    halted: float = 1.0  # share of the puzzles with a halt logit above 0

    @staticmethod
    def of(sums: Tensor) -> "SignalMeans":
        """From one row of sums of `Signals.vector`."""
        *known, checked, valid, borrowed, halted, count = sums.tolist()
        moved, settled, recovered, rolled, survived, pairs, won = known
        return SignalMeans(
            moved / max(count, 1e-12),
            recovered / settled if settled else None,
            survived / rolled if rolled else None,
            won / pairs if pairs else None,
            valid / checked if checked else None,
            borrowed / checked if checked else 0.0,
            halted / max(count, 1e-12),
        )


class Bootstrap:
    """Sums of one vector per puzzle under bootstrap replicates, kept chunk by chunk.

    In each replicate a puzzle has a Poisson(1) weight, drawn from the puzzle's own key, so neither
    order nor chunks matter. Replicate 0 has weight 1 for every puzzle.
    """

    def __init__(self, replicates: int = REPLICATES) -> None:
        self.replicates = replicates
        self.sums: Tensor | None = None  # (replicate + 1, number)
        self.puzzles = 0

    def add(self, keys: Tensor, values: Tensor) -> None:
        """keys: (puzzle,); values: (puzzle, number)."""
        drawn = poisson(derive(keys.cpu(), BOOTSTRAP), self.replicates)
        weights = torch.cat((torch.ones(len(drawn), 1).double(), drawn), 1)
        new = weights.T @ values.double().cpu()
        self.sums = new if self.sums is None else self.sums + new
        self.puzzles += len(values)

    def replicate_sums(self) -> Tensor:
        """The sums, the unweighted ones first: (replicate + 1, number)."""
        assert self.sums is not None, "nothing was added"
        return self.sums


def poisson(keys: Tensor, count: int) -> Tensor:
    """Poisson(1) numbers from keys by inversion: (row,) -> (row, count) float64."""
    chance = torch.tensor([math.exp(-1) / math.factorial(k) for k in range(LARGEST)]).double()
    return torch.searchsorted(chance.cumsum(0), uniforms(keys, count)).double()


def decide(found: SignalMeans) -> str:
    """The verdict for these means."""
    if solves_nothing(found):
        return NOTHING
    returning = found.survival if found.recovery is None else found.recovery
    if returning is not None and returning < HALF:
        return UNSTABLE
    if found.moved < SHIFT or (found.leaning is not None and found.leaning < HALF):
        return FLAT
    return HELP


def solves_nothing(found: SignalMeans) -> bool:
    """Whether nothing speaks for a model that solves puzzles.

    Proved by tests/diagnose/test_nothing.py.
    """
    if found.valid is None:
        return found.halted == 0.0
    return found.valid <= found.borrowed  # also where both are 0


@dataclass(frozen=True)
class Verdict:
    """The verdict with its reasons, suggested settings and certainty."""

    verdict: str
    reasons: tuple[str, ...]
    suggested: dict[str, float | None]  # noise, beta; None if none of those tried would do
    certainty: float
    means: SignalMeans

    def figures(self) -> dict[str, Any]:
        """The numbers behind it."""
        limits = {"moved": SHIFT, "recovery": HALF, "survival": HALF, "leaning": HALF}
        return {"means": self.means._asdict(), "limits": limits}


def judge(
    sample: Bootstrap, noise: float, beta: float, survival: dict[float, float],
    suggested_beta: float | None,
) -> Verdict:  # fmt: skip
    """The verdict on all puzzles at this noise and beta; survival: in the tube, by noise.

    certainty = (puzzles x share of agreeing replicates + 1) / (puzzles + 3): a third for none.
    """
    rows = [SignalMeans.of(row) for row in sample.replicate_sums()]
    found, verdict = rows[0], decide(rows[0])
    agree = sum(decide(row) == verdict for row in rows[1:]) / max(1, len(rows) - 1)
    certainty = (sample.puzzles * agree + 1) / (sample.puzzles + PRIOR)
    suggested: dict[str, float | None] = {
        "noise": _suggested_noise(noise, survival, unstable=verdict == UNSTABLE),
        "beta": suggested_beta,
    }
    if verdict == NOTHING:
        suggested = dict.fromkeys(suggested)
    return Verdict(verdict, _reasons(found, noise, beta), suggested, certainty, found)


def _suggested_noise(noise: float, survival: dict[float, float], *, unstable: bool) -> float | None:
    """This noise if it is safe, else the largest safe one; below this one if it is unstable."""
    safe = [n for n, share in survival.items() if share >= SAFE and n > 0]
    if noise in safe and not unstable:
        return noise
    return max((n for n in safe if not unstable or n < noise), default=None)


def _reasons(found: SignalMeans, noise: float, beta: float) -> tuple[str, ...]:
    if solves_nothing(found):
        return (_why_nothing(found),)
    reasons = []
    if found.recovery is not None:
        reasons.append(
            f"{found.recovery:.0%} of the noisy trajectories (noise {noise:g}) end with the answer "
            f"on which the noise-free one settles; below {HALF:.0%} counts as unstable"
        )
    if found.survival is not None:
        reasons.append(
            f"{found.survival:.0%} of the inner rollouts stay in the tube of alpha = 1"
            + (f"; below {HALF:.0%} counts as unstable" if found.recovery is None else "")
        )
    reasons.append(
        f"at beta {beta:g} the tilts of a whole run move {found.moved:.1%} of the mass from one "
        f"answer to another; below {SHIFT:.0%} counts as flat"
    )
    if found.leaning is not None:
        reasons.append(
            f"the guide prefers the valid answer in {found.leaning:.0%} of the pairs of a valid "
            f"and an invalid one; below {HALF:.0%} it misleads, which counts as flat"
        )
    return tuple(reasons)


def _why_nothing(found: SignalMeans) -> str:
    if found.valid is None:
        return "no halt logit was above 0 at any step, and there are no rules to check answers by"
    if found.valid == 0.0:
        return "no particle of any puzzle ends with an answer that keeps the rules of the task"
    return (
        f"{found.valid:.0%} of the puzzles get an answer that keeps their rules, and "
        f"{found.borrowed:.0%} one that keeps those of another puzzle: no better than by chance"
    )
