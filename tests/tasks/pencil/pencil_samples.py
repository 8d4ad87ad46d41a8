"""Small pencil puzzles with their answers and a small model, for tests of commands and page."""

from pathlib import Path

import torch

from tiltrm.model import save
from tiltrm.model.trm import TRM, TRMConfig
from tiltrm.tasks.pencil import PENCIL
from tiltrm.tasks.pencil.mixed import STARTS

LINK = "https://puzz.link/p?"
PUZZLES = {  # made by the generators, each with one solution
    "lightup": (f"{LINK}lightup/5/4/.g.hcl.h.gb", "....o/.o.../o..../...o."),
    "nurikabe": (f"{LINK}nurikabe/5/4/g2n2h3k1", "..###/###.#/.#..#/.###."),
    "heyawake": (f"{LINK}heyawake/5/4/lfl02lk0k0", ".#.../...#./#.#../...#."),
    "tapa": (f"{LINK}tapa/5/4/1h2k34g8m", "...../.###./.#.##/####."),
}


def save_random_model(folder: Path) -> str:
    """A random model of all five types, stored in this folder."""
    torch.manual_seed(0)
    config = TRMConfig(
        cells=100, vocabulary=PENCIL.vocabulary, width=32, layers=1, heads=2, prefix=1,
        inner_steps=2, puzzles=5, puzzle_starts=STARTS,
    )  # fmt: skip
    tiny = TRM(config).eval().requires_grad_(False)
    tiny.task, tiny.decide_above = "pencil", 100.0
    return str(save(tiny, folder, dtype=None))
