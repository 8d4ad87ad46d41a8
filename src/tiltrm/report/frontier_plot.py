"""The plot of the frontier: a logarithmic axis of cost, and one that stretches towards 100 %."""

import math
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from tiltrm.evaluate.compare import Paired
from tiltrm.evaluate.summary import Row, Stopped
from tiltrm.report import paper
from tiltrm.report.drawing import NARROW, STYLES, WIDE, MethodStyle, colour
from tiltrm.report.label_placement import Label, LabelPlacer
from tiltrm.report.results import interval, percent

TICKS = (0, 20, 40, 60, 70, 80, 90, 95, 98, 99, 99.5, 99.8, 99.9)
GOALS = {"sudoku": (1000, 98.0)}  # at most so many evaluations, at least so many percent
ROOM = 0.04  # of the height, above 100 %, so that a mark there is not cut
SMALL = 6.0  # inches; narrower figures have less text
EXTENT = {False: (0.92 * 72 * WIDE[0], 0.74 * 72 * WIDE[1]),  # of the axes, in points, about
          True: (0.73 * 72 * NARROW[0], 0.69 * 72 * NARROW[1])}  # fmt: skip
OURS = ("adaptive", "adaptive_rules")
MAJORITY, NOISE_ALONE = "ptrm majority", "adaptive unturned"
VARIANTS: dict[str, tuple[str, str, Any]] = {  # series beside a method's own: label, marker, dash
    MAJORITY: ("PTRM, most frequent", "<", (0, (1, 1))),
    NOISE_ALONE: ("adaptive by noise alone", "d", (0, (1, 1))),
}


class FrontierPoint(NamedTuple):
    """One method with one setting."""

    row: Row
    series: str  # the method, or a key of VARIANTS
    budget: str  # the setting that sets it apart from the others of its series
    against: Paired | None  # the default of adaptive minus this; None for that default itself

    @property
    def style(self) -> MethodStyle:
        """How its series is drawn."""
        style = STYLES[self.row.method]
        if self.series not in VARIANTS:
            return style
        label, marker, dash = VARIANTS[self.series]
        return MethodStyle(label, style.colour_name, marker, dash)

    @property
    def label(self) -> str:
        """Its series in words."""
        return self.style.label

    @property
    def exact(self) -> float:
        """Percent exactly solved."""
        return percent(self.row.exact.mean)

    @property
    def evaluations(self) -> float:
        """Mean evaluations a puzzle."""
        return self.row.evaluations.mean


def stretched(least: float) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """-log10 of the unsolved share, finite at 100 %, where `least` of a percent counts as unsolved.

    Returns the function and its inverse, both of percentages. Above 100 % it goes straight on.
    """
    end, slope = -math.log10(least), least * math.log(10.0)

    def forward(value: Any) -> Any:
        unsolved = 100.0 - np.asarray(value, dtype=float)
        return np.maximum(-unsolved, 0.0) / slope - np.log10(np.maximum(unsolved, 0.0) + least)

    def inverse(value: Any) -> Any:
        value = np.asarray(value, dtype=float)
        beyond = slope * np.maximum(value - end, 0.0)
        return 100.0 + least - 10.0 ** -np.minimum(value, end) + beyond

    return forward, inverse


def draw(
    benchmark: str, found: Sequence[FrontierPoint], between: Sequence[Stopped], axes: Any
) -> None:
    """Draw the whole plot; `between` are points on the line of adaptive between its marks."""
    small = axes.figure.get_figwidth() < SMALL
    published = paper.FRONTIER[benchmark]
    lowest = min(*(point.exact for point in found), *(point.exact for point in published))
    series = [list(some) for _, some in groupby(found, key=lambda point: point.series)]
    lines = [[(p.evaluations, p.exact) for p in some] for some in series]
    for some, line in zip(series, lines, strict=True):
        if some[0].series == "adaptive":
            more = [(own.evaluations, percent(own.exact)) for own in between]
            line[:] = best_so_far([*line, *(point for point in more if point[1] >= lowest)])
    costs = [*(p.evaluations for p in published), *(cost for line in lines for cost, _ in line),
             *(p.evaluations for p in found)]  # fmt: skip
    _set_scales(axes, max(point.row.puzzles for point in found), lowest, costs)
    for some, line in zip(series, lines, strict=True):
        _draw_series(axes, some, line, small)
    _draw_published(axes, published)
    lines += [[(float(p.evaluations), p.exact)] for p in published]
    lines += [[(p.evaluations, edge) for edge in interval(p.row)[1:]]
              for p in found if p.series in OURS]  # fmt: skip
    placer = LabelPlacer(axes, lines, EXTENT[small])
    for label in _labels(series, published, small):
        placer.place(label)
    if benchmark in GOALS:
        _draw_goal(axes, *GOALS[benchmark], placer, 6.5 if small else 8)
    what = "mean evaluations a puzzle" + ("" if small else " (calls of the network)")
    axes.set(xlabel=what, ylabel="exactly solved, %")
    axes.legend(loc="upper center", bbox_to_anchor=(0.46, -0.12), ncols=2 if small else 4,
                fontsize=7.5 if small else 8.5, columnspacing=1.4, handlelength=2.2)  # fmt: skip


