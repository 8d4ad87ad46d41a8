"""Rows and curves against sums by hand."""

import random
import statistics
from itertools import product
from typing import Any

import numpy as np
import pytest

from tiltrm.evaluate import by_step, summarise
from tiltrm.evaluate.options import complete
from tiltrm.evaluate.summary import Reason, failures, groups
from tiltrm.evaluate.table import stopping_rules
from tiltrm.evaluate.titles import title

from .toys import a_job, a_shard

# Six puzzles in two folds: even ones and odd ones. The deterministic model fails 2, 4 and 5.
BASE = [
    a_shard(a_job("deterministic", fold=0, folds=2), [0, 2, 4], [1, 0, 0]),
    a_shard(a_job("deterministic", fold=1, folds=2), [1, 3, 5], [1, 1, 0]),
]
RIGHT = {(0, 0): [1, 1, 0], (0, 1): [1, 0, 1], (1, 0): [1, 0, 1], (1, 1): [1, 1, 0]}
COST = {(0, 0): [7, 7, 8], (0, 1): [9, 9, 9], (1, 0): [1, 2, 4], (1, 1): [0, 0, 0]}
GUIDED = [
    a_shard(
        a_job("guided", seed=seed, fold=fold, folds=2, settings={"by_step": True}),
        [fold, fold + 2, fold + 4], right,
        oracle=np.array([True, True, fold == 0]), evaluations=np.array(COST[seed, fold]),
        exact_by_step=np.array([[0, right[0]], [0, right[1]], [1, right[2]]], dtype=bool),
    )
    for (seed, fold), right in RIGHT.items()
]  # fmt: skip


def spread(values: list[float]) -> tuple[float, float]:
    return statistics.fmean(values), statistics.stdev(values)


def test_means_and_deviations_over_seeds_and_folds() -> None:
    base, guided, base_df, guided_df = summarise([*BASE, *GUIDED])
    assert guided.exact == pytest.approx(spread([2 / 3, 2 / 3, 2 / 3, 2 / 3]))
    assert guided.oracle == pytest.approx(spread([1.0, 2 / 3, 1.0, 2 / 3]))
    assert guided.evaluations == pytest.approx(spread([22 / 3, 9.0, 7 / 3, 0.0]))
    assert (guided.puzzles, guided.runs, guided.split) == (6, 4, "Test")
    assert base.exact == pytest.approx(spread([1 / 3, 2 / 3]))
    assert (base.oracle, base.runs) == (None, 2)
    # DF: puzzles 2 and 4 in fold 0, 5 in fold 1, and each of them counts the same.
    assert guided_df.exact == pytest.approx((3 / 6, statistics.stdev([0.5, 1.0, 0.5, 0.0])))
    assert guided_df.oracle == pytest.approx((4 / 6, statistics.stdev([1.0, 0.0, 1.0, 0.0])))
    spent = 7 + 8 + 9 + 2 + 4 + 0, statistics.stdev([7.5, 9.0, 3.0, 0.0])
    assert guided_df.evaluations == pytest.approx((spent[0] / 6, spent[1]))
    assert (guided_df.puzzles, guided_df.split) == (3, "DF")
    assert base_df.exact == (0.0, 0.0)


def test_who_decided_and_how_often_rightly() -> None:
    why = {0: ["halting", "halting", "budget"], 1: ["budget", "halting", "agreement"]}
    shards = [
        a_shard(a_job("adaptive", fold=fold, folds=2), [fold, fold + 2, fold + 4], [1, 0, 1],
                decided_by=np.array(why[fold], dtype=object))
        for fold in (0, 1)
    ]  # fmt: skip
    (row,) = summarise(shards)
    assert row.reasons == (
        Reason("agreement", 1, 1), Reason("budget", 2, 2), Reason("halting", 3, 1),
    )  # fmt: skip
    assert row.as_dict()["decided_by"][2] == {"name": "halting", "answers": 3, "right": 1}
    assert "halting 3 (33.33 % right)" in stopping_rules([row])
    assert stopping_rules(summarise(BASE)) == ""


def test_the_order_of_the_shards_does_not_matter() -> None:
    wanted = summarise([*BASE, *GUIDED])
    for seed in range(8):
        mixed = [*BASE[1:], *random.Random(seed).sample(GUIDED, 4), *BASE[:1]]
        assert summarise(mixed) == wanted


def test_a_fold_without_failures_is_no_run_of_df() -> None:
    kept = a_shard(a_job("deterministic", fold=1, folds=2), [1, 3, 5], [1, 1, 1])
    rows = summarise([BASE[0], kept, *GUIDED])
    assert [row.runs for row in rows if row.split == "DF"] == [1, 2]
    assert rows[-1].exact == pytest.approx(spread([0.5, 0.5]))
    solved = a_shard(BASE[0].job, [0, 2, 4], [1, 1, 1])
    assert [row.split for row in summarise([solved, kept, *GUIDED])] == ["Test", "Test"]


