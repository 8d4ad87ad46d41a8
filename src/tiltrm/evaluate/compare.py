"""Comparisons of methods on the same puzzles: the paired test, and the best settings of a sweep."""

import json
import math
import os
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tiltrm.errors import DataError
from tiltrm.evaluate.job import Job
from tiltrm.evaluate.shards import Shard
from tiltrm.evaluate.store import Store
from tiltrm.evaluate.summary import Array, summarise

NORMAL = 1.959963984540054  # the 97.5 % quantile of a standard normal
CHOICE_RULE = "most puzzles exactly right; then fewest evaluations; then first in the list"


class Paired(NamedTuple):
    """The first method minus the second, in shares of puzzles, not percent."""

    puzzles: int
    difference: float
    low: float  # 95 % interval
    high: float
    wins: int  # puzzles on which the first is right more often
    losses: int
    p_value: float  # exact two-sided sign test; McNemar's where each has one seed

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return self._asdict()


def paired(first: Sequence[Shard], second: Sequence[Shard], among: Array | None = None) -> Paired:
    """Accuracy of two methods on the same puzzles, averaged over seeds.

    among: the puzzles to compare on; all if None.
    The interval is Wald's for the mean difference after adding two puzzles, on which each method
    wins and loses by half (Agresti and Min, 2005), so it has a width even if no puzzle differs.
    Proved by tests/evaluate/test_compare.py.
    """
    one, other = by_puzzle(first), by_puzzle(second)
    if one.keys() != other.keys():
        raise DataError(
            f"expected both methods on the same puzzles, got {len(one)} and {len(other)} puzzles "
            f"with {len(one.keys() & other.keys())} in common; compute the missing shards first"
        )
    kept = sorted(one if among is None else one.keys() & set(among.tolist()))
    if not kept:
        raise DataError("expected at least one puzzle to compare on, got none")
    return paired_gaps(np.array([one[puzzle] - other[puzzle] for puzzle in kept]))


def paired_gaps(gaps: Array) -> Paired:
    """The paired test from the difference of the two methods on each puzzle, in [-1, 1]."""
    wins, losses = int((gaps > 0).sum()), int((gaps < 0).sum())
    low, high = interval(gaps)
    return Paired(len(gaps), float(gaps.mean()), low, high, wins, losses, sign_test(wins, losses))


def by_puzzle(shards: Sequence[Shard]) -> dict[int, float]:
    """The share of seeds that solved each puzzle."""
    puzzles = np.concatenate([shard["puzzle"] for shard in shards])
    exact = np.concatenate([shard["exact"] for shard in shards])
    names, where = np.unique(puzzles, return_inverse=True)
    right = np.bincount(where, exact) / np.bincount(where)
    return dict(zip(names.tolist(), right.tolist(), strict=True))


def interval(gaps: Array) -> tuple[float, float]:
    """95 % interval for the mean of differences in [-1, 1]."""
    count = len(gaps) + 2
    mean = float(gaps.sum()) / count
    variance = (float(np.square(gaps).sum()) + 1.0) / count - mean**2
    reach = NORMAL * math.sqrt(variance / count)
    return max(-1.0, mean - reach), min(1.0, mean + reach)


def sign_test(wins: int, losses: int) -> float:
    """Twice the probability of at most min(wins, losses) heads in wins + losses fair tosses."""
    tosses, term, total = wins + losses, 1, 0
    for heads in range(min(wins, losses) + 1):
        total += term
        term = term * (tosses - heads) // (heads + 1)
    return min(1.0, float(Fraction(2 * total, 2**tosses)))


def choose_settings(
    store: Store, sweep: Sequence[Job], path: str | Path | None = None, *,
    puzzles: int | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The best values of the settings that vary within `sweep`, all of one method on one split.

    The choice and the table that it was made from are written to `path`; by default to
    `chosen-TASK.json` in the store. puzzles: as for `Store.read`.
    Proved by tests/evaluate/test_compare.py.
    """
    kinds = {(job.method, job.weights, job.checksum) for job in sweep}
    if len(kinds) != 1:
        raise DataError(f"expected jobs of one method on one split, got {len(kinds)} kinds")
    rows = summarise(store.read(sweep, puzzles))
    best = max(rows, key=lambda row: (row.exact.mean, -row.evaluations.mean))
    names = {n for row in rows for n, v in row.settings if v != dict(rows[0].settings).get(n)}
    chosen = {name: value for name, value in best.settings if name in names}
    job = sweep[0]
    record = {
        "chosen": chosen, "rule": CHOICE_RULE, "method": job.method, "model": job.model,
        "weights": job.weights, "data": job.data, "split": job.split, "checksum": job.checksum,
        "puzzles": best.puzzles, "exact": best.exact.mean,
        "table": [{n: v for n, v in row.as_dict().items() if n != "title"} for row in rows],
    }  # fmt: skip
    _write(Path(path or store.folder / f"chosen-{job.task}.json"), json.dumps(record, indent=1))
    return chosen


def _write(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.part")
    try:
        draft.write_text(text + "\n", encoding="utf-8")
        os.replace(draft, path)
    except OSError as error:
        raise DataError(f"{path}: expected to write there, got: {error.strerror}") from error
