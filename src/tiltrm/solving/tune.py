"""Choose noise, beta, plan and threshold of adaptive solving for one model.

1. One trajectory without noise is recorded on every second puzzle, then a few noisy ones at several
   noises on the puzzles that it leaves open, then many at the noise that solves most of them, and
   at the one that solves most of the rest.
2. Plans are played on the recordings (`tiltrm.solving.trajectories`) and improved one number at a
   time. A plan is worth its share of right answers less PRICE for every 48 outer steps it costs.
3. The chosen plan and the task's own are run on the other puzzles. The chosen one is kept unless it
   is right less often there. The calibration of the confidence comes from this run.

Right means equal to the label, where there are labels; otherwise valid by the rules of the task;
otherwise equal to the answer on which the trajectories agree. Proved by tests/solving/test_tune.py.
"""

import hashlib
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from tiltrm.data import Puzzles
from tiltrm.errors import DataError, SettingsError
from tiltrm.explore.inputs import device_of
from tiltrm.explore.running import run_search
from tiltrm.explore.search import adaptive_search
from tiltrm.model.base import RecursiveModel, evaluations_per_step
from tiltrm.model.puzzle_rows import chosen_puzzle
from tiltrm.solving.confidence import FEWEST as FEWEST_CALIBRATED
from tiltrm.solving.confidence import Calibration, StopFeatures, fit
from tiltrm.solving.methods import AdaptivePlan, Stopping, adaptive_plan, stopping_rules
from tiltrm.solving.plan_search import PlanPoint, PlanSearch, with_usual_end
from tiltrm.solving.plans import TunedPlan, plan_views
from tiltrm.solving.trajectories import (
    Array,
    PlanRecording,
    Played,
    TrajectoryRecord,
    answer_numbers,
    follow_many,
    join,
)
from tiltrm.solving.tune_store import Arrays, PartStore
from tiltrm.tasks.base import exactly_right
from tiltrm.tasks.published import has_rules, keeps_rules, require_rules
from tiltrm.tasks.registry import defaults_of

