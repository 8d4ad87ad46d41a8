"""One whole run tells what runs with fewer steps would have had."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from tiltrm.evaluate import Shard
from tiltrm.evaluate.options import complete
from tiltrm.evaluate.peers import Case, evaluate_method
from tiltrm.evaluate.shards import as_columns
from tiltrm.evaluate.summary import Stopped, stopped

from .toys import TASK, a_job, a_shard, sudokus, wells

STAGES = ((1, 2), (2, 4), (4, 6))


def words(*reasons: str) -> np.ndarray[Any, Any]:
    return np.array(reasons, dtype=object)


def first(steps: int) -> list[tuple[int, int]]:
    """The stages, cut after so many outer steps."""
    found, left = [], steps
    for particles, own in STAGES:
        if left > 0:
            found.append((particles, min(own, left)))
        left -= own
    return found


def run(stages: Sequence[tuple[int, int]]) -> Shard:
    """Sixty puzzles on which only noise helps, so that they leave at many different steps."""
    puzzles, own = sudokus(60), {"stages": stages, "halt_above": 2.0, "noise": 0.3}
    settings = complete("adaptive", own, TASK.name)
    rows = torch.arange(len(puzzles))
    columns = evaluate_method(
        "adaptive",
        Case(wells(puzzles), TASK, puzzles.questions, puzzles.labels(), settings, 7, rows),
    )
    return Shard(a_job("adaptive", settings=own), as_columns({"puzzle": rows, **columns}), {})


def test_it_is_what_runs_that_were_stopped_have() -> None:
    found = stopped([run(STAGES)])
    assert len(found) > 6
    assert found[-1].exact > 1.4 * found[0].exact
    for each in found:
        short = run(first(each.steps))
        sure = short["exact"] & (short["decided_by"] != "budget")
        assert each.exact == sure.mean()
        assert each.evaluations == pytest.approx(short["evaluations"].mean())


def test_by_hand_with_two_folds() -> None:
    shards = [
        a_shard(
            a_job("adaptive", fold=0, folds=2), [0, 2, 4], [1, 1, 1],
            outer_steps=np.array([1, 3, 4]), evaluations=np.array([7, 35, 49]),
            decided_by=words("halting", "agreement", "budget"),
        ),
        a_shard(
            a_job("adaptive", fold=1, folds=2), [1, 3, 5], [1, 0, 1],
            outer_steps=np.array([1, 2, 4]), evaluations=np.array([7, 21, 49]),
            decided_by=words("halting", "halting", "halting"),
        ),
    ]  # fmt: skip
    assert stopped(shards) == [  # nothing right left at the second step, which brought no answer
        Stopped(1, 2 / 6, 7.0),
        Stopped(3, 3 / 6, pytest.approx((7 + 35 + 35 + 7 + 21 + 35) / 6)),
        Stopped(4, 4 / 6, pytest.approx((7 + 35 + 49 + 7 + 21 + 49) / 6)),  # the budget's is no one
    ]


def test_of_a_run_that_was_sure_of_nothing_it_says_nothing() -> None:
    shard = a_shard(a_job("adaptive"), [0, 1], [1, 1], outer_steps=np.array([4, 4]))
    assert stopped([shard]) == []
