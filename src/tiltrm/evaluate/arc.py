"""Methods on ARC tasks: their settings, their searches, and what one run of them measures.

A task counts as right if all of its test inputs are right, by the first attempt (pass@1) or by one
of two (pass@2), as ARC's evaluators count. Every run is ranked twice: by our weights, and by votes
as the peers do (`tiltrm.solving.arc_votes`). Proved by tests/evaluate/test_arc.py.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tiltrm.data.arc_puzzles import AnyArc
from tiltrm.data.arc_questions import ArcQuestion
from tiltrm.data.arc_submission import Attempts, score
from tiltrm.errors import SettingsError
from tiltrm.evaluate.options import PRECISION, complete
from tiltrm.evaluate.peers import Case, exploration, planned_search
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
PASSED = {  # the columns of a measurement by ranking and attempts
    (RANKINGS[0], 1): "exact", (RANKINGS[0], 2): "pass_2",
    (RANKINGS[1], 1): "pass_1_votes", (RANKINGS[1], 2): "pass_2_votes",
}  # fmt: skip
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
    if PRECISION in given:
        raise SettingsError(f"{PRECISION} is not for ARC tasks; leave it out")
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


def measure_arc(
    search: StagedSearch, task: AnyArc, questions: Sequence[ArcQuestion], seed: int, *,
    at_once: int, tick: Tick | None = None,
) -> dict[str, Tensor]:  # fmt: skip
    """One row for each task in the order of its questions: the columns PASSED, and its cost."""
    found: dict[str, dict[str, list[Attempts]]] = {ranking: {} for ranking in RANKINGS}
    spent: Counter[str] = Counter()
    for answer in solve_arc(search, task, questions, seed=seed, at_once=at_once):
        name = answer.task.name
        for ranking in RANKINGS:
            found[ranking].setdefault(name, []).append(answer.ballot.attempts(ranking))
        spent[name] += answer.evaluations
        if tick is not None:
            tick(answer.ballot.questions)
    tasks = list({one.task.name: one.task for one in questions}.values())
    columns = {
        PASSED[ranking, attempts]: torch.tensor(list(right.values()))
        for ranking in RANKINGS
        for attempts, right in enumerate(score(tasks, found[ranking]), 1)
    }
    columns["evaluations"] = torch.tensor([spent[each.name] for each in tasks])
    columns["inputs"] = torch.tensor([len(each.tests) for each in tasks])
    return columns