LABELS, RULES, AGREEMENT = "labels", "rules", "agreement"
JUDGES = (LABELS, RULES, AGREEMENT)
NOISES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
QUIET, PROBED, LONG = 48, 16, 32  # outer steps of the three kinds of recordings
EASY_BY = 20  # outer steps by which a puzzle that needs no noise is decided
BLOCK, MOST = 8, 512  # noisy trajectories recorded at first, doubled each time, and at most
BEGINS = (0, *(BLOCK << n for n in range((MOST // BLOCK).bit_length() - 1)))  # 0, 8, 16, 32, ...
ENOUGH = 4  # successes after which a puzzle needs no more trajectories
FEWEST = 40  # puzzles; half of them choose, half of them check
SPENT = {"quiet": 0.15, "probe": 0.15, "long": 0.3}  # shares of the budget; the rest checks
PART_SECONDS = 20.0
TIMED = 0.3  # seconds that a run takes to say how fast the model is

Tick = Callable[[float], None]  # evaluations spent so far


class Checked(NamedTuple):
    """A plan on puzzles that it was not chosen on."""

    puzzles: int
    right: int
    evaluations: float  # per puzzle


@dataclass(frozen=True)
class Tuning:
    """The outcome of a tuning run."""

    chosen: TunedPlan
    kept: bool  # False: the task's own plan was right more often on the puzzles that check
    judge: str
    puzzles: int  # that the plan was chosen on
    played: Played  # the chosen plan on the recordings
    checked: Checked
    untuned: Checked
    evaluations: int  # spent on all of this
    frontier: tuple[PlanPoint, ...]
    calibration: Calibration | None

    def as_mapping(self) -> dict[str, Any]:
        """The content of tuned.json but for the task and the names of the puzzles."""
        return {
            **self.chosen.as_mapping(), "kept": self.kept, "judge": self.judge,
            "puzzles": self.puzzles, "played": self.played._asdict(),
            "checked": self.checked._asdict(), "untuned": self.untuned._asdict(),
            "evaluations": self.evaluations,
            "frontier": [point._asdict() for point in self.frontier],
        }  # fmt: skip


class Tuner:
    """A tuning run: `Tuner(...).run()`. A killed run continues with the same arguments."""

    def __init__(
        self, model: RecursiveModel, puzzles: Puzzles, store: PartStore, *, seed: int = 0,
        judge: str | None = None, rules: bool = False, evaluations: int | None = None,
        minutes: float | None = None, tick: Tick | None = None, data: str = "",
    ) -> None:  # fmt: skip
        """judge: who says which answers are right; None: labels, else rules, else agreement.

        rules: choose among plans that stop at a valid solution only. evaluations, minutes: the
        budget; minutes become evaluations once, at the speed measured at the start.
        """
        if judge == LABELS:
            puzzles.labels()
        if len(puzzles) < FEWEST:
            raise DataError(f"expected at least {FEWEST} puzzles to tune on, got {len(puzzles)}")
        self.model, self.task, self.store, self.seed = model, puzzles.task, store, seed
        self.data, self.tick = data, tick or (lambda spent: None)
        if rules or judge == RULES:
            require_rules(puzzles.task, "tuning by rules")
        self.rules = rules or defaults_of(puzzles.task).rules
        labelled = puzzles.answers is not None and judge in (None, LABELS)
        self.labels = puzzles.answers if labelled else None
        self.tokens = puzzles.questions
        self.judge = LABELS if labelled else judge
        self.per_step = evaluations_per_step(model)
        self.symmetric = defaults_of(self.task).symmetric_views
        self.spent = 0
        speed = store.once("speed", self._speed)
        self.budget = int(
            evaluations if evaluations is not None
            else store.once("budget", lambda: speed * 60.0 * (minutes or 10.0))
        )  # fmt: skip
        self.part_size = max(1.0, speed * PART_SECONDS)  # evaluations
        everyone = torch.arange(len(puzzles))
        self.choosing, self.checking = everyone[::2], everyone[1::2]
        least = FEWEST / 2 * QUIET * self.per_step / SPENT["quiet"]
        if self.budget < least:
            raise SettingsError(
                f"a budget must be at least {math.ceil(least):,} evaluations for this model, got "
                f"{self.budget:,}; give more --evaluations or --minutes"
            )

    def run(self) -> Tuning:
        """Record, choose, check."""
        recording = self._record()
        search = PlanSearch(recording, self.model, rules=self.rules)
        chosen, played = search.best()
        usual = adaptive_plan(self.model, self.task, tuned=False, **(
            {"rules": True} if self.rules else {}))  # fmt: skip
        chosen = search.with_reserve(chosen)
        chosen = chosen._replace(plan=with_usual_end(chosen.plan, usual.plan))
        own = AdaptivePlan(chosen.plan, Stopping.of(
            self.model, halt_above=chosen.halt_above, rules=self.rules), "halting",
            chosen_puzzle(self.model))  # fmt: skip
        results = self._check({"tuned": own, "untuned": usual})
        checked, untuned = (self._score(results[name]) for name in ("tuned", "untuned"))
        kept = checked.right >= untuned.right
        final, name = (own, "tuned") if kept else (usual, "untuned")
        return Tuning(
            chosen, kept, self._judge(), len(self._quiet_rows()), played, checked, untuned,
            self.spent, search.frontier(), self._calibration(results[name], final),
        )  # fmt: skip

    def calibrate(self) -> tuple[Calibration, Checked]:
        """The calibration of the plan that the model has, on all puzzles."""
        self.checking = torch.arange(len(self.tokens))
        own = adaptive_plan(self.model, self.task, **({"rules": True} if self.rules else {}))
        results = self._check({"own": own})["own"]
        found = self._calibration(results, own)
        if found is None:
            raise DataError(
                f"expected at least {FEWEST_CALIBRATED} puzzles to calibrate on, got "
                f"{len(results['valid'])}; give more puzzles, or a larger budget"
            )
        return found, self._score(results)

    def _speed(self) -> float:
        """Evaluations per second, from runs that grow until one takes long enough to be timed."""
        puzzles, took = 8, 0.0
        while took < TIMED and puzzles <= 2048:
            few = self.tokens[torch.arange(puzzles) % len(self.tokens)]
            begun = time.perf_counter()
            follow_many(self.model, self.task, few, None, which=range(1), steps=2, noise=0.0,
                        symmetric=False, seed=0)  # fmt: skip
            took = time.perf_counter() - begun
            puzzles *= 2
            if puzzles == 16:
                took = 0.0  # the first run warms up
        return puzzles * self.per_step / max(took, 1e-6)  # puzzles / 2, 2 steps each

    def _judge(self) -> str:
        assert self.judge is not None
        return self.judge

    def _quiet_rows(self) -> torch.Tensor:
        most = int(SPENT["quiet"] * self.budget / (QUIET * self.per_step))
        return self.choosing[:most]

    def _trajectories(
        self, name: str, rows: torch.Tensor, which: range, steps: int, noise: float
    ) -> TrajectoryRecord:
        """Recorded in parts of bounded cost."""
        cost = len(which) * steps * self.per_step
        size = max(1, int(self.part_size / cost))
        parts = []
        for first in range(0, len(rows), size):
            own = rows[first : first + size]
            parts.append(self._part(f"{name}-{first}", own, which, steps, noise))
            self.spent += len(own) * cost
            self.tick(self.spent)
        return join(parts, 0)

    def _part(
        self, name: str, rows: torch.Tensor, which: range, steps: int, noise: float
    ) -> TrajectoryRecord:
        def make() -> Arrays:
            known = None if self.labels is None else self.labels[rows]
            symmetric = self.symmetric and name != "quiet" and not name.startswith("quiet-")
            return follow_many(
                self.model, self.task, self.tokens[rows], known, which=which, steps=steps,
                noise=noise, symmetric=symmetric, seed=self.seed,
            )._asdict()  # fmt: skip

        return TrajectoryRecord(**self.store.part(name, make))

    def _record(self) -> PlanRecording:
        """The recordings that plans are played on."""
        rows = self._quiet_rows()
        quiet = self._trajectories("quiet", rows, range(1), QUIET, 0.0)
        if self.judge is None:
            usable = has_rules(self.task) and quiet.valid.any()
            self.judge = RULES if usable else AGREEMENT
        quiet = self._judged(quiet)
        open_ = np.flatnonzero(~self._easy(quiet))
        noises = [noise for noise in NOISES if noise or self.symmetric]
        per_puzzle = ENOUGH * PROBED * self.per_step * len(noises)
        probed = open_[: max(4, int(SPENT["probe"] * self.budget / per_puzzle))]
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
                f"no sign that this model solves anything: no answer is right by {self._judge()}; "
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
        self, rows: torch.Tensor, quiet: TrajectoryRecord, open_: Array, first: float, second: float
    ) -> PlanRecording:
        """Many trajectories of the open puzzles, fewer where they succeed."""
        budget = SPENT["long"] * self.budget
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
                if begin and (len(need) == 0 or left < cost):
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

    def _check(self, plans: dict[str, AdaptivePlan]) -> dict[str, Arrays]:
        """Run the plans on the puzzles that check, until the budget is spent."""
        parts: dict[str, list[Arrays]] = {name: [] for name in plans}
        size = max(8, int(self.part_size / (4 * 48 * self.per_step)))
        for first in range(0, len(self.checking), size):
            rows = self.checking[first : first + size]
            if first >= FEWEST / 2 and self.spent > self.budget:
                break
            for name, plan in plans.items():
                made = self.store.part(
                    f"check-{name}-{first}-{_key(plan)}", lambda p=plan, r=rows: self._solve(p, r)  # type: ignore[misc]
                )  # fmt: skip
                if self.judge == AGREEMENT:
                    noise = plans["tuned"].plan.noise
                    made = {**made, "right": made["answer"] == self._agreed(rows, first, noise)}
                parts[name].append(made)
                self.spent += int(made["evaluations"].sum())
                self.tick(self.spent)
        return {
            name: {column: np.concatenate([p[column] for p in found]) for column in found[0]}
            for name, found in parts.items()
        }

    def _agreed(self, rows: torch.Tensor, first: int, noise: float) -> Array:
        """The answers on which noisy trajectories agree, as numbers: (puzzle,)."""
        found = self._part(f"agreed-{first}-{noise:g}", rows, range(BLOCK), PROBED, noise)
        return _consensus(found)

    def _solve(self, own: AdaptivePlan, rows: torch.Tensor) -> Arrays:
        """The columns of real runs, with the confidence as the stopping rule sees it."""
        tokens = self.tokens[rows]
        rules = stopping_rules(
            self.model, self.task.is_solved if own.stopping.rules else None, own.stopping
        )
        views = plan_views(own.plan, self.task, self.model, device_of(self.model, tokens))
        search = adaptive_search(self.model, own.plan, rules, None, views)
        found = run_search(search, tokens, seed=self.seed)
        valid = keeps_rules(self.task, tokens, found.answers)
        right = valid if self.labels is None else exactly_right(found.answers, self.labels[rows])
        return {
            "decided_by": np.array(found.decided_by), "confidence": found.confidence.numpy(),
            "halt_probability": found.halt_probability.numpy(),
            "outer_steps": found.outer_steps.numpy(), "evaluations": found.evaluations.numpy(),
            "valid": valid.numpy(), "right": right.numpy(),
            "answer": answer_numbers(found.answers).numpy(),
        }  # fmt: skip

    def _score(self, results: Arrays) -> Checked:
        right = results["right"]
        return Checked(len(right), int(right.sum()), float(results["evaluations"].mean()))

    def _calibration(self, results: Arrays, own: AdaptivePlan) -> Calibration | None:
        """None without a judge of single answers, or with too few of them."""
        if self.judge == AGREEMENT or len(results["right"]) < FEWEST_CALIBRATED:
            return None
        features = StopFeatures(
            [str(name) for name in results["decided_by"]],
            *(torch.from_numpy(results[name]) for name in (
                "confidence", "halt_probability", "outer_steps", "valid")),
        )  # fmt: skip
        return fit(
            features, torch.from_numpy(results["right"]), task=self.task.name, data=self.data,
            judge=LABELS if self.labels is not None else RULES, settings=own.settings(),
        )  # fmt: skip


def _key(plan: AdaptivePlan) -> str:
    return hashlib.sha256(json.dumps(plan.settings(), sort_keys=True).encode()).hexdigest()[:8]


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
