"""The stored results that items are drawn from, and the models and puzzles they belong to."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tiltrm.diagnose.ranking import wilson
from tiltrm.errors import TiltrmError
from tiltrm.evaluate import plans
from tiltrm.evaluate.job import Job
from tiltrm.evaluate.shards import Shard
from tiltrm.evaluate.store import Store
from tiltrm.evaluate.summary import Row, Spread, summarise
from tiltrm.evaluate.target import EvalTarget, eval_target

SUDOKU, MAZE, SWEEP = "sudoku", "maze", "sweep"  # roles of targets
BENCHMARKS = {SUDOKU: "Sudoku-Extreme", MAZE: "Maze-Hard"}
TEST, VAL = "Test", "val"  # splits
MAZE_MODEL, MAZE_DATA = "maze-hard", "maze-hard/test"  # used where mazes are not named


@dataclass(frozen=True)
class StoredResults:
    """A store, the targets whose shards are read from it, and the files of training runs.

    `targets` maps a role to a model with its puzzles. The roles are the two benchmarks and
    `sweep`, the puzzles of Sudoku's sweeps: the validation set if one is given, else Test. `absent`
    maps a role without a subject to a sentence that says why.
    """

    store: Store
    size: str
    targets: Mapping[str, EvalTarget]
    absent: Mapping[str, str]
    metrics: tuple[Path, ...] = ()  # metrics.jsonl of training runs
    scan: Path | None = None  # scan.jsonl of a training run
    frontier: int | None = None  # number of Sudokus on the frontier; None: as the size says
    chosen: Mapping[str, Any] = field(default_factory=dict)  # settings of guided on Sudoku
    partial: bool = False  # draw the seeds and folds that are computed, and compute nothing

    @property
    def benchmarks(self) -> list[str]:
        """The benchmarks that have a subject."""
        return [role for role in BENCHMARKS if role in self.targets]

    def missing(self, *roles: str) -> tuple[str, ...]:
        """A sentence for each of these roles that has no subject."""
        return tuple(self.absent[role] for role in roles if role not in self.targets)

    def read(self, jobs: Sequence[Job]) -> list[Shard]:
        """The shards of these jobs."""
        return self.store.read(jobs, self.puzzles)

    @property
    def puzzles(self) -> dict[str, int]:
        """The number of puzzles of each data set, by checksum."""
        return {target.checksum: target.puzzles for target in self.targets.values()}

    def rows(self, jobs: Sequence[Job]) -> list[Row]:
        """One row for each setting, in the order of the jobs, on whole splits only."""
        shards = self.read(jobs)
        return [row for row in summarise(shards) if row.split == shards[0].job.split]

    def available(self, jobs: Sequence[Job]) -> list[Job]:
        """All the jobs; with `partial`, the seeds and folds that are computed."""
        return plans.done(jobs, self.store.has) if self.partial else list(jobs)

    def table1_jobs(self, benchmark: str) -> list[Job]:
        """The jobs of Table 1 and Fig. 1."""
        chosen = self.chosen if benchmark == SUDOKU else {}
        return self.available(plans.table1(self.targets[benchmark], self.size, chosen))

    def sweep_jobs(self, role: str) -> dict[str, list[Job]]:
        """The sweeps of Figs. 2 (left) and 6, by name."""
        return plans.axes(self.targets[role], self.size)

    def diagnosis_jobs(self, benchmark: str) -> list[Job]:
        """The one job of Figs. 2 (right), 3 and 5 (left), with the paper's settings."""
        return plans.diagnostics(self.targets[benchmark], self.size)

    def diagnosis(self, benchmark: str) -> Mapping[str, Any]:
        """The result of that job: `Report.as_dict()` of `tiltrm diagnose`."""
        (shard,) = self.read(self.diagnosis_jobs(benchmark))
        found: Mapping[str, Any] = json.loads(str(shard["figures"][0]))
        return found


def percent(share: float) -> float:
    """100 times a share."""
    return 100.0 * share


def spread_percent(value: Spread | None) -> tuple[float | None, float | None]:
    """Mean and standard deviation in percent."""
    if value is None:
        return None, None
    return percent(value.mean), None if value.sd is None else percent(value.sd)


def interval(row: Row) -> tuple[float, float, float]:
    """Percent exactly right and its 95 % interval over puzzles: (mean, low, high).

    The row's mean must be over puzzles: of one run, or of folds that were pooled.
    """
    low, high = wilson(round(row.exact.mean * row.puzzles), row.puzzles)
    return percent(row.exact.mean), percent(low), percent(high)


