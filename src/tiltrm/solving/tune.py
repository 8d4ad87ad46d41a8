"""Choose noise, beta, plan and threshold of adaptive solving for one model.

1. Trajectories of every second puzzle are recorded (`tiltrm.solving.tune_recording`).
2. Plans are played on the recordings (`tiltrm.solving.playing`) and improved one number at a
   time. A plan is worth its share of right answers less PRICE for every outer step that it costs.
   Where the task's own plan ends in stages that guess, so does the chosen one; what they do with
   the puzzles that come to them is measured by real runs, since recordings cannot say.
3. The chosen plan and the task's own are run on the other puzzles. The chosen one is kept where it
   is right as often there at fewer evaluations, or at more evaluations right so much more often
   that it is worth PRICE and hardly chance. The calibration of the confidence comes from this run.

Right means equal to the label, where there are labels; otherwise valid by the rules of the task;
otherwise equal to the answer on which the trajectories agree. Proved by tests/solving/test_tune.py.
"""

import hashlib
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch

from tiltrm.data import Puzzles
from tiltrm.errors import DataError, SettingsError
from tiltrm.explore.inputs import device_of
from tiltrm.explore.running import run_search
from tiltrm.explore.search import NOT_DECIDED, adaptive_search
from tiltrm.model.base import RecursiveModel, evaluations_per_step
from tiltrm.model.puzzle_rows import chosen_puzzle
from tiltrm.solving.confidence import FEWEST as FEWEST_CALIBRATED
from tiltrm.solving.confidence import Calibration, StopFeatures, fit
from tiltrm.solving.methods import (
    AdaptivePlan,
    Stopping,
    adaptive_plan,
    path_values,
    stopping_rules,
)
from tiltrm.solving.plan_search import PRICE, PlanPoint, PlanSearch
from tiltrm.solving.plans import TunedPlan, plan_clues, plan_views
from tiltrm.solving.playing import PlanRecording, Played
from tiltrm.solving.reserve import End, Stages, beginning, best_end, ends, particle_steps
from tiltrm.solving.tidy import with_tidy_answers
from tiltrm.solving.trajectories import answer_numbers, follow_many
from tiltrm.solving.tune_recording import (
    AGREEMENT,
    LABELS,
    MOST,
    MOST_ENDED,
    QUIET,
    RULES,
    SHARES,
    Recorder,
)
from tiltrm.solving.tune_store import Arrays, PartStore
from tiltrm.statistics import at_most
from tiltrm.tasks.base import exactly_right
from tiltrm.tasks.published import keeps_rules, labels_on_board, require_rules
from tiltrm.tasks.registry import defaults_of

JUDGES = (LABELS, RULES, AGREEMENT)
FEWEST = 40  # puzzles; half of them choose, half of them check
FEWEST_ENDED = 8  # puzzles for which the budget must suffice where an end is to be longer
PART_SECONDS = 20.0
CHANCE = 0.2  # a gain that costs evaluations is kept unless it is likelier than this by chance
TIMED = 0.3  # seconds that a run takes to say how fast the model is
CHECKED = {  # columns of a real run, with their kinds of numpy types
    "decided_by": "U", "confidence": "f", "halt_probability": "f", "outer_steps": "i",
    "evaluations": "i", "valid": "b", "right": "b", "answer": "i",
}  # fmt: skip

Tick = Callable[[float], None]  # evaluations spent so far


class Checked(NamedTuple):
    """A plan on puzzles that it was not chosen on."""

    puzzles: int
    right: int
    evaluations: float  # per puzzle


class Pairs(NamedTuple):
    """Puzzles on which one of two plans is right and the other is not."""

    won: int
    lost: int

    @classmethod
    def of(cls, own: Arrays, usual: Arrays) -> "Pairs":
        """From columns `right` for the same puzzles."""
        one, other = own["right"], usual["right"]
        return cls(int((one & ~other).sum()), int((other & ~one).sum()))


def is_worth_keeping(own: Arrays, usual: Arrays, price: float) -> bool:
    """Whether a plan is right as often for less, or so much more often that it is worth the price.

    Both have the columns right and evaluations, for the same puzzles. price: of an evaluation, in
    right answers. A gain that costs must also pass a sign test, a mild one: whoever keeps a plan
    for a gain that was chance pays evaluations, whoever turns down a true one gives away answers.
    """
    won, lost = Pairs.of(own, usual)
    dearer = own["evaluations"].mean() - usual["evaluations"].mean()
    if dearer < 0:
        return won >= lost
    gain = (won - lost) / len(own["right"])
    return gain > price * dearer and at_most(lost, won + lost, 0.5) <= CHANCE