def best_so_far(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points (cost, share) that no cheaper one exceeds, cheapest first."""
    found: list[tuple[float, float]] = []
    for cost, share in sorted(points):
        if not found or share >= found[-1][1]:
            found.append((cost, share))
    return found


def _set_scales(axes: Any, puzzles: int, lowest: float, costs: Sequence[float]) -> None:
    least = 50.0 / puzzles  # half a puzzle, in percent
    bottom = lowest - 0.25 * (100.0 - lowest)  # below 0 too, so that a mark there is not cut
    axes.set_xscale("log")
    forward, inverse = stretched(least)
    axes.set_yscale("function", functions=(forward, inverse))
    top = forward(100.0) + ROOM * (forward(100.0) - forward(bottom))
    axes.set_ylim(bottom, float(inverse(top)))
    ticks = [t for t in TICKS if bottom <= t < 100 - least]
    axes.set_yticks([*ticks, 100], [f"{t:g}" for t in (*ticks, 100)])
    axes.set_yticks([], minor=True)
    low, high = min(costs) / 2.2, max(costs) * 1.6
    axes.set_xlim(low, high)
    powers = [10.0**n for n in range(7) if low <= 10.0**n <= high]
    axes.set_xticks(powers, [f"{power:,.0f}" for power in powers])


def _draw_goal(axes: Any, cost: int, share: float, placer: LabelPlacer, size: float) -> None:
    """The corner that no published method on frozen weights reaches, with a label."""
    left, top = axes.get_xlim()[0], axes.get_ylim()[1]
    axes.fill([left, cost, cost, left], [share, share, top, top], color=colour("adaptive"),
              alpha=0.09, linewidth=0, zorder=0)  # fmt: skip
    text = f"at least {share:g} %,\nat most {cost:,}\nevaluations"
    label = Label(left, top, text, size, colour("adaptive"))
    placer.place_in_region(label, (left, share, cost, top))


def _draw_series(
    axes: Any, some: Sequence[FrontierPoint], line: Sequence[tuple[float, float]], small: bool
) -> None:
    """A mark for every point, and the line, which need not be straight between them."""
    style, ours = some[0].style, some[0].series in OURS
    spent = [point.evaluations for point in some]
    middle, low, high = zip(*(interval(point.row) for point in some), strict=True)
    axes.vlines(spent, low, high, color=style.colour, linewidth=1.4 if ours else 1, zorder=2,
                alpha=0.4 if ours else 0.2)  # fmt: skip
    size = {"*": 13.0, "P": 8.5}.get(style.marker, 6.0) * (0.85 if small else 1.0)
    mark = {"marker": style.marker, "color": style.colour, "markersize": size,
            "markeredgecolor": colour("sheet"), "markeredgewidth": 0.7}  # fmt: skip
    over = 6 if ours else 4
    axes.plot(*zip(*line, strict=True), linestyle=style.dash, linewidth=2.6 if ours else 1.3,
              label=style.label, zorder=over, markevery=[], **mark)  # fmt: skip
    axes.plot(spent, middle, linestyle="none", zorder=over, **mark)


def _draw_published(axes: Any, published: Sequence[paper.PublishedPoint]) -> None:
    for point in published:
        style = STYLES[point.method]
        axes.plot(point.evaluations, point.exact, style.marker, color=style.colour, markersize=7.5,
                  markerfacecolor=colour("sheet"), markeredgewidth=1.4, zorder=5)  # fmt: skip
    axes.plot([], [], "o", color=colour("soft"), label="published, own weights",
              markerfacecolor=colour("sheet"), markeredgewidth=1.4, markersize=6.5)  # fmt: skip


def _labels(
    series: Sequence[Sequence[FrontierPoint]], published: Sequence[paper.PublishedPoint],
    small: bool,
) -> list[Label]:  # fmt: skip
    """The best of ours, then published points, then the cheapest and dearest of each series."""
    labels = []
    for some in series:
        best = max(some, key=lambda p: (p.exact, -p.evaluations))
        if best.series in OURS:
            text = f"{best.exact:.4g} % at {best.evaluations:,.0f}"
            labels.append(Label(best.evaluations, best.exact, text, 8 if small else 10,
                                best.style.colour, bold=True))  # fmt: skip
    labels += [
        Label(p.evaluations, p.exact, p.name, 6.5 if small else 7.5, colour("soft"))
        for p in published
    ]
    if not small:
        ends = (point for some in series for point in dict.fromkeys((some[0], some[-1])))
        labels += [
            Label(p.evaluations, p.exact, p.budget, 7, colour("soft"))
            for p in ends
            if p.row.method not in OURS
        ]
    return labels
