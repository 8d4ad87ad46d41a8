"""Rows of DF, and what makes a row of its own."""

from typing import Any

import numpy as np
import pytest

from tiltrm.evaluate import summarise
from tiltrm.evaluate.summary import Reason

from .test_summary import BASE
from .toys import a_job, a_shard


def test_who_decided_is_counted_on_df_too() -> None:
    why = np.array(["halting", "halting", "budget"], dtype=object)
    job = a_job("adaptive", fold=0, folds=2)
    rows = summarise([*BASE, a_shard(job, [0, 2, 4], [1, 0, 1], decided_by=why)])
    (row,) = (row for row in rows if (row.method, row.split) == ("adaptive", "DF"))
    assert row.reasons == (Reason("budget", 1, 1), Reason("halting", 1, 0))


@pytest.mark.parametrize(
    "other", [{"weights": "x" * 16}, {"checksum": "x"}, {"limit": 2}, {"folds": 2}]
)
def test_other_weights_and_other_puzzles_are_rows_of_their_own(other: dict[str, Any]) -> None:
    shards = [a_shard(a_job(), [0, 1], [1, 1]), a_shard(a_job(**other), [0, 1], [0, 0])]
    assert [row.exact.mean for row in summarise(shards)] == [1.0, 0.0]
