"""What the drawings may look at: stored shards, and files that a training run left."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tiltrm.diagnose.ranking import wilson
from tiltrm.evaluate import plans
from tiltrm.evaluate.job import Job
from tiltrm.evaluate.shards import Shard
from tiltrm.evaluate.store import Store
from tiltrm.evaluate.summary import Row, Spread, summarise
from tiltrm.evaluate.target import EvalTarget

SUDOKU, MAZE, SWEEP = "sudoku", "maze", "sweep"  # parts that subjects play
BENCHMARKS = {SUDOKU: "Sudoku-Extreme", MAZE: "Maze-Hard"}


@dataclass(frozen=True)
class Evidence:
    """A store with all that the plans asked for.

    `subjects` by the part they play: the two benchmarks, and the puzzles of Sudoku's sweeps, which
    are the validation set where one is given. `absent` says why one is not there.
    """

    store: Store
    size: str
    subjects: Mapping[str, EvalTarget]
    absent: Mapping[str, str]
    metrics: tuple[Path, ...] = ()  # of training runs
    scan: Path | None = None
    frontier: int | None = None  # puzzles of Sudoku's frontier, where not the size's
    chosen: Mapping[str, Any] = field(default_factory=dict)  # settings of Sudoku's guided
    partial: bool = False  # Table 1 and the frontier of those seeds and folds that are done

    def read(self, jobs: Sequence[Job]) -> list[Shard]:
        """Their shards."""
        return self.store.read(jobs)

    def asked(self, jobs: Sequence[Job]) -> list[Job]:
        """The jobs, or as much of them as is done where that is enough."""
        return plans.done(jobs, self.store.has) if self.partial else list(jobs)

    def rows(self, jobs: Sequence[Job]) -> list[Row]:
        """A row for every setting in the order of the jobs, whole splits only."""
        shards = self.read(jobs)
        return [row for row in summarise(shards) if row.split == shards[0].job.split]

    def diagnosis(self, part: str) -> Mapping[str, Any]:
        """The figures of `tiltrm diagnose` with the paper's cloud."""
        (shard,) = self.read(diagnostics(self, part))
        found: Mapping[str, Any] = json.loads(str(shard["figures"][0]))
        return found

    def missing(self, *parts: str) -> tuple[str, ...]:
        """A sentence for each part that is not there."""
        return tuple(self.absent[part] for part in parts if part not in self.subjects)


def table1(evidence: Evidence, part: str) -> list[Job]:
    """The jobs of Table 1, and of Fig. 1."""
    chosen = evidence.chosen if part == SUDOKU else {}
    return evidence.asked(plans.table1(evidence.subjects[part], evidence.size, chosen))


def diagnostics(evidence: Evidence, part: str) -> list[Job]:
    """The job of Figs. 2 (right), 3 and 5 (left), with the paper's settings."""
    return plans.diagnostics(evidence.subjects[part], evidence.size)


def axes(evidence: Evidence, part: str) -> dict[str, list[Job]]:
    """The sweeps by name, of Figs. 2 (left) and 6."""
    return plans.axes(evidence.subjects[part], evidence.size)


def percent(share: float) -> float:
    """100 times a share."""
    return 100.0 * share


def spread_percent(value: Spread | None) -> tuple[float | None, float | None]:
    """Mean and standard deviation in percent."""
    if value is None:
        return None, None
    return percent(value.mean), None if value.sd is None else percent(value.sd)


def interval(row: Row) -> tuple[float, float, float]:
    """Percent exactly right with its 95 % interval over the puzzles: (middle, low, high).

    The row's mean must be over puzzles: of one run, or of folds that were pooled.
    """
    low, high = wilson(round(row.exact.mean * row.puzzles), row.puzzles)
    return percent(row.exact.mean), percent(low), percent(high)
