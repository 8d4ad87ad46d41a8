"""A model and puzzles so small that the whole reproduction runs on a CPU in no time.

The weights are random, so its figures say nothing but that everything runs.
"""

from pathlib import Path

import torch

from tiltrm.errors import DataError
from tiltrm.model import save
from tiltrm.model.trm import TRM, TRMConfig
from tiltrm.tasks import Sudoku

PUZZLES = 8
TASK = Sudoku(2)
SIZES = TRMConfig(cells=16, vocabulary=6, width=16, layers=1, heads=2, prefix=0, inner_steps=2)


def prepare(folder: Path) -> tuple[str, str]:
    """Write both into a folder, always the same; the names of the model and of the data."""
    torch.manual_seed(0)
    model = TRM(SIZES).eval().requires_grad_(False)
    torch.nn.init.normal_(model.halt_head.weight, std=0.2)
    rows = (map(TASK.decode, TASK.generate(seed)) for seed in range(PUZZLES))
    text = "question,answer\n" + "".join(",".join(row) + "\n" for row in rows)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "puzzles.csv").write_text(text, encoding="utf-8")
    except OSError as error:
        raise DataError(f"{folder}: expected to write there, got: {error.strerror}") from error
    where = save(model, folder / "model", task=TASK.name, dtype=None)
    return str(where), str(folder / "puzzles.csv")
