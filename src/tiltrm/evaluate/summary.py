"""From shards to rows of a table: pure functions, the same whatever order the shards came in."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tiltrm.evaluate.job import SOLVE, Job
from tiltrm.evaluate.options import RECORDS
from tiltrm.evaluate.shards import Shard
from tiltrm.evaluate.titles import title

Array = np.ndarray[Any, Any]
Failures = dict[tuple[str, str], tuple[Array, Array]]
DF = "DF"  # the puzzles that the deterministic model fails
DEPTH = 48  # outer steps of the deterministic model that says so, where it was run
SHARES = ("exact", "oracle", "shortest", "valid")


class Spread(NamedTuple):
    """A mean, and the standard deviation over runs (seed, fold), None for a single run."""

    mean: float
    sd: float | None

    @classmethod
    def of(cls, runs: Sequence[float]) -> "Spread":
        """Of one number a run."""
        return cls(float(np.mean(runs)), float(np.std(runs, ddof=1)) if len(runs) > 1 else None)

    @classmethod
    def over(cls, runs: Sequence[Array]) -> "Spread":
        """Of one number a puzzle, each counted the same where runs differ in size."""
        means = cls.of([float(run.mean(dtype=np.float64)) for run in runs])
        return means._replace(mean=float(np.concatenate(runs).mean(dtype=np.float64)))


class Reason(NamedTuple):
    """How many answers one judge decided, and how many of those were right."""

    name: str
    answers: int
    right: int


@dataclass(frozen=True)
class Row:
    """One method with one setting on one split."""

    task: str
    split: str
    method: str
    settings: tuple[tuple[str, Any], ...]
    puzzles: int
    runs: int  # seeds x folds
    exact: Spread
    oracle: Spread | None  # None where there is no cloud
    shortest: Spread | None  # None where it has no meaning
    valid: Spread | None
    evaluations: Spread  # a puzzle
    reasons: tuple[Reason, ...] = ()  # who decided, over all runs

    @property
    def title(self) -> str:
        """The method, with those settings that are not its usual ones."""
        return title(self.method, self.settings, self.task)

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        spreads = {name: getattr(self, name) for name in (*SHARES, "evaluations")}
        return {
            "task": self.task, "split": self.split, "method": self.method, "title": self.title,
            "settings": dict(self.settings), "puzzles": self.puzzles, "runs": self.runs,
            **{name: None if s is None else s._asdict() for name, s in spreads.items()},
            "decided_by": [reason._asdict() for reason in self.reasons],
        }  # fmt: skip


@dataclass(frozen=True)
class Curve:
    """Shares of puzzles by outer step 1, 2, ..., each with its spread."""

    task: str
    split: str
    method: str
    settings: tuple[tuple[str, Any], ...]
    exact: tuple[Spread, ...]
    oracle: tuple[Spread, ...]  # empty where there is no cloud


def identity(job: Job) -> tuple[Any, ...]:
    """What jobs of one row have in common: all but seed, fold and what is merely recorded."""
    settings = tuple(pair for pair in job.settings if pair[0] not in RECORDS)
    return (job.task, job.split, job.method, settings, job.weights, job.checksum, job.limit,
            job.folds)  # fmt: skip


def groups(shards: Iterable[Shard]) -> list[list[Shard]]:
    """The shards of each row, one for a seed and fold; rows in order of first appearance.

    Of a run that was recorded twice, the one with more to tell.
    """
    found: dict[tuple[Any, ...], dict[tuple[int, int], Shard]] = {}
    for shard in shards:
        if shard.job.kind == SOLVE:
            row = found.setdefault(identity(shard.job), {})
            run = shard.job.seed, shard.job.fold
            row[run] = max(row.get(run, shard), shard, key=_told)
    return [[row[run] for run in sorted(row)] for row in found.values()]


def _told(shard: Shard) -> tuple[int, str]:
    sizes = (column.size for column in shard.columns.values() if column is not None)
    return sum(sizes), shard.job.key


def failures(shards: Iterable[Shard]) -> Failures:
    """By (weights, checksum): the puzzles that the deterministic model fails, and all it was given.

    Where it was run to several depths, the paper's 48 counts, else the least.
    """
    depths: dict[tuple[str, str], dict[int, list[Shard]]] = {}
    for group in groups(shards):
        job = group[0].job
        if job.method == "deterministic":
            by_depth = depths.setdefault((job.weights, job.checksum), {})
            by_depth.setdefault(job.options["outer_steps"], []).extend(group)
    found = {}
    for subject, by_depth in depths.items():
        base = by_depth[DEPTH if DEPTH in by_depth else min(by_depth)]
        puzzles = np.concatenate([shard["puzzle"] for shard in base])
        wrong = ~np.concatenate([shard["exact"] for shard in base])
        found[subject] = np.unique(puzzles[wrong]), np.unique(puzzles)
    return found


def summarise(shards: Iterable[Shard]) -> list[Row]:
    """A row for every method and setting; then the same on DF where the baseline is known.

    Proved by tests/evaluate/test_summary.py against sums by hand.
    """
    shards = list(shards)
    return [_row(*view) for view in _views(shards, failures(shards))]


def by_step(shards: Iterable[Shard]) -> list[Curve]:
    """Accuracy by outer step, of the jobs that asked for it (Fig. 1)."""
    shards = list(shards)
    recorded = [s for s in shards if s.job.options.get("by_step")]
    return [_curve(*view) for view in _views(recorded, failures(shards))]


def _views(shards: list[Shard], known: Failures) -> Iterator[tuple[list[Shard], str, Array | None]]:
    """Every group on its split; then on DF, its puzzles there, where the baseline covers it."""
    grouped = groups(shards)
    for group in grouped:
        yield group, group[0].job.split, None
    for group in grouped:
        job = group[0].job
        failed, seen = known.get((job.weights, job.checksum), (np.array([]), np.array([])))
        covered = all(np.isin(shard["puzzle"], seen).all() for shard in group)
        if covered and any(np.isin(shard["puzzle"], failed).any() for shard in group):
            yield group, DF, failed


def _runs(group: Sequence[Shard], name: str, among: Array | None) -> list[Array]:
    """A column of every run that has one, of those puzzles; runs without any are left out."""
    found = []
    for shard in group:
        column = shard.columns[name]
        if column is None:
            continue
        kept = column if among is None else column[np.isin(shard["puzzle"], among)]
        if len(kept):
            found.append(kept)
    return found


def _row(group: list[Shard], split: str, among: Array | None) -> Row:
    job = group[0].job
    runs = {name: _runs(group, name, among) for name in (*SHARES, "evaluations", "puzzle")}
    shares = {name: Spread.over(runs[name]) if runs[name] else None for name in SHARES}
    puzzles = np.unique(np.concatenate(runs["puzzle"]))
    exact = shares.pop("exact")
    assert exact is not None
    return Row(
        job.task, split, job.method, identity(job)[3], len(puzzles), len(runs["exact"]), exact,
        evaluations=Spread.over(runs["evaluations"]), **shares, reasons=_reasons(group, among),
    )  # fmt: skip


def _reasons(group: list[Shard], among: Array | None) -> tuple[Reason, ...]:
    runs = _runs(group, "decided_by", among)
    names = np.concatenate(runs) if runs else np.array([], dtype=object)
    right = np.concatenate(_runs(group, "exact", among))
    return tuple(
        Reason(str(name), int((names == name).sum()), int(right[names == name].sum()))
        for name in sorted(set(names))
    )


def _curve(group: list[Shard], split: str, among: Array | None) -> Curve:
    job = group[0].job
    columns = []
    for name in ("exact_by_step", "oracle_by_step"):
        runs = _runs(group, name, among)
        steps = runs[0].shape[1] if runs else 0
        columns.append(tuple(Spread.over([run[:, n] for run in runs]) for n in range(steps)))
    return Curve(job.task, split, job.method, identity(job)[3], *columns)
