"""How much a reproduction computes: full, quick or tiny.

`full` is the paper's protocol (App. A), `quick` takes minutes of one H200, `tiny` takes seconds of
a CPU and shows only that everything runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch

from tiltrm.errors import DataError, SettingsError
from tiltrm.model import save
from tiltrm.model.trm import TRM, TRMConfig
from tiltrm.tasks import Sudoku

TINY_PUZZLES = 8
TINY_TASK = Sudoku(2)
TINY_MODEL = TRMConfig(
    cells=16, vocabulary=6, width=16, layers=1, heads=2, prefix=0, inner_steps=2
)  # fmt: skip


@dataclass(frozen=True)
class Size:
    """Numbers of seeds, folds and puzzles; puzzles by task, None for all of them."""

    seeds: int
    folds: int
    table: Mapping[str, int | None] = field(default_factory=dict)
    frontier: Mapping[str, int | None] = field(default_factory=dict)
    sweep: Mapping[str, int | None] = field(default_factory=dict)
    diagnose: Mapping[str, int | None] = field(default_factory=dict)
    rooted: int = 8  # puzzles whose stability is measured
    parts: int = 1  # folds of the frontier; all methods finish one before the next begins
    most: Mapping[str, int] = field(default_factory=dict)  # upper limits of settings


def _limits(sudoku: int | None, maze: int | None) -> dict[str, int | None]:
    return {"sudoku": sudoku, "maze": maze}


SIZES = {
    # A maze costs as much as twenty Sudokus, so its frontier and sweeps have fewer.
    "full": Size(5, 5, _limits(None, None), _limits(2000, 100), _limits(2000, 64),
                 _limits(512, 64), rooted=16, parts=5),
    "quick": Size(2, 5, _limits(1000, 60), _limits(400, 24), _limits(200, 12), _limits(64, 16)),
    "tiny": Size(2, 2, _limits(8, 4), _limits(4, 2), _limits(4, 2), _limits(4, 2), rooted=1,
                 most={"particles": 4, "outer_steps": 6, "copies": 2}),
}  # fmt: skip


def size_of(name: str) -> Size:
    """The size of this name."""
    if name not in SIZES:
        raise SettingsError(f"size must be one of {', '.join(SIZES)}, got {name!r}")
    return SIZES[name]


def write_tiny(folder: Path) -> tuple[str, str]:
    """Write a small random model and puzzles for `tiny`; returns the paths of both.

    The content is always the same. The weights are random, so results only show that all runs.
    """
    torch.manual_seed(0)
    model = TRM(TINY_MODEL).eval().requires_grad_(False)
    torch.nn.init.normal_(model.halt_head.weight, std=0.2)
    rows = (map(TINY_TASK.decode, TINY_TASK.generate(seed)) for seed in range(TINY_PUZZLES))
    text = "question,answer\n" + "".join(",".join(row) + "\n" for row in rows)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "puzzles.csv").write_text(text, encoding="utf-8")
    except OSError as error:
        raise DataError(f"{folder}: expected to write there, got: {error.strerror}") from error
    where = save(model, folder / "model", task=TINY_TASK.name, dtype=None)
    return str(where), str(folder / "puzzles.csv")