def find_targets(
    roles: set[str], model: str, data: str, *, val: str | None = None, maze: str | None = None,
    maze_data: str | None = None, default_maze: bool = True,
) -> tuple[dict[str, EvalTarget], dict[str, str]]:  # fmt: skip
    """Load the models and puzzles of these roles: targets by role, and why a role is absent.

    Mazes that are not named are taken from the bundled weights and the public puzzles if both can
    be read and `default_maze` is true. Whatever is named must be readable.
    """
    found: dict[str, EvalTarget] = {}
    absent: dict[str, str] = {}
    named = maze or maze_data
    if roles & {SUDOKU, SWEEP}:
        found[SUDOKU] = eval_target(model, data, TEST)
    if SWEEP in roles:
        found[SWEEP] = eval_target(model, val, VAL) if val else found[SUDOKU]
    if MAZE in roles and not (named or default_maze):
        absent[MAZE] = f"{BENCHMARKS[MAZE]} is left out: name it with --maze and --maze-data."
    elif MAZE in roles:
        try:
            found[MAZE] = eval_target(maze or MAZE_MODEL, maze_data or MAZE_DATA, TEST)
        except TiltrmError as error:
            if named:
                raise
            reason = str(error).partition(";")[0]
            absent[MAZE] = (
                f"{BENCHMARKS[MAZE]} is left out, since its weights or puzzles are not here "
                f"({reason}): name them with --maze and --maze-data."
            )
    return found, absent


def describe_targets(targets: Mapping[str, EvalTarget], *, random: bool = False) -> list[str]:
    """One sentence for each subject; `random` says that Sudoku's weights are not trained."""
    lines = [
        f"{BENCHMARKS[role]}: weights {Path(targets[role].model).name} "
        f"({targets[role].weights[:8]}…), {targets[role].puzzles:,} puzzles (SHA-256 "
        f"{targets[role].checksum[:8]}…)."
        for role in BENCHMARKS
        if role in targets
    ]
    if random and SUDOKU in targets:
        lines[0] = (
            f"Random weights ({targets[SUDOKU].weights[:8]}…) on {targets[SUDOKU].puzzles} "
            "generated 4 x 4 Sudokus, under the name of "
            f"{BENCHMARKS[SUDOKU]}: no figure here says anything about a trained model."
        )
    if SWEEP in targets:
        lines.append(f"Sweeps of Sudoku's settings are on {targets[SWEEP].split}.")
    return lines


def describe_reductions(
    size: str, targets: Mapping[str, EvalTarget], frontier: int | None = None
) -> list[str]:
    """One sentence for each thing that this size leaves out of the full size.

    `frontier` is the number of Sudokus on the frontier if it is not that of the size.
    """
    own, full = plans.SIZES[size], plans.SIZES["full"]
    if frontier is not None:
        own = replace(own, frontier={**own.frontier, SUDOKU: frontier})
    lines = []
    if (own.seeds, own.folds) != (full.seeds, full.folds):
        lines.append(
            f"{own.seeds} seeds and {own.folds} folds instead of {full.seeds} and {full.folds}."
        )
    kinds = {"Table 1 and Figures 1, 4 and 7": "table", "The frontier": "frontier",
             "Sweeps": "sweep", "Diagnostics": "diagnose"}  # fmt: skip
    for title, name in kinds.items():
        fewer = "; ".join(_fewer(getattr(own, name), getattr(full, name), targets))
        if fewer:
            lines.append(f"{title}: {fewer}.")
    if own.rooted != full.rooted:
        lines.append(f"Stability is measured on {own.rooted} puzzles instead of {full.rooted}.")
    if own.most:
        caps = ", ".join(f"{name.replace('_', ' ')} {most}" for name, most in own.most.items())
        lines.append(f"No setting goes beyond {caps}, so these figures say only that all runs.")
    return lines


def _fewer(
    own: Mapping[str, int | None],
    full: Mapping[str, int | None],
    targets: Mapping[str, EvalTarget],
) -> Iterator[str]:
    for role in (role for role in BENCHMARKS if role in targets):
        limit, whole = own[role], min(full[role] or targets[role].puzzles, targets[role].puzzles)
        if limit is not None and limit < whole:
            yield f"{limit:,} of {whole:,} puzzles of {BENCHMARKS[role]}"
