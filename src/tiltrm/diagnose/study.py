"""One guide on a stream of clouds: the figures of alignment.py, summed step by step (Fig. 3)."""

import math
from typing import Any

import torch
from torch import Tensor

from tiltrm.diagnose.alignment import (
    even,
    gap,
    gap_path,
    mass,
    moved,
    moved_between,
    spread,
    spread_bound,
    tilt,
    widest_spread,
    won_pairs,
)
from tiltrm.explore import Exploration
from tiltrm.explore.weights import ess

WHOLE = Exploration().outer_steps  # of a run as the paper has it
BETAS = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
HARD = 1e6  # a tilt that leaves the best particle alone


class Study:
    """Sums over puzzles for one guide. Clouds carry no tilt of their own: weights are even.

    Proved by tests/diagnose/test_study.py against the single clouds.
    """

    def __init__(self, beta: float, steps: int) -> None:
        self.beta, self.steps = beta, steps
        self.puzzles = 0
        self.free: dict[str, Tensor] = {}  # (step,) sums that need no labels
        self.reach = torch.zeros(len(BETAS) + 1, dtype=torch.float64)
        self.run: dict[str, float] = {}  # sums over what all tilts of a whole run do together
        self.known: dict[str, Tensor] = {}  # (step,) sums that do
        self.counts: dict[str, Tensor] = {}  # (step,) how many terms those have
        self.excess = -math.inf  # the most by which a measured shift exceeded its bound

    def add(self, scores: Tensor, answers: Tensor, success: Tensor | None) -> Tensor:
        """scores: (puzzle, step, particle); of the last step answers: (puzzle, particle, cell) and
        success: (puzzle, particle), which are right.

        Returns the mass that a whole run moves between each cloud's answers: (puzzle,).
        """
        scores = scores.double().cpu()
        weights = even(scores)
        bound = spread_bound(weights, scores, self.beta)
        self.puzzles += len(scores)
        self._sum(
            self.free,
            spread=spread(weights, scores),
            widest_spread=widest_spread(weights, scores, self.beta),
            bound=bound,
            moved=moved(weights, scores, self.beta),
            ess=ess(tilt(weights, scores, self.beta)) / scores.shape[-1],
        )
        total = torch.where(torch.isfinite(scores), scores, -torch.inf).sum(1)
        for place, beta in enumerate((*BETAS, HARD)):
            self.reach[place] += moved(even(total), total, beta).sum()
        if success is not None:
            self._add_known(weights, scores, success.cpu()[:, None].expand_as(scores), bound)
        return self._add_run(scores, total, answers, success)

    def _add_run(
        self, scores: Tensor, total: Tensor, answers: Tensor, success: Tensor | None
    ) -> Tensor:
        """total: (puzzle, particle), of the steps that were watched; any later one is taken to
        score as the last of them did."""
        later = scores[:, -1:].expand(-1, max(0, WHOLE - scores.shape[1]), -1)
        total = total + later.sum(1)
        weights = even(total)
        found = {"moved": moved_between(answers.cpu(), weights, total, self.beta)}
        if success is not None:
            gained = mass(tilt(weights, total, self.beta), success.cpu())
            found["gained"] = gained - mass(weights, success.cpu())
        for name, value in found.items():
            self.run[name] = self.run.get(name, 0.0) + float(value.sum())
        return found["moved"]

    @staticmethod
    def _sum(into: dict[str, Tensor], **values: Tensor) -> None:
        for name, value in values.items():
            into[name] = into.get(name, torch.zeros(value.shape[1]).double()) + value.sum(0)

    def _mean_of(self, **values: Tensor) -> None:
        """Sums over the clouds in which a value exists (is not NaN), and how many those are."""
        for name, value in values.items():
            there = ~value.isnan()
            self._sum(self.known, **{name: torch.where(there, value, 0.0)})
            self._sum(self.counts, **{name: there.double()})

    def _add_known(self, weights: Tensor, scores: Tensor, success: Tensor, bound: Tensor) -> None:
        path = gap_path(weights, scores, success, self.beta)
        shift = mass(tilt(weights, scores, self.beta), success) - mass(weights, success)
        self.excess = max(self.excess, float((shift.abs() - bound).max()))
        self._mean_of(
            gap=gap(weights, scores, success), gap_at_beta=path[-1], smallest_gap=path.amin(0),
            shift=shift, success=mass(weights, success),
        )  # fmt: skip
        won, pairs = won_pairs(scores, success)
        self._sum(self.known, auroc=won)
        self._sum(self.counts, auroc=pairs)
        for word, some in (("right", success), ("wrong", ~success)):
            some = some & torch.isfinite(scores)
            for power in (1, 2):
                name = f"{word}{power}"
                self._sum(self.known, **{name: torch.where(some, scores**power, 0.0).sum(-1)})
                self._sum(self.counts, **{name: some.sum(-1).double()})

    def suggested_beta(self, share: float = 0.5) -> float | None:
        """The smallest of BETAS whose tilt over the whole run moves `share` of what a hard choice
        of the best particle would; None where none does. Needs no labels."""
        wanted = share * float(self.reach[-1])
        enough = [b for b, r in zip(BETAS, self.reach.tolist(), strict=False) if r >= wanted > 0]
        return enough[0] if enough else None

    def figures(self) -> dict[str, Any]:
        """Means over puzzles for every outer step; the labelled ones where labels were given."""
        count = max(1, self.puzzles)
        found: dict[str, Any] = {name: (s / count).tolist() for name, s in self.free.items()}
        found["beta"] = self.beta
        found["reach"] = dict(zip((*BETAS, "hard"), (self.reach / count).tolist(), strict=True))
        found["whole_run"] = {name: total / count for name, total in self.run.items()}
        found["suggested_beta"] = self.suggested_beta()
        if self.known:
            means = {n: self.known[n] / self.counts[n] for n in self.known}  # NaN where no term
            for word in ("right", "wrong"):
                first, second = means.pop(f"{word}1"), means.pop(f"{word}2")
                means[f"score_{word}"] = first
                means[f"score_{word}_std"] = (second - first.square()).clamp_min(0).sqrt()
            found |= {name: value.tolist() for name, value in means.items()}
            found["largest_excess_over_bound"] = self.excess
        return found
