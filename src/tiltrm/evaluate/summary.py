"""From shards to the rows and curves of tables; the order of the shards does not matter."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tiltrm.evaluate.job import SOLVE, Job
from tiltrm.evaluate.options import RECORDS
from tiltrm.evaluate.shards import Shard
from tiltrm.evaluate.titles import title
from tiltrm.explore.search import NOT_DECIDED

Array = np.ndarray[Any, Any]
Failures = dict[tuple[str, str], tuple[Array, Array]]
DF = "DF"  # the puzzles that the deterministic model fails
DEPTH = 48  # outer steps of the deterministic model that says so, where it was run
SHARES = ("exact", "oracle", "shortest", "valid")


class Spread(NamedTuple):
    """A mean, and the standard deviation over runs (seed, fold); None for a single run."""

    mean: float
    sd: float | None

    @classmethod
    def of(cls, runs: Sequence[float]) -> "Spread":
        """From one number per run."""
        return cls(float(np.mean(runs)), float(np.std(runs, ddof=1)) if len(runs) > 1 else None)

    @classmethod
    def over(cls, runs: Sequence[Array]) -> "Spread":
        """From one number per puzzle; all puzzles have the same weight in the mean."""
        means = cls.of([float(run.mean(dtype=np.float64)) for run in runs])
        return means._replace(mean=float(np.concatenate(runs).mean(dtype=np.float64)))


class Reason(NamedTuple):
    """How many answers one stopping rule accepted, and how many of those were right."""

    name: str
    answers: int
    right: int


class Stopped(NamedTuple):
    """A run as if it had been stopped after at most `steps` outer steps."""

    steps: int
    exact: float  # share of the puzzles, a lower bound
    evaluations: float  # per puzzle


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
    oracle: Spread | None  # None if there is no cloud
    shortest: Spread | None  # None except for mazes
    valid: Spread | None
    evaluations: Spread  # per puzzle
    reasons: tuple[Reason, ...] = ()  # by stopping rule, over all runs

    @property
    def title(self) -> str:
        """The method, with the settings that differ from its defaults."""
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
    """Shares of puzzles after outer step 1, 2, ..., each with its spread."""

    task: str
    split: str
    method: str
    settings: tuple[tuple[str, Any], ...]
    exact: tuple[Spread, ...]
    oracle: tuple[Spread, ...]  # empty if there is no cloud


def identity(job: Job) -> tuple[Any, ...]:
    """The fields that the jobs of one row share: all but seed, fold and what is recorded."""
    settings = tuple(pair for pair in job.settings if pair[0] not in RECORDS)
    return (job.task, job.split, job.method, settings, job.weights, job.checksum, job.limit,
            job.folds)  # fmt: skip


def groups(shards: Iterable[Shard]) -> list[list[Shard]]:
    """The shards of each row, one per seed and fold; rows in order of first appearance.

    Of two shards of one run, the one that records more is taken.
    """
    found: dict[tuple[Any, ...], dict[tuple[int, int], Shard]] = {}
    for shard in shards:
        if shard.job.kind == SOLVE:
            row = found.setdefault(identity(shard.job), {})
            run = shard.job.seed, shard.job.fold
            row[run] = max(row.get(run, shard), shard, key=_amount_recorded)
    return [[row[run] for run in sorted(row)] for row in found.values()]


def _amount_recorded(shard: Shard) -> tuple[int, str]:
    sizes = (column.size for column in shard.columns.values() if column is not None)
    return sum(sizes), shard.job.key


def failures(shards: Iterable[Shard]) -> Failures:
    """By (weights, checksum): the puzzles that the deterministic model fails, and all that it saw.

    If it was run to several depths, the paper's 48 outer steps count, or else the fewest.
    """
    depths: dict[tuple[str, str], dict[int, list[Shard]]] = {}
    for group in groups(shards):
        job = group[0].job
        if job.method == "deterministic":
            by_depth = depths.setdefault((job.weights, job.checksum), {})
            by_depth.setdefault(job.options["outer_steps"], []).extend(group)
    found = {}
    for target, by_depth in depths.items():
        base = by_depth[DEPTH if DEPTH in by_depth else min(by_depth)]
        puzzles = np.concatenate([shard["puzzle"] for shard in base])
        wrong = ~np.concatenate([shard["exact"] for shard in base])
        found[target] = np.unique(puzzles[wrong]), np.unique(puzzles)
    return found


def summarise(
    shards: Iterable[Shard], types: Mapping[str, Sequence[int]] | None = None
) -> list[Row]:
    """A row for every method and setting; then the same on DF, if the baseline was run.

    types: the puzzles of each type, if there are several; each is a split of its own at the end.
    Proved by tests/evaluate/test_summary.py against sums by hand.
    """
    shards = list(shards)
    rows = [_row(*part) for part in _parts(shards, failures(shards))]
    for name, puzzles in (types or {}).items():
        among = np.array(puzzles)
        for group in groups(shards):
            if any(np.isin(shard["puzzle"], among).any() for shard in group):
                rows.append(_row(group, f"{group[0].job.split}, {name}", among))
    return rows


def by_step(shards: Iterable[Shard]) -> list[Curve]:
    """Accuracy by outer step of the jobs that recorded it (Fig. 1)."""
    shards = list(shards)
    recorded = [s for s in shards if s.job.options.get("by_step")]
    return [_curve(*part) for part in _parts(recorded, failures(shards))]


def _parts(shards: list[Shard], known: Failures) -> Iterator[tuple[list[Shard], str, Array | None]]:
    """Every group on its split; then on DF, if the baseline covers its puzzles."""
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
    """A column of every run, restricted to these puzzles; runs without it are left out."""
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


def stopped(group: Sequence[Shard]) -> list[Stopped]:
    """Accuracy and cost of an adaptive run with fewer outer steps, computed from the whole run.

    One entry for every step at which a right answer was accepted, over all seeds and folds.
    Puzzles that had stopped by then have the same answer and cost. The others cost as much as a
    puzzle that stops at that step, and count as wrong, since no rule had accepted their answers.
    Proved by tests/evaluate/test_stopped.py against runs that were stopped.
    """
    columns = ("exact", "decided_by", "outer_steps", "evaluations")
    exact, why, step, spent = (np.concatenate([shard[name] for shard in group]) for name in columns)
    right = exact.astype(bool) & ~np.isin(why, NOT_DECIDED)
    return [
        Stopped(
            int(last),
            float((right & (step <= last)).mean()),
            float(np.where(step <= last, spent, spent[step == last][0]).mean()),
        )
        for last in np.unique(step[right])
    ]
