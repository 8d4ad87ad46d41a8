"""The page about many GPUs says what the benchmark prints, and that is right."""

from pathlib import Path

import pytest
from benchmarks.scale import RATE, Work, bill, clock, lines, sample, shard_bytes

PAGE = Path(__file__).parents[2] / "docs" / "SCALE.md"


def test_the_page_quotes_what_is_printed() -> None:
    page = PAGE.read_text("utf-8").splitlines()
    sizes = "| with `by_step` and `cells` |", "| with `by_step` |", "| as usual |"
    for line in lines(Work(), [1, 8, 256], RATE):
        if not line.startswith(sizes):  # Parquet's sizes are near, whatever its version
            assert line in page


def test_sizes_on_the_page_are_near() -> None:
    page = PAGE.read_text("utf-8")
    for name, extra in {
        "as usual": {},
        "with `by_step` and `cells`": {"by_step": 48, "cells": 81},
    }.items():
        quoted = int(page.partition(f"| {name} | ")[2].split()[0])
        rows = Work().rows
        assert shard_bytes(sample(rows, **extra)) / rows == pytest.approx(quoted, rel=0.1)


def test_the_arithmetic() -> None:
    work = Work(puzzles=10, seeds=2, particles=3, outer_steps=5, per_step=7, folds=4)
    assert work.evaluations == 10 * 2 * 3 * 5 * 7
    assert (work.shards, work.rows) == (8, 3)
    one = bill(work, gpus=3, rate=21.0)
    assert one.rounds == 3  # 8 shards on 3 GPUs
    assert one.seconds == pytest.approx(3 * (3 * 105) / 21)
    assert one.ideal == pytest.approx(2100 / 21 / 3)
    assert one.busy == pytest.approx(one.ideal / one.seconds)


def test_one_shard_a_gpu_and_none_left_over() -> None:
    assert bill(Work(puzzles=512, seeds=1, folds=256), 256, 1.0).busy == 1.0
    assert bill(Work(folds=5), 256, RATE).busy < 0.1


def test_times() -> None:
    assert [clock(s) for s in (94.07, 468.0, 119943.0)] == ["94.1 s", "7.8 min", "33.32 h"]
