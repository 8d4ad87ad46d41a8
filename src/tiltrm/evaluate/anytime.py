"""What a method that stops puzzle by puzzle would have had with fewer outer steps, from one run.

Whoever left by then left with the same answer at the same cost. The others cost as much as whoever
left at that step, and their answers, which nobody was sure of, count as wrong.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tiltrm.evaluate.shards import Shard
from tiltrm.explore.search import UNDECIDED


class Stopped(NamedTuple):
    """A run after at most so many outer steps."""

    steps: int
    exact: float  # share of the puzzles, at least
    evaluations: float  # a puzzle


def stopped(group: Sequence[Shard]) -> list[Stopped]:
    """At every step that brought a right answer, in their order, all seeds and folds together.

    Proved by tests/evaluate/test_anytime.py against runs that were stopped.
    """
    columns = ("exact", "decided_by", "outer_steps", "evaluations")
    exact, why, step, spent = (np.concatenate([shard[name] for shard in group]) for name in columns)
    right = exact.astype(bool) & (why != UNDECIDED)
    return [
        Stopped(
            int(last),
            float((right & (step <= last)).mean()),
            float(np.where(step <= last, spent, spent[step == last][0]).mean()),
        )
        for last in np.unique(step[right])
    ]
