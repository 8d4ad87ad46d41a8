"""Is a calibrated confidence a probability, and does a promised risk hold, on stored results?

`python -m benchmarks.reliability --model sudoku-extreme --store evidence` takes the stored answers
of adaptive solving with the model's plan, fits a calibration on one half of the puzzles and looks
at the other half, then the other way round. It calls no network.
"""

import argparse
from pathlib import Path

import torch
from torch import Tensor

from tiltrm.evaluate.job import SOLVE
from tiltrm.evaluate.reliability import (
    Reliability,
    job_settings,
    reliability_of,
    reliability_table,
    stop_features,
)
from tiltrm.evaluate.shards import PARQUET, Shard, decode
from tiltrm.model import load
from tiltrm.solving.confidence import StopFeatures, fit
from tiltrm.solving.methods import adaptive_plan


def main() -> None:
    """Read the shards, fit on each half, and print the other's table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="sudoku-extreme")
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--split", default="Test")
    parser.add_argument("--risk", type=float, nargs="+", default=[0.05, 0.01, 0.001, 0.0005])
    arguments = parser.parse_args()
    model = load(arguments.model)
    own = adaptive_plan(model).settings()
    shards = [
        shard
        for shard in map(decode, sorted(arguments.store.glob(f"*{PARQUET}")))
        if shard.job.kind == SOLVE and shard.job.split == arguments.split
        and shard.job.task == model.task and shard.job.limit is None
        and job_settings(shard.job, model) == own
    ]  # fmt: skip
    print(reliability_table(halves(shards, own, arguments.risk)))


def halves(
    shards: list[Shard], settings: dict[str, object], risks: list[float]
) -> list[Reliability]:
    """The reliability on each half of the puzzles, calibrated on the other."""
    features, right = stop_features(shards)
    order = torch.randperm(len(right), generator=torch.Generator().manual_seed(0))
    found = []
    for fitted, seen in ((order[::2], order[1::2]), (order[1::2], order[::2])):
        calibration = fit(
            _part(features, fitted), right[fitted], task=shards[0].job.task, data="half",
            judge="labels", settings=settings,
        )  # fmt: skip
        found.append(
            reliability_of(
                _part(features, seen),
                right[seen],
                calibration,
                settings,
                risks,
                split=shards[0].job.split,
                title="adaptive, the other half",
            )
        )
    return found


def _part(features: StopFeatures, rows: Tensor) -> StopFeatures:
    names = [features.decided_by[row] for row in rows.tolist()]
    return StopFeatures(names, *(column[rows] for column in features[1:]))


if __name__ == "__main__":
    main()
