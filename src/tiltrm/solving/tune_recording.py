"""The recordings that `tiltrm tune` plays plans on.

One trajectory without noise of every puzzle, a few noisy ones at several noises of those that it
leaves open, then many at the noise that solves most of these, and at the one that solves most of
the rest. Proved by tests/solving/test_tune.py.
"""

import math
from collections.abc import Callable

import numpy as np
from torch import Tensor

from tiltrm.errors import DataError
from tiltrm.model.base import RecursiveModel, evaluations_per_step
from tiltrm.solving.playing import PlanRecording
from tiltrm.solving.trajectories import Array, TrajectoryRecord, follow_many, join
from tiltrm.solving.tune_store import Arrays, PartStore
from tiltrm.tasks import Task
from tiltrm.tasks.published import has_rules
from tiltrm.tasks.registry import defaults_of

LABELS, RULES, AGREEMENT = "labels", "rules", "agreement"  # judges
NOISES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
QUIET, PROBED, LONG = 48, 16, 32  # outer steps of the three kinds of recordings
EASY_BY = 20  # outer steps by which a puzzle that needs no noise is decided
BLOCK, MOST = 8, 512  # noisy trajectories recorded at first, doubled each time, and at most
BEGINS = (0, *(BLOCK << n for n in range((MOST // BLOCK).bit_length() - 1)))  # 0, 8, 16, 32, ...
ENOUGH = 4  # successes after which a puzzle needs no more trajectories
MOST_ENDED = 64  # at most where stages that guess follow the plan, since no reserve is chosen
SHARES = {"quiet": 0.15, "probe": 0.15, "long": 0.3, "end": 0.15}  # the rest checks plans

RECORDED = {"logits": "f", "answers": "i", "valid": "b", "right": "b"}  # of a TrajectoryRecord

Spend = Callable[[int], None]  # called with the evaluations of each part


class Recorder:
    """Records trajectories of puzzles in parts, and says which answers are right.

    judge: who says it; None: the rules where any answer keeps them, else agreement.
    budget, part_size: evaluations of the whole tuning run and of one part.
    most: noisy trajectories of a hard puzzle, up to MOST; by agreement always MOST, since it cannot
    say that a guess was right.
    """

    def __init__(
        self, model: RecursiveModel, task: Task, tokens: Tensor, labels: Tensor | None,
        store: PartStore, *, seed: int, judge: str | None, budget: int, part_size: float,
        spend: Spend, most: int = MOST,
    ) -> None:  # fmt: skip
        self.model, self.task, self.tokens, self.labels = model, task, tokens, labels
        self.store, self.seed, self.judge = store, seed, judge
        self.budget, self.part_size, self.spend, self.most = budget, part_size, spend, most
        self.per_step = evaluations_per_step(model)
        self.symmetric = defaults_of(task).symmetric_views

    def affordable(self, rows: Tensor) -> Tensor:
        """Those of the puzzles for which the budget has a trajectory without noise."""
        return rows[: int(SHARES["quiet"] * self.budget / (QUIET * self.per_step))]

    def record(self, rows: Tensor) -> PlanRecording:
        """The recordings that plans are played on; DataError where the model solves nothing."""
        quiet = self._trajectories("quiet", rows, range(1), QUIET, 0.0)
        if self.judge is None:
            usable = has_rules(self.task) and quiet.valid.any()
            self.judge = RULES if usable else AGREEMENT
        quiet = self._judged(quiet)
        open_ = np.flatnonzero(~self._easy(quiet))
        noises = [noise for noise in NOISES if noise or self.symmetric]
        per_puzzle = ENOUGH * PROBED * self.per_step * len(noises)
        probed = open_[: max(4, int(SHARES["probe"] * self.budget / per_puzzle))]
        share = {}
        for noise in noises if len(probed) else []:
            found = self._judged(
                self._trajectories(
                    f"probe-{noise:g}", rows[probed], range(ENOUGH), PROBED, noise
                ), rows=probed, quiet=quiet,
            )  # fmt: skip
            share[noise] = self._succeeded(found).mean(1)  # (puzzle,)
        if not (quiet.right[..., -1].any() or any(s.any() for s in share.values())):
            raise DataError(
                f"no sign that this model solves anything: no answer is right by {self.judge}; "
                "check that the puzzles are of the model's task, or train it further"
            )
        first, second = _best_noises(share) if share else (noises[-1], noises[-1])
        return self._long(rows, quiet, open_, first, second)

    def _easy(self, quiet: TrajectoryRecord) -> Array:
        """Puzzles that one trajectory without noise settles soon: (puzzle,) bool."""
        sure = _sure_logit(quiet)
        fine = quiet.settled & quiet.right & (quiet.logits > sure)
        return fine[:, 0, :EASY_BY].any(-1) & quiet.right[:, 0, -1]

    def _judged(
        self,
        found: TrajectoryRecord,
        rows: Array | None = None,
        quiet: TrajectoryRecord | None = None,
    ) -> TrajectoryRecord:
        """With `right` as the judge says it."""
        if self.judge == LABELS:
            return found
        if self.judge == RULES:
            return found._replace(right=found.valid)
        everyone = found if quiet is None or rows is None else join(
            [quiet.part(rows, slice(None), slice(-1, None)), found.part(..., slice(-1, None))], 1
        )  # fmt: skip
        agreed = _consensus(everyone)
        return found._replace(right=found.answers == agreed[:, None, None])

    def _succeeded(self, found: TrajectoryRecord) -> Array:
        """Which trajectories settle on a right answer: (puzzle, trajectory) bool."""
        reached: Array = np.logical_or.reduce(found.settled & found.right, axis=-1)
        return reached

    def _long(
        self, rows: Tensor, quiet: TrajectoryRecord, open_: Array, first: float, second: float
    ) -> PlanRecording:
        """Many trajectories of the open puzzles, fewer where they succeed."""
        budget = SHARES["long"] * self.budget
        most = MOST if self.judge == AGREEMENT else self.most
        taken = open_[: max(4, int(budget / 2 / (BLOCK * LONG * self.per_step)))]
        weight = np.ones(len(rows))
        weight[open_] = 0.0
        if len(taken):
            weight[taken] = len(open_) / len(taken)
        place = np.full(len(rows), -1)
        place[taken] = np.arange(len(taken))
        noisy: dict[float, TrajectoryRecord] = {}
        counts: dict[float, Array] = {}
        successes = np.zeros(len(taken), int)
        left = budget
        for noise in dict.fromkeys((first, second)) if len(taken) else ():
            blocks: list[TrajectoryRecord] = []
            count = np.zeros(len(taken), int)
            for begin in BEGINS:
                size = max(begin, BLOCK)
                need = np.flatnonzero(successes < ENOUGH) if begin or noise != first else (
                    np.arange(len(taken)))  # fmt: skip
                cost = len(need) * size * LONG * self.per_step
                if begin and (begin >= most or len(need) == 0 or left < cost):
                    break
                need = need if len(need) else np.arange(min(4, len(taken)))
                part = self._trajectories(
                    f"long-{noise:g}-{begin}", rows[taken[need]], range(begin, begin + size),
                    LONG, noise,
                )  # fmt: skip
                part = self._judged(part, taken[need], quiet)
                left -= cost
                successes[need] += self._succeeded(part).sum(1)
                count[need] += size
                blocks.append(_spread(part, need, len(taken)))
            recorded = join(blocks, 1)
            if noise != first:  # of easier puzzles only the first noise was recorded
                recorded, count = _filled(recorded, count, noisy[first], counts[first])
            noisy[noise], counts[noise] = recorded, count
        return PlanRecording(quiet, noisy, counts, place, weight, self.per_step, self.symmetric)

    def _trajectories(
        self, name: str, rows: Tensor, which: range, steps: int, noise: float
    ) -> TrajectoryRecord:
        """Recorded in parts of bounded cost."""
        cost = len(which) * steps * self.per_step
        size = max(1, int(self.part_size / cost))
        parts = []
        for first in range(0, len(rows), size):
            own = rows[first : first + size]
            parts.append(self._part(f"{name}-{first}", own, which, steps, noise))
            self.spend(len(own) * cost)
        return join(parts, 0)

    def _part(
        self, name: str, rows: Tensor, which: range, steps: int, noise: float
    ) -> TrajectoryRecord:
        def make() -> Arrays:
            known = None if self.labels is None else self.labels[rows]
            symmetric = self.symmetric and name != "quiet" and not name.startswith("quiet-")
            return follow_many(
                self.model, self.task, self.tokens[rows], known, which=which, steps=steps,
                noise=noise, symmetric=symmetric, seed=self.seed,
            )._asdict()  # fmt: skip

        shape = (len(rows), len(which), steps)
        return TrajectoryRecord(**self.store.part(name, make, shape=shape, kinds=RECORDED))

    def agreed(self, name: str, rows: Tensor, noise: float) -> Array:
        """The answers on which noisy trajectories agree, as numbers: (puzzle,)."""
        return _consensus(self._part(name, rows, range(BLOCK), PROBED, noise))


def _sure_logit(quiet: TrajectoryRecord) -> float:
    """A halt logit that a quarter of the right answers do not reach."""
    logits = quiet.logits[..., -1][quiet.right[..., -1]]
    return float(np.quantile(logits, 0.25)) if len(logits) else math.inf


def _consensus(found: TrajectoryRecord) -> Array:
    """The answer with most of the halting head's trust at the last step: (puzzle,)."""
    trust = 1.0 / (1.0 + np.exp(-found.logits[..., -1].astype(np.float64)))
    now = found.answers[..., -1]
    mass = ((now[:, :, None] == now[:, None]) * trust[:, None]).sum(-1)
    agreed: Array = now[np.arange(len(now)), mass.argmax(1)]
    return agreed


def _best_noises(share: dict[float, Array]) -> tuple[float, float]:
    """The noise with most successes, and the one that does most where that has none."""
    first = max(share, key=lambda noise: (share[noise].mean(), -noise))
    hard = share[first] == 0
    others = [noise for noise in share if noise != first]
    if not hard.any() or not others:
        return first, first
    second = max(others, key=lambda noise: (share[noise][hard].mean(), noise))
    return first, second if share[second][hard].any() else first


def _spread(part: TrajectoryRecord, rows: Array, count: int) -> TrajectoryRecord:
    """The trajectories of some puzzles among all; those of the others are never looked at."""

    def full(values: Array) -> Array:
        out = np.zeros((count, *values.shape[1:]), values.dtype)
        out[rows] = values
        return out

    return TrajectoryRecord(*map(full, part))


def _filled(
    own: TrajectoryRecord, count: Array, other: TrajectoryRecord, others: Array
) -> tuple[TrajectoryRecord, Array]:
    """The records, with those at another noise of the puzzles that have none of their own."""
    size = min(own.logits.shape[1], other.logits.shape[1])
    missing = np.flatnonzero(count == 0)
    for values, given in zip(own, other, strict=True):
        values[missing, :size] = given[missing, :size]
    count = count.copy()
    count[missing] = np.minimum(others[missing], size)
    return own, count