def test_no_df_where_the_baseline_does_not_cover() -> None:
    assert [row.split for row in summarise(GUIDED)] == ["Test"]
    assert [row.split for row in summarise([BASE[0], *GUIDED])] == ["Test", "Test", "DF"]
    other = a_shard(a_job("deterministic", weights="x" * 16), [0, 1, 2, 3, 4, 5], [0] * 6)
    assert [row.split for row in summarise([other, *GUIDED])] == ["Test", "Test", "DF"]


def test_the_papers_depth_says_what_failed() -> None:
    def shard(depth: int, exact: list[int]) -> object:
        return a_shard(a_job("deterministic", settings={"outer_steps": depth}), [0, 1], exact)

    for depths, wanted in (((3, 48, 96), [1]), ((3, 96), [0, 1])):
        right = {3: [0, 0], 48: [1, 0], 96: [1, 1]}
        ((failed, seen),) = failures([shard(d, right[d]) for d in depths]).values()  # type: ignore[misc]
        assert (failed.tolist(), seen.tolist()) == (wanted, [0, 1])


def test_what_is_merely_recorded_does_not_part_rows() -> None:
    kept = [a_shard(a_job(settings={"cells": True}, seed=0), [0, 1], [1, 0]),
            a_shard(a_job(settings={"by_step": True}, seed=1), [0, 1], [1, 1])]  # fmt: skip
    (row,) = summarise(kept)
    assert (row.runs, row.exact.mean) == (2, 0.75)
    others = [a_shard(a_job(settings={"noise": x}), [0, 1], [1, 0]) for x in (0.1, 0.2)]
    assert [row.title for row in summarise(others)] == ["guided, noise 0.1", "guided, noise 0.2"]


def test_curves() -> None:
    alone = [shard.columns["exact"] for shard in GUIDED]
    curve, failed = by_step([*BASE, *GUIDED])
    assert [point.mean for point in curve.exact] == pytest.approx([1 / 3, 2 / 3])
    assert curve.exact[1] == pytest.approx(
        spread([float(a.mean()) for a in alone if a is not None])
    )
    assert (curve.oracle, curve.split, failed.split) == ((), "Test", "DF")
    assert failed.exact[0] == pytest.approx((4 / 6, statistics.stdev([0.5, 1.0, 0.5, 1.0])))


def test_a_run_that_was_recorded_twice_is_one_run() -> None:
    short = a_shard(a_job("guided", settings={"by_step": False}), [0, 1], [1, 0])
    steps = np.array([[True, True], [False, False]])
    long = a_shard(a_job("guided", settings={"by_step": True}), [0, 1], [1, 0], exact_by_step=steps)
    for shards in ([short, long], [long, short]):
        (row,) = summarise(shards)
        assert row.runs == 1
        assert groups(shards) == [[long]]


def test_one_run_has_no_deviation() -> None:
    (row,) = summarise(GUIDED[:1])
    assert row.exact.sd is None


def test_a_title_says_what_is_not_usual() -> None:
    def named(task: str, **given: object) -> str:
        return title("adaptive", complete("adaptive", given, task).items(), task)

    assert named("sudoku") == named("maze") == "adaptive"
    assert named("sudoku", turned=False, noise=0.5) == "adaptive, not turned, noise 0.5"
    assert named("sudoku", noise=0.3) == "adaptive"
    assert named("sudoku4", noise=0.3) == "adaptive, noise 0.3", "the last stages are louder else"
    assert named("sudoku", outer_steps=20) == "adaptive, 20 steps"
    assert (
        named("sudoku", particles=8, outer_steps=340) == "adaptive, at most 8 particles, 340 steps"
    )
    assert named("sudoku", stages=[[1, 8], [2, 4, True, 0.7], [2, 4, True, 0.7]], turned=False) == (
        "adaptive, not turned, 1x8 2x4@0.7+*2"
    )
    long = [[1, 20], *([[2, 8, False, 0.1], [4, 8, False, 0.2]] * 9)]
    assert (
        named("sudoku", stages=long, turned=True)
        == "adaptive, 1x20 .. 4x8@0.2 (19 stages, 164 steps)"
    )
    assert named("sudoku4", turned=True) == named("sudoku4") == "adaptive"
    assert named("maze", turned=False) == "adaptive, not turned"
    assert named("maze", beta=2, halt_above=1) == (
        "adaptive, beta 2.0, halt_above 1.0, shortest_visited False"
    )


def test_another_plan_has_another_title() -> None:
    titles: dict[str, set[str]] = {}
    sizes = (None, 1, 4, 8, 32), (None, 7, 20, 100, 340), (None, 0.2, 0.3), (None, 0.3)
    for values in product(*sizes):
        names = ("particles", "outer_steps", "noise", "resample_below")
        given = {n: v for n, v in zip(names, values, strict=True) if v is not None}
        whole = complete("adaptive", given, "sudoku")
        titles.setdefault(title("adaptive", whole.items(), "sudoku"), set()).add(str(whole))
    assert max(map(len, titles.values())) == 1


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
