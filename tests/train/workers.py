"""What the processes of test_distributed.py do; in a module, so that they can import it."""

import os
from pathlib import Path
from typing import Any

import torch

from tiltrm.tasks.arc import ARC
from tiltrm.train import distributed, state
from tiltrm.train.distributed import World
from tiltrm.train.puzzle_table import PuzzleTable

from . import arc_toys, toys

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


def update_table(world: World) -> torch.Tensor:
    """A table after one step of SignSGD on a batch whose ids repeat across its halves."""
    table = PuzzleTable(9, arc_toys.table_settings(batch=4), world, torch.device("cpu"))
    ids, rows = [3, 5, 5, 8], world.rows(4)
    asked = torch.stack([ARC.question(((1,),), number) for number in ids])
    draw = torch.Generator().manual_seed(1)
    slope = torch.randn(4, table.weights.shape[1], generator=draw)
    table.gather(asked[rows])
    table.batch_rows.grad = slope[rows].clone()
    table.update(1.0)
    return table.weights


def worker(rank: int, size: int, port: int, folder: Path) -> None:
    """One of the processes, as torchrun would start it."""
    os.environ |= {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
    }  # fmt: skip
    for name, arguments in RUNS.items():
        torch.save(train(folder / name, *arguments), folder / f"{name}-{rank}.pt")
    torch.save(update_table(World(rank, size)), folder / f"table-{rank}.pt")
    distributed.leave()
