"""Does the guide separate right from wrong trajectories, and how far can its tilt move the cloud?

Lemma 5.4, eqs. (18) and (19), Fig. 3 and App. F of the paper. The functions take clouds
(..., particle): the weights before the tilt, the guide's scores, and with labels a mask of the
particles that succeed. The tilting path is w_t = w exp(t q), t from 0 to beta. `Alignment` sums
the same quantities over many puzzles.
Proved by tests/diagnose/test_alignment.py, each against loops over the particles.
"""

import math
from typing import Any

import torch
from torch import Tensor

from tiltrm.explore import Exploration
from tiltrm.explore.select import same_answer
from tiltrm.explore.weights import ess, normalise
from tiltrm.statistics import won_pairs

TIMES = 33  # grid points of the tilting path, both ends included, over which the sup is taken
PAPER_STEPS = Exploration().outer_steps  # outer steps of a whole run
BETAS = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
HARD = 1e6  # a beta that leaves all weight on the best particle


def tilt(log_weights: Tensor, score: Tensor, t: float) -> Tensor:
    """Log-weights of the tilted law pi_t (eq. 8); a dead particle stays dead."""
    return normalise(log_weights + t * score)[0]


def even(score: Tensor) -> Tensor:
    """Equal log-weights on the particles with a finite score: the cloud before any tilt."""
    return normalise(torch.where(torch.isfinite(score), 0.0, -torch.inf).to(score))[0]


def mean(log_weights: Tensor, value: Tensor) -> Tensor:
    """E[value] under the cloud: (...). Particles without weight may have any value, even inf."""
    weights = log_weights.exp()
    return torch.where(weights > 0, weights * value, 0.0).sum(-1)


def spread(log_weights: Tensor, score: Tensor) -> Tensor:
    """Standard deviation of the score under the cloud: (...); 0 if one particle has all weight."""
    centre = mean(log_weights, score)[..., None]
    return mean(log_weights, (score - centre).square()).sqrt()


def times(beta: float, count: int = TIMES) -> list[float]:
    """`count` evenly spaced times from 0 to beta."""
    return [beta * index / (count - 1) for index in range(count)]


def widest_spread(log_weights: Tensor, score: Tensor, beta: float, count: int = TIMES) -> Tensor:
    """sup over t in [0, beta] of the spread under the tilted weights, on a grid: (...)."""
    path = [spread(tilt(log_weights, score, t), score) for t in times(beta, count)]
    return torch.stack(path).amax(0)


def spread_bound(log_weights: Tensor, score: Tensor, beta: float, count: int = TIMES) -> Tensor:
    """beta/2 sup_t std_t[q] >= |p(beta) - p(0)| for every success set (eq. 19): (...)."""
    return beta / 2 * widest_spread(log_weights, score, beta, count)


def moved(log_weights: Tensor, score: Tensor, beta: float) -> Tensor:
    """The largest mass that the tilt moves onto any set of particles: (...).

    This is the total variation distance, sum |w_beta - w_0| / 2. It needs no labels and is sharper
    than `spread_bound`: one set attains it.
    """
    change = tilt(log_weights, score, beta).exp() - log_weights.exp()
    return change.abs().sum(-1) / 2


def moved_between(answers: Tensor, log_weights: Tensor, score: Tensor, beta: float) -> Tensor:
    """The largest mass that the tilt moves onto any set of answers: (puzzle,).

    answers: (puzzle, particle, cell). At most `moved`, and less if particles have equal answers:
    mass that moves between those changes no answer.
    """
    change = tilt(log_weights, score, beta).exp() - log_weights.exp()
    same = same_answer(answers).to(change)
    return ((same * change[:, None]).sum(-1).abs() / same.sum(-1)).sum(-1) / 2


def mass(log_weights: Tensor, success: Tensor) -> Tensor:
    """p = P(H in A) under the cloud: (...)."""
    return torch.where(success, log_weights.exp(), 0.0).sum(-1)


def gap(log_weights: Tensor, score: Tensor, success: Tensor) -> Tensor:
    """Delta = E[q | A] - E[q | not A] (eq. 18): (...); NaN if either set has no weight.

    It is the derivative of log p / (1 - p) along the tilting path (App. F).
    """
    inside = torch.where(success, log_weights, -torch.inf)
    outside = torch.where(success, -torch.inf, log_weights)
    value = mean(normalise(inside)[0], score) - mean(normalise(outside)[0], score)
    both = (inside > -torch.inf).any(-1) & (outside > -torch.inf).any(-1)
    return torch.where(both, value, math.nan)


def gap_path(
    log_weights: Tensor, score: Tensor, success: Tensor, beta: float, count: int = TIMES
) -> Tensor:
    """Delta(t) for t = 0, ..., beta: (time, ...)."""
    tilted = [tilt(log_weights, score, t) for t in times(beta, count)]
    return torch.stack([gap(weights, score, success) for weights in tilted])


