"""Milliseconds and TFLOP/s of a training step, beside the ceiling and a plain version.

`python -m benchmarks.train` times supervision steps of 3 x (6 + 1) evaluations on batches of
generated puzzles: as the trainer runs them, and with a plain uncompiled network; the share is of a
large matrix product measured in the same run. The known figure to beat is 94 ms (batch 768, H200).
Without a GPU it runs a tiny model, only to check itself.
"""

import argparse
import statistics
import time
from dataclasses import replace

import torch

from tiltrm import kernels
from tiltrm.data import Puzzles
from tiltrm.model.flops import evaluation_flops
from tiltrm.model.trm import TRMConfig
from tiltrm.tasks import SUDOKU
from tiltrm.train.distributed import World
from tiltrm.train.learner import Learner
from tiltrm.train.settings import Depth, Settings, preset

KNOWN_MS = 94.0  # batch 768, 3 x (6 + 1), compiled, one H200


def ceiling(device: torch.device) -> float:
    """FLOP/s of a large matrix product on this device."""
    on_gpu = device.type == "cuda"
    side, dtype = (8192, torch.bfloat16) if on_gpu else (1024, torch.float32)
    a, b = (torch.randn(side, side, device=device, dtype=dtype) for _ in range(2))
    times = []
    for _ in range(8):
        _wait(device)
        begun = time.perf_counter()
        a @ b
        _wait(device)
        times.append(time.perf_counter() - begun)
    return 2 * side**3 / statistics.median(times)


def step_seconds(learner: Learner, steps: int, progress: float = 0.5) -> float:
    """Median seconds of a step, the first ones left out."""
    times = []
    for number in range(steps + 3):
        _wait(learner.device)
        begun = time.perf_counter()
        learner.step(number, progress)
        _wait(learner.device)
        times.append(time.perf_counter() - begun)
    return statistics.median(times[3:])


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _settings(batch: int, tiny: bool) -> Settings:
    settings = replace(preset("sudoku", "fast"), batch=batch, depth=Depth())
    return replace(settings, batch=4, model=TRMConfig(width=64, heads=2)) if tiny else settings


def main() -> None:
    """Print a line for every version."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, nargs="+", default=[384, 768])
    parser.add_argument("--steps", type=int, default=20)
    arguments = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    pairs = [SUDOKU.generate(seed) for seed in range(4)]
    puzzles = Puzzles(
        SUDOKU, torch.stack([q for q, _ in pairs]), torch.stack([a for _, a in pairs])
    )
    most = ceiling(device)
    print(f"matrix product: {most / 1e12:.2f} TFLOP/s")
    for batch in arguments.batches if device.type == "cuda" else [4]:
        settings = _settings(batch, device.type == "cpu")
        for name in ("as trained", "plain"):
            learner = Learner(settings, puzzles, World(), device)
            if name == "plain":
                kernels.unfuse(learner.model)
            seconds = step_seconds(learner, arguments.steps)
            before = learner.evaluations
            learner.step(arguments.steps + 3, 0.5)
            flops = (learner.evaluations - before) * evaluation_flops(settings.model)
            print(
                f"batch {settings.batch:4d} {name:10}: {1000 * seconds:8.1f} ms a step, "
                f"{flops / seconds / 1e12:7.2f} TFLOP/s, {100 * flops / seconds / most:4.0f} %, "
                f"{KNOWN_MS / (1000 * seconds) * settings.batch / 768:.2f} x the known rate",
                flush=True,
            )


if __name__ == "__main__":
    main()
