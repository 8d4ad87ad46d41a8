"""The picture of the frontier: a logarithmic axis of cost, and one that stretches towards 100 %."""

import math
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from tiltrm.evaluate.summary import Stopped
from tiltrm.report import paper
from tiltrm.report.evidence import interval, percent
from tiltrm.report.frontier_points import OURS, Point
from tiltrm.report.labels import Box, Label, along, settle
from tiltrm.report.sheet import NARROW, WIDE
from tiltrm.report.style import LOOKS, paint

TICKS = (0, 20, 40, 60, 70, 80, 90, 95, 98, 99, 99.5, 99.8, 99.9)
GOAL = (1000, 98.0)  # at most so many evaluations, at least so many percent
ROOM = 0.04  # of the height, above 100 %, so that a mark there is whole
SMALL = 6.0  # inches; a narrower figure has fewer words
EXTENT = {False: (0.92 * 72 * WIDE[0], 0.74 * 72 * WIDE[1]),  # of the axes, in points, about
          True: (0.73 * 72 * NARROW[0], 0.69 * 72 * NARROW[1])}  # fmt: skip


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


def draw(part: str, found: Sequence[Point], line: Sequence[Stopped], axes: Any) -> None:
    """Everything onto one pair of axes."""
    small = axes.figure.get_figwidth() < SMALL
    peers = paper.PEERS[part]
    lowest = min(*(interval(point.row)[0] for point in found), *(peer.exact for peer in peers))
    series = [list(some) for _, some in groupby(found, key=lambda point: point.variant)]
    lines = [[(p.evaluations, interval(p.row)[0]) for p in some] for some in series]
    for some, spots in zip(series, lines, strict=True):
        if some[0].variant == "adaptive":
            between = ((own.evaluations, percent(own.exact)) for own in line)
            spots[:] = best_so_far([*spots, *(spot for spot in between if spot[1] >= lowest)])
    _scales(axes, found, peers, lowest, [cost for some in lines for cost, _ in some])
    for some, drawn in zip(series, lines, strict=True):
        _series(axes, some, drawn, small)
    _published(axes, peers)
    lines += [[(float(peer.evaluations), peer.exact)] for peer in peers]
    lines += [[(p.evaluations, edge) for edge in interval(p.row)[1:]]
              for p in found if p.variant in OURS]  # fmt: skip
    taken = settle(axes, _labels(series, peers, small), lines, EXTENT[small])
    if part == "sudoku":
        _goal(axes, taken, small)
    what = "mean evaluations a puzzle" + ("" if small else " (calls of the network)")
    axes.set(xlabel=what, ylabel="exactly solved, %")
    axes.legend(loc="upper center", bbox_to_anchor=(0.46, -0.12), ncols=2 if small else 4,
                fontsize=7.5 if small else 8.5, columnspacing=1.4, handlelength=2.2)  # fmt: skip


