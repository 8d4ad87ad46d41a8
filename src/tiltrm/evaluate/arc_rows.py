"""ARC results as rows of a table: pass@1, pass@2, evaluations, and paired tests on the same tasks.

Proved by tests/evaluate/test_arc.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiltrm.evaluate.arc import PASSED, ArcMethod
from tiltrm.evaluate.compare import Paired, paired_gaps
from tiltrm.evaluate.shards import Shard
from tiltrm.evaluate.summary import Array, Spread
from tiltrm.evaluate.table import align, percent
from tiltrm.solving.arc_votes import RANKINGS


@dataclass(frozen=True, eq=False)
class ArcRow:
    """One method on the tasks whose outputs are known."""

    title: str
    own: ArcMethod
    tasks: tuple[str, ...]
    passed: Mapping[tuple[str, int], Array]  # by ranking and attempts: (seed, task) bool
    evaluations: Array  # (seed, task), of all test inputs of the task
    inputs: Array  # (task,) test inputs

    def share(self, ranking: str, attempts: int) -> Spread:
        """The share of tasks that are right."""
        return Spread.over(list(self.passed[ranking, attempts]))

    @property
    def cost(self) -> Spread:
        """Evaluations of a test input."""
        return Spread.of([float(run.sum() / self.inputs.sum()) for run in self.evaluations])

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        shares = {
            f"pass_{attempts}" + ("" if ranking == RANKINGS[0] else f"_{ranking}"):
            self.share(ranking, attempts)._asdict()
            for ranking, attempts in self.passed
        }  # fmt: skip
        return {
            "title": self.title, "method": self.own.method, "settings": dict(self.own.settings),
            "augmentations": self.own.augmentations, "tasks": len(self.tasks),
            "runs": len(self.evaluations), **shares, "evaluations": self.cost._asdict(),
            "solved": [name for place, name in enumerate(self.tasks)
                       if self.passed[RANKINGS[0], 2][:, place].all()],
        }  # fmt: skip


def arc_row(own: ArcMethod, task: str, names: Sequence[str], shards: Sequence[Shard]) -> ArcRow:
    """The row of a method from its shards of all seeds and folds. names: of the scored tasks."""
    seeds = 1 + max(shard.job.seed for shard in shards)
    columns = ("evaluations", "inputs", *PASSED.values())
    tables = {name: np.zeros((seeds, len(names)), shards[0][name].dtype) for name in columns}
    for shard in shards:
        for name, table in tables.items():
            table[shard.job.seed, shard["puzzle"]] = shard[name]
    passed = {key: tables[name] for key, name in PASSED.items()}
    inputs = tables["inputs"][0]
    return ArcRow(own.title(task), own, tuple(names), passed, tables["evaluations"], inputs)


def compare_rows(one: ArcRow, other: ArcRow, attempts: int = 2) -> Paired:
    """pass@1 or pass@2 of two methods on the same tasks, averaged over seeds, by our ranking."""
    key = RANKINGS[0], attempts
    return paired_gaps(one.passed[key].mean(0) - other.passed[key].mean(0))


def arc_table(rows: Sequence[ArcRow]) -> str:
    """One line per method, shares in percent with standard deviations over seeds."""
    heads = ["method", "tasks", "runs", "pass@1 %", "pass@2 %", "pass@1 % by votes",
             "pass@2 % by votes", "evaluations/test input"]  # fmt: skip
    lines = [
        [row.title, str(len(row.tasks)), str(len(row.evaluations)),
         *(percent(row.share(*key)) for key in PASSED), f"{row.cost.mean:,.1f}"]
        for row in rows
    ]  # fmt: skip
    return align([heads, *lines], left=1)
