"""Sudoku grids in the colours of their doubt (Fig. 4, left and middle)."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tiltrm.evaluate.shards import Shard
from tiltrm.evaluate.target import read_for
from tiltrm.report.sheet import Panel
from tiltrm.report.style import paint
from tiltrm.tasks import by_name

STRONGEST = 0.85  # opacity
FULL = 0.5  # the entropy that has it, and all above
SCALE = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)


def examples(shards: Sequence[Shard]) -> tuple[list[Panel], tuple[str, ...]]:
    """A solved and an unsolved puzzle, and a sentence for a kind that there is none of.

    Of each kind the one in the middle by entropy, among those whose cloud was ever in doubt.
    """
    panels, notes, labels = [], [], None
    for solved, word in ((True, "solved"), (False, "unsolved")):
        found = [
            (float(entropy[free].astype(np.float64).mean()), int(shard["puzzle"][row]), shard, row)
            for shard in shards
            for row, (entropy, free) in enumerate(
                zip(shard["path_entropy"], shard["free"], strict=True)
            )
            if shard["exact"][row] == solved and free.any()
        ]
        doubtful = sorted(item[:2] for item in found if item[0] > 0) or sorted(
            item[:2] for item in found
        )
        if not doubtful:
            notes.append(f"No puzzle of Test is {word}, so none is shown.")
            continue
        middle = doubtful[len(doubtful) // 2]
        shard, row = next(item[2:] for item in found if item[:2] == middle)
        labels = read_for(shard.job).labels() if labels is None else labels
        panels.append(_panel(shard, row, word, labels[middle[1]]))
    return panels, tuple(notes)


def _panel(shard: Shard, row: int, word: str, label: Tensor) -> Panel:
    name, place = shard.job.split, int(shard["puzzle"][row]) + 1
    wrong = int((~shard["cell_right"][row]).sum())
    said = f"Puzzle {place} of {name}, {word}, {wrong} wrong cells, coloured by its entropy."
    digits = by_name(shard.job.task).decode(label + torch.tensor(shard["off"][row]))
    return Panel(f"Puzzle {place} of {name}: {word}", said, partial(_draw, shard, row, digits))


def _draw(shard: Shard, row: int, digits: str, axes: Any) -> None:
    side = math.isqrt(len(digits))
    doubt, right, free = (shard[n][row] for n in ("path_entropy", "cell_right", "free"))
    for cell, digit in enumerate(digits):
        y, x = divmod(cell, side)
        if free[cell]:
            _shade(axes, x, y, 1.0, float(doubt[cell]))
        if not right[cell]:
            axes.plot([x + 0.12, x + 0.88], [y + 0.88, y + 0.12], color=paint("wrong"),
                      linewidth=1.6, solid_capstyle="round")  # fmt: skip
        axes.text(x + 0.5, y + 0.54, digit, ha="center", va="center", fontsize=78 / side,
                  fontweight="normal" if free[cell] else "bold",
                  color=paint("ink" if right[cell] else "wrong"))  # fmt: skip
    box = math.isqrt(side)
    for line in range(side + 1):
        thick = line % box == 0
        style = {"color": paint("ink" if thick else "hair"), "linewidth": 1.5 if thick else 0.7,
                 "zorder": 3 if thick else 1}  # fmt: skip
        axes.plot([line, line], [0, side], **style)
        axes.plot([0, side], [line, line], **style)
    unit = side / 9
    for rung, value in enumerate(SCALE):
        down = unit * (1.5 + 0.8 * (len(SCALE) - rung))
        _shade(axes, side + 0.6 * unit, down, 0.8 * unit, value)
        said = f"{value:g}" if value < FULL else f"≥ {value:g}"
        axes.text(side + 1.7 * unit, down + 0.4 * unit, said, va="center", fontsize=8)
    axes.text(side + 0.6 * unit, 1.7 * unit, "H̄", va="center", fontsize=9)
    axes.set(xlim=(-0.1, side + 3 * unit), ylim=(side + 0.1, -0.1), aspect="equal")
    axes.axis("off")


def _shade(axes: Any, x: float, y: float, size: float, doubt: float) -> None:
    strength = STRONGEST * min(1.0, doubt / FULL)
    axes.fill([x, x + size, x + size, x], [y, y, y + size, y + size], linewidth=0,
              facecolor=paint("doubt"), alpha=strength, zorder=0.5)  # fmt: skip