def best_so_far(spots: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Of (cost, share): those that no cheaper one exceeds, cheapest first."""
    found: list[tuple[float, float]] = []
    for cost, share in sorted(spots):
        if not found or share >= found[-1][1]:
            found.append((cost, share))
    return found


def _scales(
    axes: Any, found: Sequence[Point], peers: Sequence[paper.Peer], lowest: float,
    drawn: Sequence[float],
) -> None:  # fmt: skip
    least = 50.0 / max(point.row.puzzles for point in found)  # half a puzzle, in percent
    bottom = lowest - 0.25 * (100.0 - lowest)  # below 0 too, or a mark there is cut
    axes.set_xscale("log")
    forward, inverse = stretched(least)
    axes.set_yscale("function", functions=(forward, inverse))
    top = forward(100.0) + ROOM * (forward(100.0) - forward(bottom))
    axes.set_ylim(bottom, float(inverse(top)))
    ticks = [t for t in TICKS if bottom <= t < 100 - least]
    axes.set_yticks([*ticks, 100], [f"{t:g}" for t in (*ticks, 100)])
    axes.set_yticks([], minor=True)
    costs = [*(p.evaluations for p in peers), *(p.evaluations for p in found), *drawn]
    low, high = min(costs) / 2.2, max(costs) * 1.6
    axes.set_xlim(low, high)
    powers = [10.0**n for n in range(7) if low <= 10.0**n <= high]
    axes.set_xticks(powers, [f"{power:,.0f}" for power in powers])


def _goal(axes: Any, taken: list[Box], small: bool) -> None:
    """The corner that no published method on frozen weights reaches; its words where it is free."""
    cost, share = GOAL
    left, top = axes.get_xlim()[0], axes.get_ylim()[1]
    axes.fill([left, cost, cost, left], [share, share, top, top], color=paint("adaptive"),
              alpha=0.09, linewidth=0, zorder=0)  # fmt: skip
    text = f"at least {share:g} %,\nat most {cost:,}\nevaluations"
    label = Label(left, top, text, 6.5 if small else 8, paint("adaptive"))
    along(axes, label, (left, share, cost, top), taken, EXTENT[small])


def _series(
    axes: Any, some: Sequence[Point], line: Sequence[tuple[float, float]], small: bool
) -> None:
    """A mark for every point, and the line, which need not be straight between them."""
    look, ours = some[0].look, some[0].variant in OURS
    spent = [point.evaluations for point in some]
    middle, low, high = zip(*(interval(point.row) for point in some), strict=True)
    axes.vlines(spent, low, high, color=look.paint, linewidth=1.4 if ours else 1, zorder=2,
                alpha=0.4 if ours else 0.2)  # fmt: skip
    size = {"*": 13.0, "P": 8.5}.get(look.mark, 6.0) * (0.85 if small else 1.0)
    style = {"marker": look.mark, "color": look.paint, "markersize": size,
             "markeredgecolor": paint("sheet"), "markeredgewidth": 0.7}  # fmt: skip
    over = 6 if ours else 4
    axes.plot(*zip(*line, strict=True), linestyle=look.dash, linewidth=2.6 if ours else 1.3,
              label=look.label, zorder=over, markevery=[], **style)  # fmt: skip
    axes.plot(spent, middle, linestyle="none", zorder=over, **style)


def _published(axes: Any, peers: Sequence[paper.Peer]) -> None:
    for peer in peers:
        look = LOOKS[peer.method]
        axes.plot(peer.evaluations, peer.exact, look.mark, color=look.paint, markersize=7.5,
                  markerfacecolor=paint("sheet"), markeredgewidth=1.4, zorder=5)  # fmt: skip
    axes.plot([], [], "o", color=paint("soft"), label="published, own weights",
              markerfacecolor=paint("sheet"), markeredgewidth=1.4, markersize=6.5)  # fmt: skip


def _labels(
    series: Sequence[Sequence[Point]], peers: Sequence[paper.Peer], small: bool
) -> list[Label]:
    """Ours in full, then the published, then the cheapest and dearest setting of each series."""
    labels = []
    for some in series:
        best = max(some, key=lambda p: (p.row.exact.mean, -p.evaluations))
        exact = interval(best.row)[0]
        if best.variant in OURS:
            text = f"{exact:.4g} % at {best.evaluations:,.0f}"
            labels.append(Label(best.evaluations, exact, text, 8 if small else 10,
                                best.look.paint, bold=True))  # fmt: skip
    labels += [
        Label(peer.evaluations, peer.exact, peer.name, 6.5 if small else 7.5, paint("soft"))
        for peer in peers
    ]
    ends = [point for some in series for point in dict.fromkeys((some[0], some[-1]))]
    if not small:
        labels += [
            Label(point.evaluations, interval(point.row)[0], point.budget, 7, paint("soft"))
            for point in ends
            if point.row.method not in OURS
        ]
    return labels
