"""One of three verdicts, from one small run without labels, with reasons and how certain it is.

unstable       the noisy trajectories do not come back to what the noise-free one settles on. Where
               no puzzle settles, half of them must stay in the tube of alpha = 1 instead.
too flat       the tilts of a whole run together move less than SHIFT of the mass from one answer to
               another, since the scores are too alike or the particles agree anyway; or the guide
               prefers answers that break the rules of the task. A single tilt, which the bound of
               eq. (19) is about, may be small: tilts add up (docs/LOG.md).
will help      neither. This is a necessary condition, so it is the weakest of the three. It is
               about the mass on right trajectories: where the most frequent answer is right
               already, more mass on it solves no further puzzle.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tiltrm.diagnose.certainty import Bootstrap

HELP = "will help"
FLAT = "cannot help: guide too flat"
UNSTABLE = "unstable at this noise: lower it"
VERDICTS = (HELP, FLAT, UNSTABLE)

SHIFT = 0.05  # mass
HALF = 0.5
SAFE = 0.9  # survival that a suggested noise must have


class Signals(NamedTuple):
    """What each puzzle says, without labels: (puzzle,)."""

    moved: Tensor  # mass that the tilts of a whole run move from one answer to another
    settled: Tensor  # 1 where the noise-free trajectory has settled on an answer
    recovered: Tensor  # share of the noisy ones that end with that answer, 0 where not settled
    rolled: Tensor  # rollouts from the puzzle's states
    survived: Tensor  # those that stayed in the tube
    pairs: Tensor  # (keeps the rules, breaks them) among the particles of the last cloud
    won: Tensor  # those in which the guide prefers the one that keeps them

    def vector(self) -> Tensor:
        """(puzzle, number), a 1 at the end to count with."""
        one = torch.ones_like(self.moved)
        return torch.stack([value.double() for value in (*self, one)], 1)


class Means(NamedTuple):
    """The same, averaged; None where there was nothing to average."""

    moved: float
    recovery: float | None
    survival: float | None
    leaning: float | None  # in-cloud AUROC of the guide for the rules


def means(sums: Tensor) -> Means:
    """From one row of sums of `Signals.vector`."""
    moved, settled, recovered, rolled, survived, pairs, won, count = sums.tolist()
    return Means(
        moved / max(count, 1e-12),
        recovered / settled if settled else None,
        survived / rolled if rolled else None,
        won / pairs if pairs else None,
    )


def decide(found: Means) -> str:
    """The verdict on these means."""
    home = found.survival if found.recovery is None else found.recovery
    if home is not None and home < HALF:
        return UNSTABLE
    if found.moved < SHIFT or (found.leaning is not None and found.leaning < HALF):
        return FLAT
    return HELP


@dataclass(frozen=True)
class Verdict:
    """What to expect, why, what to try, and how sure that is."""

    verdict: str
    reasons: tuple[str, ...]
    suggested: dict[str, float | None]  # noise, beta; None where nothing tried would do
    certainty: float
    means: Means

    def figures(self) -> dict[str, Any]:
        """The numbers behind it."""
        limits = {"moved": SHIFT, "recovery": HALF, "survival": HALF, "leaning": HALF}
        return {"means": self.means._asdict(), "limits": limits}


def judge(
    sample: Bootstrap, noise: float, beta: float, survival: dict[float, float],
    better_beta: float | None,
) -> Verdict:  # fmt: skip
    """The verdict on all puzzles; certain as far as resampled puzzles agree and there are many.

    certainty = (puzzles x share of agreeing replicates + 1) / (puzzles + 3): a third for none.
    """
    rows = [means(row) for row in sample.replicate_sums()]
    found, verdict = rows[0], decide(rows[0])
    agree = sum(decide(row) == verdict for row in rows[1:]) / max(1, len(rows) - 1)
    certainty = (sample.puzzles * agree + 1) / (sample.puzzles + len(VERDICTS))
    quieter = _noise(noise, survival, unstable=verdict == UNSTABLE)
    suggested = {"noise": quieter, "beta": better_beta}
    return Verdict(verdict, _reasons(found, noise, beta), suggested, certainty, found)


def _noise(noise: float, survival: dict[float, float], *, unstable: bool) -> float | None:
    """This noise if it is stable, else the largest stable one; below this one where asked."""
    good = [n for n, share in survival.items() if share >= SAFE and n > 0]
    if noise in good and not unstable:
        return noise
    return max((n for n in good if not unstable or n < noise), default=None)


def _reasons(found: Means, noise: float, beta: float) -> tuple[str, ...]:
    said = []
    if found.recovery is not None:
        said.append(
            f"{found.recovery:.0%} of the noisy trajectories (noise {noise:g}) end with the answer "
            f"that the noise-free one settles on; below {HALF:.0%} counts as unstable"
        )
    if found.survival is not None:
        said.append(
            f"{found.survival:.0%} of the inner rollouts stay in the tube of alpha = 1"
            + (f"; below {HALF:.0%} counts as unstable" if found.recovery is None else "")
        )
    said.append(
        f"at beta {beta:g} the tilts of a whole run move {found.moved:.1%} of the mass from one "
        f"answer to another; below {SHIFT:.0%} counts as flat"
    )
    if found.leaning is not None:
        said.append(
            f"the guide prefers the answer that keeps the rules in {found.leaning:.0%} of the "
            f"pairs; below {HALF:.0%} none of its spread is of use"
        )
    return tuple(said)
