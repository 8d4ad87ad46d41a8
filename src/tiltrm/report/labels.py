"""Words beside marks, put where they cover neither marks nor each other."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tiltrm.report.style import halo

ADVANCE, LINE = 0.62, 1.25  # of the font's size: the width of a character, the height of a line
MARK, STROKE = 4.5, 1.5  # points round the middle of a mark, and of a line, better left free
BEADS = 24  # places on a piece of line that are looked at
PLACES = [  # (right, up) in units of the distance, best first
    (0, 1), (1, 0), (-1, 0), (0, -1), (0.8, 0.8), (-0.8, 0.8), (0.8, -0.8), (-0.8, -0.8),
]  # fmt: skip
DISTANCES = (7.0, 11.0, 17.0, 25.0)  # points
Box = tuple[float, float, float, float]  # left, bottom, right, top


class Label(NamedTuple):
    """Words for the mark at (x, y) of the data."""

    x: float
    y: float
    text: str
    size: float
    colour: str
    bold: bool = False


Line = Sequence[tuple[float, float]]


def settle(
    axes: Any, labels: Sequence[Label], lines: Sequence[Line], extent: tuple[float, float]
) -> None:
    """Write the labels in turn, each in the place that covers least; the first choose first.

    `lines` have their marks at these (x, y) of the data; a mark alone is a line of one. `extent` is
    about the size of the axes in points, since the layout is not known yet.
    """
    to_axes = axes.transScale + axes.transLimits
    taken: list[Box] = []
    for line in lines:
        spots = [_points(to_axes, extent, *mark) for mark in line]
        taken += [_square(x, y, MARK) for x, y in spots]
        for (x, y), (right, up) in pairwise(spots):
            steps = [bead / BEADS for bead in range(1, BEADS)]
            taken += [_square(x + (right - x) * s, y + (up - y) * s, STROKE) for s in steps]
    for label in labels:
        x, y = _points(to_axes, extent, label.x, label.y)
        places = [
            (right * far, up * far) for far in DISTANCES for right, up in PLACES
        ]  # nearer ones come first, and a tie goes to the first
        boxes = [_box(label, x, y, *place) for place in places]
        there = np.array(taken).reshape(-1, 4)
        cost = [_cost(box, there, extent) + 0.02 * rank for rank, box in enumerate(boxes)]
        best = cost.index(min(cost))
        taken.append(boxes[best])
        right, up = places[best]
        axes.annotate(
            label.text, (label.x, label.y), (right, up), textcoords="offset points",
            ha=_side(right, "left", "right"), va=_side(up, "bottom", "top"), fontsize=label.size,
            color=label.colour, fontweight="bold" if label.bold else "normal", zorder=9,
            path_effects=halo(),
        )  # fmt: skip


def _square(x: float, y: float, half: float) -> Box:
    return x - half, y - half, x + half, y + half


def _points(to_axes: Any, extent: tuple[float, float], x: float, y: float) -> tuple[float, float]:
    across, up = to_axes.transform((x, y))
    return across * extent[0], up * extent[1]


def _side(offset: float, before: str, after: str) -> str:
    return "center" if offset == 0 else before if offset > 0 else after


def _box(label: Label, x: float, y: float, right: float, up: float) -> Box:
    lines = label.text.split("\n")
    width = ADVANCE * label.size * max(map(len, lines)) * (1.1 if label.bold else 1.0)
    height = LINE * label.size * len(lines)
    left = x + right - {0: width / 2, 1: 0.0, -1: width}[_sign(right)]
    bottom = y + up - {0: height / 2, 1: 0.0, -1: height}[_sign(up)]
    return left, bottom, left + width, bottom + height


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _cost(box: Box, taken: np.ndarray[Any, Any], extent: tuple[float, float]) -> float:
    """Square points covered, in tens; much more for what sticks out of the axes."""
    left, bottom, right, top = box
    wide = np.minimum(right, taken[:, 2]) - np.maximum(left, taken[:, 0])
    high = np.minimum(top, taken[:, 3]) - np.maximum(bottom, taken[:, 1])
    covered = float((wide.clip(0) * high.clip(0)).sum())
    outside = max(0.0, -left) + max(0.0, -bottom)
    outside += max(0.0, right - extent[0]) + max(0.0, top - extent[1])
    return covered / 10 + 5 * outside