@dataclass(frozen=True)
class Tuning:
    """The outcome of a tuning run."""

    chosen: TunedPlan
    kept: bool  # False: the task's own plan stays, by `is_worth_keeping`
    judge: str
    puzzles: int  # that the plan was chosen on
    played: Played  # the chosen plan on the recordings
    checked: Checked
    untuned: Checked
    pairs: Pairs  # of these two
    evaluations: int  # spent on all of this
    frontier: tuple[PlanPoint, ...]
    calibration: Calibration | None
    end: End | None = None  # the stages of the chosen plan that guess, as measured

    def as_mapping(self) -> dict[str, Any]:
        """The content of tuned.json but for the task and the names of the puzzles."""
        return {
            **self.chosen.as_mapping(), "kept": self.kept, "judge": self.judge,
            "puzzles": self.puzzles, "played": self.played._asdict(),
            "checked": self.checked._asdict(), "untuned": self.untuned._asdict(),
            **self.pairs._asdict(), "evaluations": self.evaluations,
            "frontier": [point._asdict() for point in self.frontier],
        }  # fmt: skip


class Tuner:
    """A tuning run: `Tuner(...).run()`. A killed run continues with the same arguments."""

    def __init__(
        self, model: RecursiveModel, puzzles: Puzzles, store: PartStore, *, seed: int = 0,
        judge: str | None = None, rules: bool = False, evaluations: int | None = None,
        minutes: float | None = None, per_puzzle: float = math.inf, tick: Tick | None = None,
        data: str = "",
    ) -> None:  # fmt: skip
        """judge: who says which answers are right; None: labels, else rules, else agreement; on
        mazes rules, since their labels are one of many shortest paths.

        rules: choose among plans that stop at a valid solution only. evaluations, minutes: the
        budget; minutes become evaluations once, at the speed measured at the start. per_puzzle:
        evaluations that a plan may spend on one puzzle.
        """
        usual = defaults_of(puzzles.task).stopping
        if judge is None and usual.get("shortest_visited"):
            judge = RULES
        if judge == LABELS:
            puzzles.labels()
        if len(puzzles) < FEWEST:
            raise DataError(f"expected at least {FEWEST} puzzles to tune on, got {len(puzzles)}")
        model = with_tidy_answers(model, puzzles.task)
        self.model, self.task, self.store, self.seed = model, puzzles.task, store, seed
        self.data, self._tick = data, tick or (lambda spent: None)
        if rules or judge == RULES:
            require_rules(puzzles.task, "tuning by rules")
        self.rules = rules or usual.get("rules", False)
        labelled = puzzles.answers is not None and judge in (None, LABELS)
        self.labels = None
        if labelled:  # what an answer holds outside its board does not count
            self.labels = labels_on_board(self.task, puzzles.questions, puzzles.labels())
        self.tokens = puzzles.questions
        self.per_step, self.per_puzzle = evaluations_per_step(model), per_puzzle
        self.spent = 0
        speed = store.once("speed", self._speed)
        self.budget = int(
            evaluations if evaluations is not None
            else store.once("budget", lambda: speed * 60.0 * (minutes or 10.0))
        )  # fmt: skip
        self.part_size = max(1.0, speed * PART_SECONDS)  # evaluations
        self.expected_seconds = self.budget / speed
        everyone = torch.arange(len(puzzles))
        self.choosing, self.checking = everyone[::2], everyone[1::2]
        least = FEWEST / 2 * QUIET * self.per_step / SHARES["quiet"]
        if self.budget < least:
            raise SettingsError(
                f"a budget must be at least {math.ceil(least):,} evaluations for this model, got "
                f"{self.budget:,}; give more --evaluations or --minutes"
            )
        self.usual = adaptive_plan(model, self.task, tuned=False, **(
            {"rules": True} if self.rules else {}))  # fmt: skip
        self.ends = ends(self.usual.plan, per_puzzle / self.per_step / 2)
        self.recorder = Recorder(
            model, self.task, self.tokens, self.labels, store, seed=seed,
            judge=LABELS if labelled else judge, budget=self.budget, part_size=self.part_size,
            spend=self._spend, most=MOST_ENDED if self.ends else MOST,
        )  # fmt: skip

    def _spend(self, evaluations: int) -> None:
        self.spent += evaluations
        self._tick(self.spent)

    def run(self) -> Tuning:
        """Record, choose, check."""
        rows = self.recorder.affordable(self.choosing)
        recording = self.recorder.record(rows)
        judge, usual = self.recorder.judge, self.usual
        assert judge is not None
        search = PlanSearch(recording, self.model, rules=self.rules, per_puzzle=self.per_puzzle)
        end = None if search.needs_no_end() else self._measured_end(recording, rows)
        if end is not None:
            search = search.ending_in(end)
        chosen, played = search.chosen(usual.plan)
        own = AdaptivePlan(chosen.plan, Stopping.of(
            self.model, halt_above=chosen.halt_above, rules=self.rules), "halting",
            chosen_puzzle(self.model))  # fmt: skip
        results = self._check({"tuned": own, "untuned": usual})
        checked, untuned = (self._score(results[name]) for name in ("tuned", "untuned"))
        both = results["tuned"], results["untuned"]
        kept = is_worth_keeping(*both, price=PRICE / self.per_step)
        final, name = (own, "tuned") if kept else (usual, "untuned")
        return Tuning(
            chosen, kept, judge, len(rows), played, checked, untuned, Pairs.of(*both), self.spent,
            search.frontier(), self._calibration(results[name], final), end,
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

    def _measured_end(self, recording: PlanRecording, choosing: torch.Tensor) -> End | None:
        """The stages that guess, run on puzzles that the trajectory without noise leaves open.

        None where the usual plan has none, or nobody can say that a guess was right. An answer
        counts as right if a stopping rule decided it: votes are known after the longest end only.
        """
        if not self.ends or self.recorder.judge == AGREEMENT:
            return None
        first, budget = beginning(self.usual.plan), SHARES["end"] * self.budget
        begun = particle_steps(first) * self.per_step

        def cost(end: Stages) -> float:  # of a puzzle that is decided after an eighth of the end
            return begun + particle_steps(end) * self.per_step / 8

        choices = [e for e in self.ends if FEWEST_ENDED * cost(e) <= budget] or self.ends[:1]
        plan = self.usual._replace(plan=replace(
            self.usual.plan, stages=(*first, *choices[-1]), noise=next(iter(recording.noisy), 0.0),
        ))  # fmt: skip
        rows = choosing[np.flatnonzero(recording.rows >= 0)]
        right, spent = np.zeros(0, bool), np.zeros(0)
        if len(rows) and budget >= FEWEST_ENDED * begun:
            size = max(1, int(self.part_size / (plan.plan.particle_steps * self.per_step)))
            found = self._run({"end": plan}, rows, size, 1, self.spent + budget)["end"]
            right = found["right"] & ~np.isin(found["decided_by"], NOT_DECIDED)
            spent = found["evaluations"] - begun
        came = spent > 0
        return best_end(choices, right[came], spent[came], self.per_step, PRICE)

    def _check(self, plans: dict[str, AdaptivePlan]) -> dict[str, Arrays]:
        """Run the plans on the puzzles that check, until the budget is spent."""
        size = min(64, max(8, int(self.part_size / (4 * 48 * self.per_step))))
        return self._run(plans, self.checking, size, FEWEST // 2, self.budget)

    def _run(
        self, plans: dict[str, AdaptivePlan], puzzles: torch.Tensor, size: int, least: int,
        budget: float,
    ) -> dict[str, Arrays]:  # fmt: skip
        """Run the plans in parts, the first of so many puzzles; the columns by name.

        least: puzzles after which it ends once the tuning run has spent so much.
        """
        parts: dict[str, list[Arrays]] = {name: [] for name in plans}
        first = 0
        while first < len(puzzles):
            rows = puzzles[first : first + size]
            if first >= least and self.spent > budget:
                break
            for name, plan in plans.items():
                made = self.store.part(
                    f"check-{name}-{first}-{_key(plan)}", lambda p=plan, r=rows: self._solve(p, r),  # type: ignore[misc]
                    shape=(len(rows),), kinds=CHECKED,
                )  # fmt: skip
                if self.recorder.judge == AGREEMENT:
                    noise = next(iter(plans.values())).plan.noise
                    agreed = self.recorder.agreed(f"agreed-{first}-{noise:g}", rows, noise)
                    made = {**made, "right": made["answer"] == agreed}
                parts[name].append(made)
                self._spend(int(made["evaluations"].sum()))
            first += len(rows)
            costs = [np.mean([p["evaluations"].mean() for p in found]) for found in parts.values()]
            size = max(1, int(self.part_size / max(costs)))  # a part takes PART_SECONDS
        return {
            name: {column: np.concatenate([p[column] for p in found]) for column in found[0]}
            for name, found in parts.items()
        }

    def _solve(self, own: AdaptivePlan, rows: torch.Tensor) -> Arrays:
        """The columns of real runs, with the confidence as the stopping rule sees it."""
        tokens = self.tokens[rows]
        rules = stopping_rules(
            self.model, self.task.is_solved if own.stopping.rules else None, own.stopping
        )
        views = plan_views(own.plan, self.task, self.model, device_of(self.model, tokens))
        visited = path_values(self.task) if own.stopping.shortest_visited else None
        clues = plan_clues(own.plan, self.task)
        search = adaptive_search(self.model, own.plan, rules, None, views, visited, clues)
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
        if self.recorder.judge == AGREEMENT or len(results["right"]) < FEWEST_CALIBRATED:
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
