"""Nothing in the picture of the frontier hides what is ours, whatever the numbers are."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tiltrm.evaluate.compare import Paired
from tiltrm.evaluate.summary import Spread, Stopped
from tiltrm.report import frontier, frontier_plot
from tiltrm.report.drawing import NARROW, STYLES, WIDE, figure_style
from tiltrm.report.frontier import read_frontier
from tiltrm.report.frontier_plot import OURS, FrontierPoint, best_so_far, stretched
from tiltrm.report.results import SUDOKU, StoredResults, interval

pytest.importorskip("matplotlib", reason="figures need matplotlib")
SIZES = {"wide": WIDE, "narrow": NARROW}
ALL = [(kind, rise) for kind in SIZES for rise in (None, 160, 900, 20_000)]


def moved(found: Sequence[FrontierPoint], cost: float | None) -> list[FrontierPoint]:
    """Ours from 0 to 100 % of 2,000 puzzles, steeply, up to such a cost; None: as they were."""
    ours = [n for n, point in enumerate(found) if point.series in OURS]
    shares = dict(zip(ours, [0.0, *np.linspace(0.9, 1.0, len(ours) - 1)], strict=True))
    return [
        point if cost is None or n not in shares else point._replace(
            row=replace(point.row, puzzles=2000, exact=Spread(float(shares[n]), None),
                        evaluations=Spread(cost * (0.9 + 0.1 * float(shares[n])), None)))
        for n, point in enumerate(found)
    ]  # fmt: skip


@pytest.fixture(scope="module", params=ALL, ids=lambda case: f"{case[0]}-{case[1]}")
def picture(request: Any, results: StoredResults) -> tuple[Any, list[FrontierPoint]]:
    """The axes once all is laid out, and the points on them."""
    kind, cost = request.param
    found, line = read_frontier(results, SUDOKU)
    found, line = moved(found, cost), line if cost is None else []
    with figure_style() as figure:
        canvas = figure(*SIZES[kind])
        axes = canvas.subplots()
        frontier_plot.draw(SUDOKU, found, line, axes)
        canvas.draw_without_rendering()
    return axes, found


def words(axes: Any, part: str) -> list[Any]:
    """The boxes, in pixels, of the words that have this in them, without lines to their marks."""
    text = pytest.importorskip("matplotlib.text").Text
    return [text.get_window_extent(own) for own in axes.texts if part in own.get_text()]


def test_marks_at_the_top_and_at_the_bottom_are_whole(
    picture: tuple[Any, list[FrontierPoint]],
) -> None:
    axes, found = picture
    assert max(interval(point.row)[0] for point in found) == 100
    inside, dot = axes.get_window_extent(), axes.figure.dpi / 72
    for line in axes.lines:
        for x, y in zip(*line.get_data(), strict=True):
            middle, half = axes.transData.transform((x, y))[1], line.get_markersize() / 2 * dot
            assert inside.y0 < middle - half < middle + half < inside.y1


def test_the_words_of_the_goal_cover_nothing_of_ours(
    picture: tuple[Any, list[FrontierPoint]],
) -> None:
    axes, found = picture
    (goal,) = words(axes, "at most")
    best = words(axes, "% at ")
    assert len(best) == 2
    assert not any(goal.overlaps(box) for box in best)
    for point in (point for point in found if point.series in OURS):
        shares = np.linspace(*interval(point.row)[1:], 200)
        spots = axes.transData.transform([(point.evaluations, share) for share in shares])
        assert not any(goal.contains(*spot) for spot in spots)
    (line,) = (line for line in axes.lines if line.get_label() == STYLES["adaptive"].label)
    marks = axes.transData.transform(np.column_stack(line.get_data()))
    pieces = (np.linspace(one, other, 200) for one, other in pairwise(marks))
    assert not any(goal.contains(*spot) for piece in pieces for spot in piece)


def test_the_words_of_our_points_can_be_read(picture: tuple[Any, list[FrontierPoint]]) -> None:
    axes, found = picture
    one, other = words(axes, "% at ")
    assert not one.overlaps(other)
    for point in (point for point in found if point.series in OURS):
        spot = axes.transData.transform((point.evaluations, interval(point.row)[0]))
        assert not one.contains(*spot)
        assert not other.contains(*spot)


def test_the_line_of_ours_is_the_best_so_far(results: StoredResults) -> None:
    """Through its runs and what lies between them; a dearer one that solves less is off it."""
    spots = [(3.0, 50.0), (1.0, 40.0), (2.0, 50.0), (4.0, 45.0), (5.0, 60.0)]
    assert best_so_far(spots) == [(1.0, 40.0), (2.0, 50.0), (3.0, 50.0), (5.0, 60.0)]
    found, line = read_frontier(results, SUDOKU)
    lowest = min(interval(point.row)[0] for point in found)
    with figure_style() as figure:
        axes = figure(*WIDE).subplots()
        frontier_plot.draw(SUDOKU, found, line, axes)
    (drawn,) = (own for own in axes.lines if own.get_label() == STYLES["adaptive"].label)
    assert drawn.get_markevery() == []  # marks are runs of their own
    on_it = set(zip(*drawn.get_data(), strict=True))
    shown = [(own.evaluations, 100 * own.exact) for own in line if 100 * own.exact >= lowest]
    runs = [(p.evaluations, interval(p.row)[0]) for p in found if p.series == "adaptive"]
    assert on_it == set(best_so_far([*shown, *runs]))
    assert len(on_it.intersection(shown)) > 5 > len(on_it.difference(shown)) > 0


def test_the_line_of_ours_is_whole_where_its_cheap_runs_are_lacking(results: StoredResults) -> None:
    found, line = read_frontier(results, SUDOKU)
    ours, *peers = sorted(found, key=lambda point: point.against is not None)
    line = [Stopped(1, 0.95, 0.1), *line]
    with figure_style() as figure:
        axes = figure(*WIDE).subplots()
        dear = [point for point in peers if point.series not in OURS]
        frontier_plot.draw(SUDOKU, [*dear, ours], line, axes)
    assert axes.get_xlim()[0] < 0.1


def test_a_difference_of_nothing_has_no_minus(results: StoredResults) -> None:
    point = read_frontier(results, SUDOKU).points[0]
    nothing = Paired(40_000, -1e-5, -4e-4, -2e-4, 0, 1, 1.0)
    *_, said, _ = frontier._shown_line(SUDOKU, point._replace(against=nothing))
    assert said == "+0.00 (+0.0 to +0.0)"


def test_the_axis_stretches_and_comes_back() -> None:
    forward, inverse = stretched(0.1)
    shares = np.array([0.0, 50.0, 90.0, 99.0, 100.0, 100.2])
    assert np.allclose(inverse(forward(shares)), shares)
    steps = np.diff(forward(np.array([0.0, 90.0, 99.0])))
    assert steps[0] == pytest.approx(steps[1], rel=0.05)
    assert math.isfinite(float(forward(100.0)))
    around = np.diff(forward(np.array([99.999, 100.0, 100.001])))
    assert around[0] == pytest.approx(around[1], rel=0.01)  # no corner at 100 %
