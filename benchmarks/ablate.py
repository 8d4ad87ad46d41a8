"""Which settings work against memorising: a narrow model on a few 4 x 4 Sudokus, on one CPU core.

`python -m benchmarks.ablate` trains the base on so few puzzles that it knows them all and solves
only part of the others, then changes one setting at a time and prints a line for each. Every seed
has its own training puzzles, first weights and batches, the same for every setting, so a change is
the mean over seeds of (val with it - val of the base with the same seed).
It is a toy, and what helps here may not help on 9 x 9. A run is 200 steps, and the minimal 4 x 4
puzzles are only 36 up to symmetry: the 32 for training hold about 20 of these, and three in four of
the unseen puzzles are among their symmetries, which is not so on 9 x 9.
"""

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch

from tiltrm.data import Puzzles
from tiltrm.tasks import Sudoku
from tiltrm.train.distributed import SINGLE_PROCESS
from tiltrm.train.learner import Learner
from tiltrm.train.settings import Depth, Hints, Schedule, TrainSettings, load_preset
from tiltrm.train.validation import validate

TASK = Sudoku(2)
TRAIN, VAL, FRESH = 32, 400, 2000  # puzzles
BASE = replace(
    load_preset("sudoku4", "toy"),
    batch=32,
    weight_decay=0.1,
    depth=Depth(),
    ema=0.9,
    evaluate_steps=12,
)
FRESH_NAME = f"{FRESH} puzzles"
CHANGES: dict[str, dict[str, Any]] = {
    "weight_decay 0": {"weight_decay": 0.0},
    "weight_decay 0.3": {"weight_decay": 0.3},
    "weight_decay 1": {"weight_decay": 1.0},
    "mixing decay 0": {"mixing_weight_decay": 0.0},
    "mixing decay 1": {"mixing_weight_decay": 1.0},
    "channel decay 1": {"weight_decay": 1.0, "mixing_weight_decay": BASE.weight_decay},
    "initial_scale 0.5": {"initial_scale": 0.5},
    "depth 1-2": {"depth": Depth((1, 2), (1, 2))},
    "depth 2-4": {"depth": Depth((2, 4), (2, 4))},
    "depth 6": {"depth": Depth((6, 6), (6, 6))},
    "noise 0.1": {"noise": 0.1},
    "noise 0.3": {"noise": 0.3},
    "ema 0": {"ema": 0.0},
    "ema 0.99": {"ema": 0.99},  # its warm-up ends at 0.96 after 200 steps
    "schedule constant": {"schedule": Schedule("constant")},
    "schedule linear": {"schedule": Schedule("linear")},
    "batch half": {"batch": BASE.batch // 2},
    "batch double": {"batch": BASE.batch * 2},
    "hints": {"hints": Hints(share=0.5, most=2)},
    "label_smoothing 0.2": {"label_smoothing": 0.2},
    "augment fixed": {"augment": "fixed", "shuffles": 8},
    "augment endless": {"augment": "endless"},
    FRESH_NAME: {},
}
LEGEND = f"""\
base: {TRAIN} puzzles, batch {BASE.batch}, weight decay {BASE.weight_decay}, depth 3,
ema {BASE.ema}, cosine, no noise, hints, smoothing or symmetries.
val, train: exact %, the weights' average, last step, on {VAL} unseen puzzles and on those trained
on (without hints or symmetries). gap: train - val. change: val - val of the base, seed by seed.
All as mean +- sd over seeds. Batches of another size take more or fewer steps, so that all see the
same number of rows. 'mixing' and 'channel' decay: that of one group of matrices, the other as in
the base. '{FRESH_NAME}' is no setting but more data: it shows the scale, and is not in the noise.
"""


class Score(NamedTuple):
    """The end of one run, in percent."""

    train: float
    val: float


def puzzles(count: int) -> Puzzles:
    """Generated minimal puzzles with their answers, no puzzle twice."""
    found: dict[tuple[int, ...], tuple[torch.Tensor, torch.Tensor]] = {}
    seed = 0
    while len(found) < count:
        question, answer = TASK.generate(seed)
        found[tuple(question.tolist())] = question, answer
        seed += 1
    questions, answers = zip(*found.values(), strict=True)
    return Puzzles(TASK, torch.stack(questions), torch.stack(answers))


def score(settings: TrainSettings, train: Puzzles, val: Puzzles) -> Score:
    """Train to the end and measure the averaged weights."""
    learner = Learner(settings, train, SINGLE_PROCESS, torch.device("cpu"))
    for step in range(settings.steps):
        learner.step(step, step / settings.steps)
    with learner.ema.applied():
        reports = [
            validate(
                learner.model, part, outer_steps=settings.evaluate_steps, batch=VAL,
                dtype=learner.dtype,
            )
            for part in (train.take(slice(0, VAL)), val)
        ]  # fmt: skip
    return Score(*(100 * report.final for report in reports))


def scores(name: str, pool: Puzzles, seeds: int, steps: int) -> list[Score]:
    """One run a seed, on training puzzles of its own."""
    settings = replace(BASE, **CHANGES.get(name, {}))
    settings = replace(settings, steps=max(1, steps * BASE.batch // settings.batch))
    val, rest = pool.take(slice(0, VAL)), pool.take(slice(VAL, None))
    found = []
    for seed in range(seeds):
        places = slice(0, FRESH) if name == FRESH_NAME else slice(seed * TRAIN, (seed + 1) * TRAIN)
        found.append(score(replace(settings, seed=seed), rest.take(places), val))
    return found


def changes(found: list[Score], base: list[Score]) -> list[float]:
    """What a setting adds to val, seed by seed."""
    return [each.val - other.val for each, other in zip(found, base, strict=True)]


def noise(columns: list[list[float]]) -> str:
    """What a change must exceed: 2 standard errors, the variance pooled over all settings."""
    pooled = statistics.mean(statistics.variance(column) for column in columns) ** 0.5
    error = pooled / len(columns[0]) ** 0.5
    return f"pooled sd of a change {pooled:.1f}, 2 standard errors of its mean {2 * error:.1f}"


def spread(values: Sequence[float]) -> str:
    """Mean and standard deviation; a dash for the latter of a single value."""
    if len(values) < 2:
        return f"{statistics.mean(values):6.1f}   -   "
    return f"{statistics.mean(values):6.1f} +-{statistics.stdev(values):4.1f}"


def line(name: str, found: list[Score], base: list[Score], seconds: float) -> str:
    """A row of the table."""
    columns = [
        [each.train for each in found],
        [each.val for each in found],
        [each.train - each.val for each in found],
        changes(found, base),
    ]
    return f"{name:20}" + "".join(f"{spread(c):>15}" for c in columns) + f"{seconds:8.1f}"


def main() -> None:
    """Print a line for every setting as soon as its runs are done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=CHANGES, default=[*CHANGES])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    pool = puzzles(VAL + max(FRESH, arguments.seeds * TRAIN))
    print(LEGEND)
    heads = "".join(f"{head:>15}" for head in ("train", "val", "gap", "change"))
    print(f"{'setting':20}{heads}{'s a run':>8}", flush=True)
    base: list[Score] = []
    seen: list[list[float]] = []
    for name in ["base", *arguments.only]:
        begun = time.perf_counter()
        found = scores(name, pool, arguments.seeds, arguments.steps)
        base = base or found
        seconds = (time.perf_counter() - begun) / arguments.seeds
        print(line(name, found, base, seconds), flush=True)
        seen += [changes(found, base)] if name not in ("base", FRESH_NAME) else []
    if seen and arguments.seeds > 1:
        print(noise(seen))


if __name__ == "__main__":
    main()
