"""Adaptive solving beside fixed settings: accuracy and mean evaluations on the same puzzles.

`python -m benchmarks.adaptive --data VAL.csv.gz` prints the table; with `--search` it also runs
every plan of a small grid and marks those that no other beats. Choose on val, never on Test.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tiltrm import kernels
from tiltrm.data import read
from tiltrm.explore import Exploration, explore
from tiltrm.explore.inputs import device_of
from tiltrm.explore.plan import Adaptive, Stage
from tiltrm.explore.running import solve_adaptively as solve
from tiltrm.explore.stopping import by_halting
from tiltrm.model.base import RecursiveModel
from tiltrm.model.checkpoint import load
from tiltrm.solving import default_plan, plan_views
from tiltrm.tasks import SUDOKU

SHAPES = {
    "1x16 4x32 16x48 64x48, going on": (
        Stage(1, 16), Stage(4, 32, True), Stage(16, 48, True), Stage(64, 48, True),
    ),
    "1x16 4x16 16x16 64x48": (Stage(1, 16), Stage(4, 16), Stage(16, 16), Stage(64, 48)),
    "1x16 4x12 x4 16x16 x4 64x24 x2": (
        Stage(1, 16), *[Stage(4, 12)] * 4, *[Stage(16, 16)] * 4, *[Stage(64, 24)] * 2,
    ),
    "1x24 4x12 x8 16x16 x4 64x24": (
        Stage(1, 24), *[Stage(4, 12)] * 8, *[Stage(16, 16)] * 4, Stage(64, 24),
    ),
    "1x24 8x12 x4 32x16 x4": (Stage(1, 24), *[Stage(8, 12)] * 4, *[Stage(32, 16)] * 4),
    "1x16 4x16 x4 16x24 x4 64x48": (
        Stage(1, 16), *[Stage(4, 16)] * 4, *[Stage(16, 24)] * 4, Stage(64, 48),
    ),
}  # fmt: skip
SPREAD_OUT = 3  # the shape on which noise, trigger and threshold are compared


class Row(NamedTuple):
    """One method on the same puzzles."""

    name: str
    accuracy: float
    evaluations: float
    decided: float
    right_if_decided: float
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.name:62} {100 * self.accuracy:6.2f} {self.evaluations:8.0f} "
            f"{100 * self.decided:7.2f} {100 * self.right_if_decided:7.2f} {self.seconds:6.1f}"
        )


def fixed(model: RecursiveModel, tokens: Tensor, labels: Tensor, settings: Exploration) -> Row:
    """A fixed cloud for every puzzle."""
    begun = time.monotonic()
    result = explore(model, tokens, settings)
    right = float((result.answers == labels).all(-1).float().mean())
    name = f"S={settings.particles} noise={settings.noise} beta={settings.beta}, N=48"
    mean = float(result.evaluations.float().mean())
    return Row(name, right, mean, 1.0, right, time.monotonic() - begun)


def adaptive(
    model: RecursiveModel, tokens: Tensor, labels: Tensor, plan: Adaptive, above: float, name: str,
) -> Row:  # fmt: skip
    """A growing cloud; decided by the halting head alone."""
    begun = time.monotonic()
    deciding = {"halting": by_halting(model, above)}
    views = plan_views(plan, SUDOKU, model, device_of(model, tokens))
    solution = solve(model, tokens, deciding, plan, views=views)
    right = (solution.answers == labels).all(-1).float()
    decided = torch.tensor([why == "halting" for why in solution.decided_by])
    sure = float(right[decided].mean()) if decided.any() else 0.0
    return Row(
        f"adaptive {name}, noise {noises(plan)}, tau {plan.resample_below}, above {above}",
        float(right.mean()), float(solution.evaluations.float().mean()),
        float(decided.float().mean()), sure, time.monotonic() - begun,
    )  # fmt: skip


def noises(plan: Adaptive) -> str:
    """0.3 then 0.6: those of its stages, in their order."""
    return " then ".join(map(str, dict.fromkeys(plan.noises)))


def unbeaten(rows: Sequence[Row]) -> list[Row]:
    """Those than which none is better at no more cost, or as good and cheaper; cheapest first."""

    def beats(one: Row, other: Row) -> bool:
        if one.accuracy == other.accuracy:
            return one.evaluations < other.evaluations
        return one.accuracy > other.accuracy and one.evaluations <= other.evaluations

    kept = [row for row in rows if not any(beats(other, row) for other in rows)]
    return sorted(kept, key=lambda row: row.evaluations)


def grid() -> Iterator[tuple[str, Adaptive, float]]:
    """The plans that `--search` compares: every shape, then noise, trigger and threshold of one."""
    for name, stages in SHAPES.items():
        yield name, Adaptive(stages=stages, noise=0.5, resample_below=0.0), 3.0
    name, stages = list(SHAPES.items())[SPREAD_OUT]
    for noise in (0.3, 0.7):
        yield name, Adaptive(stages=stages, noise=noise, resample_below=0.0), 3.0
    yield name, Adaptive(stages=stages, noise=0.5, resample_below=0.3), 3.0
    for above in (2.0, 4.0, 5.0):
        yield name, Adaptive(stages=stages, noise=0.5, resample_below=0.0), above


def main() -> None:
    """Print the table, and the frontier of the search where one was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="sudoku-extreme")
    parser.add_argument("--data", required=True)
    parser.add_argument("--first", type=int, default=0, help="the first puzzle, from 0")
    parser.add_argument("--limit", type=int, help="how many of them")
    parser.add_argument("--search", action="store_true")
    parser.add_argument("--skip-fixed", action="store_true", help="no S=16, which is slow on a CPU")
    parser.add_argument("--only-adaptive", action="store_true", help="no fixed setting at all")
    parser.add_argument("--above", type=float, nargs="+", default=[4.0])
    parser.add_argument("--symmetric-views", action="store_true", help="fresh trajectories see "
                        "the puzzle under symmetries, with and without noise")  # fmt: skip
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    model = load(arguments.model, device=arguments.device)
    kernels.fuse(model)
    last = None if arguments.limit is None else arguments.first + arguments.limit
    puzzles = read(arguments.data).take(slice(arguments.first, last))
    tokens, labels = puzzles.questions, puzzles.labels()
    print(f"{'method':62} exact % evals/puzzle decided right|decided seconds")
    rows = []
    quiet = Exploration(particles=1, noise=0.0, beta=0.0, trigger="never", entropy_every=0)
    settings = [quiet] if arguments.skip_fixed else [quiet, Exploration(entropy_every=0)]
    for each in [] if arguments.only_adaptive else settings:
        rows.append(fixed(model, tokens, labels, each))
        print(rows[-1], flush=True)
    usual = default_plan(SUDOKU.name)
    own = [("default", usual, above) for above in arguments.above]
    if arguments.symmetric_views:
        plans = [Adaptive(noise=noise, symmetric_views=True) for noise in (0.0, 0.2, 0.3, 0.5)]
        own += [("turned", plan, above) for plan in plans for above in arguments.above]
    for name, plan, above in [*own, *(grid() if arguments.search else [])]:
        rows.append(adaptive(model, tokens, labels, plan, above, name))
        print(rows[-1], flush=True)
        print(rows[-1], flush=True)
    print("\nnot beaten by any other:")
    for row in unbeaten(rows):
        print(row)


if __name__ == "__main__":
    main()
