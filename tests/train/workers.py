"""What the processes of test_distributed.py do; in a module, so that they can import it."""

import os
from pathlib import Path
from typing import Any

import torch

from tiltrm.train import distributed, state

from . import toys

CHANGES: dict[str, Any] = {"noise": 0.3, "batch": 12, "halt_exploration": 0.5, "seed": 3}
RUNS = {"adamw": ("adamw", False), "muon": ("muon", True)}


def train(folder: Path, optimiser: str, save: bool) -> dict[str, Any]:
    """Some steps, perhaps with a save between, which rounds; then the report and all numbers."""
    torch.set_num_threads(1)
    state.SMALL = 64
    run = toys.trainer(folder, optimiser=optimiser, rate=1e-2, **CHANGES)
    losses = toys.advance(run, 4)
    if save:
        run.save()
    losses += toys.advance(run, 4)
    with run.learner.ema.applied():
        report = run._validate(run.val)
    stopped = distributed.any_process(run.world.rank == run.world.size - 1, run.world, run.device)
    figures = (report.exact, report.cells, report.halt_accuracy, report.halt_bce)
    return {
        "losses": losses, "numbers": toys.numbers(run.learner), "report": figures,
        "stopped": stopped, "flops": run.learner.flops,
    }  # fmt: skip


def worker(rank: int, size: int, port: int, folder: Path) -> None:
    """One of the processes, as torchrun would start it."""
    os.environ |= {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
    }  # fmt: skip
    for name, arguments in RUNS.items():
        torch.save(train(folder / name, *arguments), folder / f"{name}-{rank}.pt")
    distributed.leave()
