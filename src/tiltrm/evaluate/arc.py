"""Methods compared on ARC tasks: pass@1, pass@2, evaluations, and paired tests.

A task counts as right if all of its test inputs are right, by the first attempt (pass@1) or by one
of two (pass@2), as ARC's evaluators count. Every run is ranked twice: by our weights, and by votes
as the peers do (`tiltrm.solving.arc_votes`). Proved by tests/evaluate/test_arc.py.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch

from tiltrm.data.arc_files import ArcTask
from tiltrm.data.arc_puzzles import AnyArc
from tiltrm.data.arc_questions import arc_questions
from tiltrm.data.arc_submission import Attempts, score
from tiltrm.errors import SettingsError
from tiltrm.evaluate.compare import Paired, paired_gaps
from tiltrm.evaluate.options import complete
from tiltrm.evaluate.peers import Case, exploration, planned_search
from tiltrm.evaluate.summary import Array, Spread
from tiltrm.evaluate.table import align
from tiltrm.evaluate.titles import title
from tiltrm.explore.search import StagedSearch, fixed_search
from tiltrm.model.base import RecursiveModel
from tiltrm.settings import ADAPTIVE
from tiltrm.solving.arc import solve_arc
from tiltrm.solving.arc_votes import RANKINGS
from tiltrm.solving.confidence import state_confidence
from tiltrm.solving.methods import FIXED
from tiltrm.solving.tidy import with_tidy_answers

AUGMENTATIONS = "augmentations"  # a setting of every method here
SYMMETRY = "symmetry"  # deterministic, with `copies` augmentations
ARC_METHODS = (*FIXED, SYMMETRY, ADAPTIVE)
Tick = Callable[[int], None]  # questions answered


class ArcMethod(NamedTuple):
    """A method with all of its settings, and how many questions each test input gets."""

    method: str
    settings: Mapping[str, Any]  # complete
    augmentations: int

    @property
    def seeded(self) -> bool:
        """Whether the seed changes anything."""
        return self.method != "deterministic" or self.augmentations > 1

    def title(self, task: str) -> str:
        """The method, with the settings that differ from its defaults."""
        said = title(self.method, self.settings.items(), task)
        return f"{said}, {self.augmentations} augmentations" if self.augmentations > 1 else said


def arc_method(method: str, given: Mapping[str, Any], task: str) -> ArcMethod:
    """The complete settings of a method; SettingsError for one that does not fit ARC."""
    if method not in ARC_METHODS:
        raise SettingsError(
            f"method must be one of {', '.join(ARC_METHODS)} for ARC tasks, got {method}"
        )
    own = dict(given)
    count = own.pop(AUGMENTATIONS, 1)
    if method == SYMMETRY:
        whole = complete(SYMMETRY, own, task)
        return arc_method("deterministic", {"outer_steps": whole["outer_steps"],
                                            AUGMENTATIONS: whole["copies"]}, task)  # fmt: skip
    if type(count) is not int or count < 1:
        raise SettingsError(f"{AUGMENTATIONS} must be a whole number >= 1, got {count!r:.60}")
    return ArcMethod(method, complete(method, own, task), count)


def search_of(own: ArcMethod, model: RecursiveModel, task: AnyArc) -> StagedSearch:
    """The search of a method, as `tiltrm.solving.build_search` makes it from fewer settings."""
    model = with_tidy_answers(model, task)
    nothing = torch.zeros(0, task.cells, dtype=torch.uint8)
    case = Case(model, task, nothing, None, own.settings, 0, torch.zeros(0, dtype=torch.int64))
    if own.method == ADAPTIVE:
        search = planned_search(own.method, case)
    else:
        search = fixed_search(model, exploration(own.method, own.settings), case.guide)
    stated = state_confidence(model, task, {} if own.method == ADAPTIVE else None)
    return replace(search, confidence=stated, seconds=case.seconds)


@dataclass(frozen=True, eq=False)
class ArcRow:
    """One method on the tasks whose outputs are known."""

    title: str
    method: str
    settings: Mapping[str, Any]
    augmentations: int
    tasks: tuple[str, ...]
    passed: Mapping[tuple[str, int], Array]  # by ranking and attempts: (seed, task) bool
    evaluations: Array  # (seed, test input)

    def share(self, ranking: str, attempts: int) -> Spread:
        """The share of tasks that are right."""
        return Spread.over(list(self.passed[ranking, attempts]))

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        shares = {
            f"pass_{attempts}" + ("" if ranking == RANKINGS[0] else f"_{ranking}"):
            self.share(ranking, attempts)._asdict()
            for ranking, attempts in self.passed
        }  # fmt: skip
        return {
            "title": self.title, "method": self.method, "settings": dict(self.settings),
            "augmentations": self.augmentations, "tasks": len(self.tasks),
            "runs": len(self.evaluations), **shares,
            "evaluations": Spread.over(list(self.evaluations))._asdict(),
            "solved": [name for place, name in enumerate(self.tasks)
                       if self.passed[RANKINGS[0], 2][:, place].all()],
        }  # fmt: skip


def evaluate_arc(
    own: ArcMethod, model: RecursiveModel, task: AnyArc, tasks: Sequence[ArcTask],
    names: Sequence[str] | None = None, *, seeds: int = 1, at_once: int = 64,
    tick: Tick | None = None,
) -> ArcRow:  # fmt: skip
    """Run a method on the tasks for every seed; a method without randomness runs once."""
    search = search_of(own, model, task)
    scored = [each for each in tasks if each.outputs is not None]
    kept: dict[tuple[str, int], list[list[bool]]] = {}
    spent: list[list[int]] = []
    for seed in range(seeds if own.seeded else 1):
        questions = arc_questions(task, tasks, names, augmentations=own.augmentations, seed=seed)
        found: dict[str, dict[str, list[Attempts]]] = {ranking: {} for ranking in RANKINGS}
        spent.append([])
        wanted = [one for one in questions if one.task.outputs is not None]
        for answer in solve_arc(search, task, wanted, seed=seed, at_once=at_once):
            for ranking in RANKINGS:
                attempts = answer.ballot.attempts(ranking)
                found[ranking].setdefault(answer.task.name, []).append(attempts)
            spent[-1].append(answer.evaluations)
            if tick is not None:
                tick(answer.ballot.questions)
        for ranking in RANKINGS:
            for number, right in enumerate(score(scored, found[ranking]), 1):
                kept.setdefault((ranking, number), []).append(list(right.values()))
    return ArcRow(
        own.title(task.name), own.method, own.settings, own.augmentations,
        tuple(each.name for each in scored), {key: np.array(rows) for key, rows in kept.items()},
        np.array(spent),
    )  # fmt: skip


def compare_rows(one: ArcRow, other: ArcRow, attempts: int = 2) -> Paired:
    """pass@1 or pass@2 of two methods on the same tasks, averaged over seeds, by our ranking."""
    key = RANKINGS[0], attempts
    return paired_gaps(one.passed[key].mean(0) - other.passed[key].mean(0))


def arc_table(rows: Sequence[ArcRow]) -> str:
    """One line per method, shares in percent."""
    heads = ["method", "tasks", "runs", "pass@1 %", "pass@2 %", "pass@1 % by votes",
             "pass@2 % by votes", "evaluations/test input"]  # fmt: skip
    lines = [
        [row.title, str(len(row.tasks)), str(len(row.evaluations)),
         *(f"{100 * row.share(ranking, attempts).mean:.1f}"
           for ranking in RANKINGS for attempts in (1, 2)),
         f"{row.evaluations.mean():,.1f}"]
        for row in rows
    ]  # fmt: skip
    return align([heads, *lines], left=1)