class Alignment:
    """Sums over puzzles for one guide at one beta, by outer step (Fig. 3).

    The clouds carry no tilt: their weights are even.
    """

    def __init__(self, beta: float) -> None:
        self.beta = beta
        self.puzzles = 0
        self.unlabelled: dict[str, Tensor] = {}  # (step,) sums that need no labels
        self.labelled: dict[str, Tensor] = {}  # (step,) sums that need labels
        self.terms: dict[str, Tensor] = {}  # (step,) number of terms of the labelled sums
        self.reach = torch.zeros(len(BETAS) + 1, dtype=torch.float64)
        self.whole_run: dict[str, float] = {}  # sums for the tilts of a whole run together
        self.excess = -math.inf  # the largest excess of a measured shift over its bound

    def add(self, scores: Tensor, answers: Tensor, success: Tensor | None) -> Tensor:
        """scores: (puzzle, step, particle). Of the last step, answers: (puzzle, particle, cell)
        and success: (puzzle, particle), a mask of the right particles.

        Returns the mass that a whole run moves between each cloud's answers: (puzzle,).
        """
        scores = scores.double().cpu()
        weights = even(scores)
        bound = spread_bound(weights, scores, self.beta)
        self.puzzles += len(scores)
        _add_to(
            self.unlabelled,
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
            self._add_labelled(weights, scores, success.cpu()[:, None].expand_as(scores), bound)
        return self._add_whole_run(scores, total, answers, success)

    def _add_whole_run(
        self, scores: Tensor, total: Tensor, answers: Tensor, success: Tensor | None
    ) -> Tensor:
        """total: (puzzle, particle), over the recorded steps. Each later step of a whole run is
        assumed to score as the last recorded one."""
        later = scores[:, -1:].expand(-1, max(0, PAPER_STEPS - scores.shape[1]), -1)
        total = total + later.sum(1)
        weights = even(total)
        found = {"moved": moved_between(answers.cpu(), weights, total, self.beta)}
        if success is not None:
            tilted = mass(tilt(weights, total, self.beta), success.cpu())
            found["gained"] = tilted - mass(weights, success.cpu())
        for name, value in found.items():
            self.whole_run[name] = self.whole_run.get(name, 0.0) + float(value.sum())
        return found["moved"]

    def _add_labelled(
        self, weights: Tensor, scores: Tensor, success: Tensor, bound: Tensor
    ) -> None:
        path = gap_path(weights, scores, success, self.beta)
        shift = mass(tilt(weights, scores, self.beta), success) - mass(weights, success)
        self.excess = max(self.excess, float((shift.abs() - bound).max()))
        per_cloud = {
            "gap": gap(weights, scores, success), "gap_at_beta": path[-1],
            "smallest_gap": path.amin(0), "shift": shift, "success": mass(weights, success),
        }  # fmt: skip
        for name, value in per_cloud.items():
            there = ~value.isnan()
            _add_to(self.labelled, **{name: torch.where(there, value, 0.0)})
            _add_to(self.terms, **{name: there.double()})
        won, pairs = won_pairs(scores, success)
        _add_to(self.labelled, auroc=won)
        _add_to(self.terms, auroc=pairs)
        for word, some in (("right", success), ("wrong", ~success)):
            some = some & torch.isfinite(scores)
            for power in (1, 2):
                name = f"{word}{power}"
                _add_to(self.labelled, **{name: torch.where(some, scores**power, 0.0).sum(-1)})
                _add_to(self.terms, **{name: some.sum(-1).double()})

    def suggested_beta(self, share: float = 0.5) -> float | None:
        """The smallest of BETAS whose tilt over the recorded run moves at least `share` of the mass
        that selecting the best particle would move; None if none does. Needs no labels."""
        wanted = share * float(self.reach[-1])
        enough = [b for b, r in zip(BETAS, self.reach.tolist(), strict=False) if r >= wanted > 0]
        return enough[0] if enough else None

    def figures(self) -> dict[str, Any]:
        """Means over puzzles for every outer step; those that need labels only if given."""
        count = max(1, self.puzzles)
        found: dict[str, Any] = {name: (s / count).tolist() for name, s in self.unlabelled.items()}
        found["beta"] = self.beta
        found["reach"] = dict(zip((*BETAS, "hard"), (self.reach / count).tolist(), strict=True))
        found["whole_run"] = {name: total / count for name, total in self.whole_run.items()}
        found["suggested_beta"] = self.suggested_beta()
        if self.labelled:
            means = {n: s / self.terms[n] for n, s in self.labelled.items()}  # NaN without a term
            for word in ("right", "wrong"):
                first, second = means.pop(f"{word}1"), means.pop(f"{word}2")
                means[f"score_{word}"] = first
                means[f"score_{word}_std"] = (second - first.square()).clamp_min(0).sqrt()
            found |= {name: value.tolist() for name, value in means.items()}
            found["largest_excess_over_bound"] = self.excess
        return found


def _add_to(sums: dict[str, Tensor], **values: Tensor) -> None:
    """Add values (puzzle, step), summed over puzzles, to the sums (step,) of the same names."""
    for name, value in values.items():
        sums[name] = sums.get(name, torch.zeros(value.shape[1]).double()) + value.sum(0)
