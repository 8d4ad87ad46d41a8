"""Text beside marks, placed where it covers neither marks nor lines nor other text."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tiltrm.report.drawing import halo

CHARACTER, LINE = 0.62, 1.25  # width of a character and height of a line, in font sizes
MARK, STROKE = 4.5, 1.5  # points to keep free round the middle of a mark and of a line
SAMPLES = 24  # places on each straight piece of a line that are kept free
DIRECTIONS = [  # (right, up) in units of the distance, best first
    (0, 1), (1, 0), (-1, 0), (0, -1), (0.8, 0.8), (-0.8, 0.8), (0.8, -0.8), (-0.8, -0.8),
]  # fmt: skip
DISTANCES = (8.0, 12.0, 17.0, 25.0)  # points
FAR = 15.0  # points; text further off is joined to its mark by a thin line
HEIGHTS = 16  # places that are tried along the side of a region
Box = tuple[float, float, float, float]  # left, bottom, right, top


class Label(NamedTuple):
    """Text for the mark at (x, y) in data coordinates."""

    x: float
    y: float
    text: str
    size: float
    colour: str
    bold: bool = False


class LabelPlacer:
    """Writes labels onto axes, each in the place that covers least; the first choose first.

    Args:
        axes: matplotlib's axes, with their final limits.
        lines: (x, y) of the marks along each line, in data coordinates; one mark is a line too.
        extent: approximate size of the axes in points, since the layout is not known yet.
    """

    def __init__(
        self, axes: Any, lines: Sequence[Sequence[tuple[float, float]]],
        extent: tuple[float, float],
    ) -> None:  # fmt: skip
        self.axes, self.extent = axes, extent
        self.to_axes = axes.transScale + axes.transLimits
        self.covered: list[Box] = []  # in points
        for line in lines:
            marks = [self._points(*mark) for mark in line]
            self.covered += [_square(x, y, MARK) for x, y in marks]
            for (x, y), (right, up) in pairwise(marks):
                steps = [n / SAMPLES for n in range(1, SAMPLES)]
                self.covered += [
                    _square(x + (right - x) * s, y + (up - y) * s, STROKE) for s in steps
                ]

    def place(self, label: Label) -> None:
        """Write a label beside its mark."""
        self._write([(label, right * far, up * far) for far in DISTANCES
                     for right, up in DIRECTIONS])  # fmt: skip

    def place_in_region(self, label: Label, region: Box) -> None:
        """Write a label along a side of a region of the data, as high as possible.

        Inside the left or the right side, or else just outside the right side. The label's own
        (x, y) is not used.
        """
        left, bottom, right, top = region
        gap, half = DISTANCES[0], _size(label)[1] / 2
        low, high = (self._points(left, y)[1] for y in (bottom, top))
        ups = np.linspace(high - gap - half, min(high - gap, low + gap) + half, HEIGHTS)
        ups /= self.extent[1]
        heights = self.to_axes.inverted().transform([(0.0, up) for up in ups])[:, 1]
        sides = ((left, gap), (right, -gap), (right, gap))
        self._write([(label._replace(x=x, y=float(y)), off, 0.0) for x, off in sides
                     for y in heights])  # fmt: skip

    def _write(self, places: Sequence[tuple[Label, float, float]]) -> None:
        """Write in the best of these places: (label, points to the right, points up)."""
        boxes = [_box(o, *self._points(o.x, o.y), *offset) for o, *offset in places]
        covered = np.array(self.covered).reshape(-1, 4)
        cost = [self._cost(box, covered) + 0.02 * rank for rank, box in enumerate(boxes)]
        best = cost.index(min(cost))
        self.covered.append(boxes[best])
        label, right, up = places[best]
        thread = {"arrowstyle": "-", "color": label.colour, "linewidth": 0.6, "shrinkA": 0,
                  "shrinkB": MARK}  # fmt: skip
        self.axes.annotate(
            label.text, (label.x, label.y), (right, up), textcoords="offset points",
            ha=("center", "left", "right")[_sign(right)],
            va=("center", "bottom", "top")[_sign(up)], fontsize=label.size,
            color=label.colour, fontweight="bold" if label.bold else "normal", zorder=9,
            path_effects=halo(), arrowprops=thread if math.hypot(right, up) > FAR else None,
        )  # fmt: skip

    def _points(self, x: float, y: float) -> tuple[float, float]:
        """Data coordinates in points from the lower left corner of the axes."""
        across, up = self.to_axes.transform((x, y))
        return across * self.extent[0], up * self.extent[1]

    def _cost(self, box: Box, covered: np.ndarray[Any, Any]) -> float:
        """Square points covered, in tens; much more for text that sticks out of the axes."""
        left, bottom, right, top = box
        wide = np.minimum(right, covered[:, 2]) - np.maximum(left, covered[:, 0])
        high = np.minimum(top, covered[:, 3]) - np.maximum(bottom, covered[:, 1])
        area = float((wide.clip(0) * high.clip(0)).sum())
        outside = max(0.0, -left) + max(0.0, -bottom)
        outside += max(0.0, right - self.extent[0]) + max(0.0, top - self.extent[1])
        return area / 10 + 5 * outside


def _square(x: float, y: float, half: float) -> Box:
    return x - half, y - half, x + half, y + half


def _size(label: Label) -> tuple[float, float]:
    lines = label.text.split("\n")
    width = CHARACTER * label.size * max(map(len, lines)) * (1.1 if label.bold else 1.0)
    return width, LINE * label.size * len(lines)


def _box(label: Label, x: float, y: float, right: float, up: float) -> Box:
    width, height = _size(label)
    left = x + right - (width / 2, 0.0, width)[_sign(right)]
    bottom = y + up - (height / 2, 0.0, height)[_sign(up)]
    return left, bottom, left + width, bottom + height


def _sign(value: float) -> int:
    """0, 1 or -1: an index of a tuple (none, positive, negative)."""
    return (value > 0) - (value < 0)
