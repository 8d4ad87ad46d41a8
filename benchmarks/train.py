"""Milliseconds and TFLOP/s of a training step, beside the ceiling and a plain version.

`python -m benchmarks.train` times supervision steps of three outer steps on batches of generated
puzzles: as the trainer runs them, and with a plain uncompiled network; the share is of a large
matrix product measured in the same run. The figure to beat is 94 ms (Sudoku, batch 768, H200).
`--profile` lists the kernels that take longest. Without a GPU it runs a tiny model, only to check
itself.
"""

import argparse
import statistics
from dataclasses import replace
from functools import partial

import torch

from benchmarks.clock import ceiling, profile, seconds
from tiltrm import kernels
from tiltrm.data import Puzzles
from tiltrm.tasks import by_name
from tiltrm.train.distributed import World
from tiltrm.train.learner import Learner
from tiltrm.train.settings import Depth, TrainSettings, Window, load_preset

KNOWN_MS = 94.0  # Sudoku, batch 768, 3 x (6 + 1), compiled, one H200
BATCHES = {"sudoku": [384, 768], "maze": [128]}


def step_seconds(learner: Learner, steps: int, progress: float = 0.5) -> float:
    """Median seconds of a step, the first ones left out."""
    times = [
        seconds(partial(learner.step, number, progress), learner.device)
        for number in range(steps + 3)
    ]
    return statistics.median(times[3:])


def _settings(task: str, batch: int, tiny: bool) -> TrainSettings:
    settings = replace(
        load_preset(task, "fast"), batch=batch, depth=Depth(), shuffles=4, window=Window()
    )
    if not tiny:
        return settings
    return replace(settings, batch=2, model=replace(settings.model, width=64, heads=2))


def _report(name: str, learner: Learner, taken: float, most: float) -> str:
    settings, before = learner.settings, learner.flops
    learner.step(0, 0.5)
    flops = learner.flops - before
    line = (
        f"batch {settings.batch:4d} {name:10}: {1000 * taken:8.1f} ms a step, "
        f"{flops / taken / 1e12:7.2f} TFLOP/s, {100 * flops / taken / most:4.0f} %"
    )
    if settings.task == "sudoku":
        line += f", {KNOWN_MS / (1000 * taken) * settings.batch / 768:.2f} x the known rate"
    return line


def main() -> None:
    """Print a line for every version."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", default="sudoku", choices=BATCHES)
    parser.add_argument("--batches", type=int, nargs="+")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--profile", type=int, default=0, metavar="ROWS")
    arguments = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    task = by_name(arguments.task)
    pairs = [task.generate(seed) for seed in range(4)]
    puzzles = Puzzles(task, torch.stack([q for q, _ in pairs]), torch.stack([a for _, a in pairs]))
    most = ceiling(device)
    print(f"matrix product: {most / 1e12:.2f} TFLOP/s")
    tiny = device.type == "cpu"
    for batch in [2] if tiny else arguments.batches or BATCHES[arguments.task]:
        settings = _settings(arguments.task, batch, tiny)
        for name in ("as trained", "plain"):
            learner = Learner(settings, puzzles, World(), device)
            if name == "plain":
                kernels.unfuse(learner.model)
            taken = step_seconds(learner, arguments.steps)
            print(_report(name, learner, taken, most), flush=True)
            if arguments.profile and not tiny:
                profile(partial(learner.step, 0, 0.5), device, arguments.profile)


if __name__ == "__main__":
    main()
