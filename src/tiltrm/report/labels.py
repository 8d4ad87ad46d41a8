"""Words beside marks, put where they cover neither marks nor each other."""

import math
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
DISTANCES = (8.0, 12.0, 17.0, 25.0)  # points
FAR = 15.0  # points; words further off are tied to their mark by a thin line
HEIGHTS = 16  # places for words along the side of a region
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
) -> list[Box]:
    """Write the labels in turn, each in the place that covers least; the first choose first.

    `lines` have their marks at these (x, y) of the data; a mark alone is a line of one. `extent` is
    about the size of the axes in points, since the layout is not known yet. Returns what is covered
    now, in points.
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
        places = [(label, right * far, up * far) for far in DISTANCES for right, up in PLACES]
        _put(axes, places, taken, extent)
    return taken


def along(
    axes: Any, label: Label, region: Box, taken: list[Box], extent: tuple[float, float]
) -> None:
    """Write by a side of a region of the data, where least is covered; (x, y) of the label is moot.

    Inside its left or its right side, or else just outside the right one; the highest first.
    """
    to_axes = axes.transScale + axes.transLimits
    left, bottom, right, top = region
    gap, half = DISTANCES[0], _size(label)[1] / 2
    low, high = (_points(to_axes, extent, left, y)[1] for y in (bottom, top))
    ups = np.linspace(high - gap - half, min(high - gap, low + gap) + half, HEIGHTS) / extent[1]
    heights = to_axes.inverted().transform([(0.0, up) for up in ups])[:, 1]
    sides = ((left, gap), (right, -gap), (right, gap))
    places = [(label._replace(x=x, y=float(y)), off, 0.0) for x, off in sides for y in heights]
    _put(axes, places, taken, extent)


Place = tuple[Label, float, float]  # words, and how far right and up of their mark


def _put(axes: Any, places: Sequence[Place], taken: list[Box], extent: tuple[float, float]) -> None:
    """Write in the place that covers least; a tie goes to the first."""
    to_axes = axes.transScale + axes.transLimits
    boxes = [_box(o, *_points(to_axes, extent, o.x, o.y), *off) for o, *off in places]
    there = np.array(taken).reshape(-1, 4)
    cost = [_cost(box, there, extent) + 0.02 * rank for rank, box in enumerate(boxes)]
    best = cost.index(min(cost))
    taken.append(boxes[best])
    label, right, up = places[best]
    thread = {"arrowstyle": "-", "color": label.colour, "linewidth": 0.6, "shrinkA": 0,
              "shrinkB": MARK}  # fmt: skip
    axes.annotate(
        label.text, (label.x, label.y), (right, up), textcoords="offset points",
        ha=_side(right, "left", "right"), va=_side(up, "bottom", "top"), fontsize=label.size,
        color=label.colour, fontweight="bold" if label.bold else "normal", zorder=9,
        path_effects=halo(), arrowprops=thread if math.hypot(right, up) > FAR else None,
    )  # fmt: skip


def _square(x: float, y: float, half: float) -> Box:
    return x - half, y - half, x + half, y + half


def _points(to_axes: Any, extent: tuple[float, float], x: float, y: float) -> tuple[float, float]:
    across, up = to_axes.transform((x, y))
    return across * extent[0], up * extent[1]


def _side(offset: float, before: str, after: str) -> str:
    return "center" if offset == 0 else before if offset > 0 else after


def _size(label: Label) -> tuple[float, float]:
    lines = label.text.split("\n")
    width = ADVANCE * label.size * max(map(len, lines)) * (1.1 if label.bold else 1.0)
    return width, LINE * label.size * len(lines)


def _box(label: Label, x: float, y: float, right: float, up: float) -> Box:
    width, height = _size(label)
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
