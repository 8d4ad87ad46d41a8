"""What a full evaluation costs on many GPUs: the arithmetic of docs/SCALE.md, line by line.

`python -m benchmarks.scale [--rate R] [--folds F] [--gpus 8 256]` prints the evaluations, the time
for every number of GPUs, and the bytes of the shards, which it takes from shards made here. The
rate is what `python -m benchmarks.explore` prints on the GPU meant. With `--data FILE` it reads
that file, and says how long all puzzles would take.
Proved by tests/evaluate/test_scale_page.py, which also holds the page to what is printed.
"""

import argparse
import math
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tiltrm.data import read
from tiltrm.data.splits import checksum
from tiltrm.evaluate.job import SOLVE, Job
from tiltrm.evaluate.shards import PARQUET, Columns, Shard, encode

RATE = 478_000.0  # evaluations a second on one H200: `benchmarks.explore`, docs/LOG.md
CELLS = 81  # of a Sudoku


class Work(NamedTuple):
    """A method on every puzzle with every seed, cut into shards."""

    puzzles: int = 422_786
    seeds: int = 5
    particles: int = 64
    outer_steps: int = 48
    per_step: int = 7  # evaluations an outer step: 6 inner updates and one of the answer
    folds: int = 255  # 5 x 51: every one of the five folds of the paper is 51 of these

    @property
    def evaluations(self) -> int:
        """All of them: puzzles x seeds x particles x outer steps x evaluations a step."""
        return self.puzzles * self.seeds * self.per_puzzle

    @property
    def per_puzzle(self) -> int:
        """Evaluations for one puzzle and one seed."""
        return self.particles * self.outer_steps * self.per_step

    @property
    def shards(self) -> int:
        """One for every seed and fold."""
        return self.seeds * self.folds

    @property
    def rows(self) -> int:
        """Puzzles of the largest shard."""
        return math.ceil(self.puzzles / self.folds)


class Bill(NamedTuple):
    """What the work takes on so many GPUs."""

    gpus: int
    rounds: int  # shards that the busiest GPU does, one after the other
    ideal: float  # seconds, were the work cut perfectly
    seconds: float  # until the last shard is done
    busy: float  # share of the GPU time that computes


def bill(work: Work, gpus: int, rate: float) -> Bill:
    """The time on `gpus` GPUs at `rate` evaluations a second each; start-up is not counted."""
    rounds = math.ceil(work.shards / gpus)
    ideal = work.evaluations / rate / gpus
    seconds = rounds * work.rows * work.per_puzzle / rate
    return Bill(gpus, rounds, ideal, seconds, ideal / seconds)


def sample(rows: int, *, by_step: int = 0, cells: int = 0) -> Columns:
    """Columns as a shard has them, filled with what compresses no better than results do."""
    chance = np.random.default_rng(0)

    def flags(width: int) -> np.ndarray:
        return chance.random((rows, width)) < 0.5

    def halves(width: int) -> np.ndarray:
        return chance.random((rows, width)).astype(np.float16)

    return {
        "puzzle": np.arange(rows, dtype=np.int64), "exact": flags(1)[:, 0],
        "oracle": flags(1)[:, 0], "shortest": None, "valid": flags(1)[:, 0],
        "evaluations": np.full(rows, 21_504, dtype=np.int64),
        "outer_steps": np.full(rows, 48, dtype=np.int64),
        "confidence": chance.random(rows, dtype=np.float32),
        "halt_probability": chance.random(rows, dtype=np.float32),
        "decided_by": np.array(["map"] * rows, dtype=object),
        "exact_by_step": flags(by_step), "oracle_by_step": flags(by_step),
        "terminal_entropy": halves(cells), "path_entropy": halves(cells),
        "cell_right": flags(cells), "free": flags(cells),
    }  # fmt: skip


def shard_bytes(columns: Columns) -> int:
    """The size of its file."""
    job = Job(
        kind=SOLVE, model="sudoku-extreme", weights="0" * 16, task="sudoku", data="test.csv.gz",
        split="Test", checksum="0" * 64, limit=None, method="guided",
        settings=(("particles", 64),), seed=0, fold=0, folds=256,
    )  # fmt: skip
    return len(encode(Shard(job, columns, {"seconds": 0.0}), PARQUET))


def clock(seconds: float) -> str:
    """Seconds as a person says them."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.2f} h"


def lines(work: Work, gpus: list[int], rate: float) -> Iterator[str]:
    """What is printed, as Markdown."""
    yield (
        f"{work.puzzles:,} puzzles x {work.seeds} seeds x {work.particles} particles x "
        f"{work.outer_steps} outer steps x {work.per_step} = {work.evaluations:,} evaluations"
    )
    yield (
        f"{work.per_puzzle:,} evaluations a puzzle and seed; at {rate:,.0f} a second "
        f"{clock(work.evaluations / rate)} of one GPU"
    )
    yield (
        f"{work.seeds} seeds x {work.folds} folds = {work.shards:,} shards of at most "
        f"{work.rows:,} puzzles, {clock(work.rows * work.per_puzzle / rate)} each"
    )
    yield ""
    yield "| GPUs | shards each | until done | perfectly cut | GPU time used |"
    yield "|---|---|---|---|---|"
    for one in (bill(work, count, rate) for count in gpus):
        yield (
            f"| {one.gpus} | {one.rounds} | {clock(one.seconds)} | {clock(one.ideal)} "
            f"| {100 * one.busy:.1f} % |"
        )
    yield ""
    yield "| columns of a shard | bytes a puzzle | a shard | all shards |"
    yield "|---|---|---|---|"
    wide = {"by_step": work.outer_steps, "cells": CELLS}
    for name, extra in {
        "as usual": {},
        "with `by_step`": {"by_step": wide["by_step"]},
        "with `by_step` and `cells`": wide,
    }.items():
        size = shard_bytes(sample(work.rows, **extra))
        yield (
            f"| {name} | {size / work.rows:.0f} | {size / 1e3:,.0f} kB "
            f"| {size * work.shards / 1e6:,.0f} MB |"
        )


def reading(work: Work, path: str) -> str:
    """How long it takes to read and check puzzles, measured on a file of them."""
    begun = time.perf_counter()
    puzzles = read(path)
    checksum(puzzles)
    seconds = time.perf_counter() - begun
    return (
        f"{len(puzzles):,} puzzles read and checked in {clock(seconds)}; {work.puzzles:,} would "
        f"take {clock(seconds * work.puzzles / len(puzzles))}"
    )


def main() -> None:
    """Print the arithmetic."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=RATE, help="evaluations a second of one GPU")
    parser.add_argument("--gpus", type=int, nargs="+", default=[1, 8, 256])
    parser.add_argument("--data", help="a file of puzzles, to be read against the clock")
    for name, value in Work()._asdict().items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=value)
    given = vars(parser.parse_args())
    work = Work(**{name: given[name] for name in Work._fields})
    print("\n".join(lines(work, given["gpus"], given["rate"])))
    if given["data"]:
        print(f"\n{reading(work, given['data'])}")


if __name__ == "__main__":
    main()
