"""Figure 6: sensitivity to the settings, one varied at a time."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from tiltrm.evaluate.job import Job
from tiltrm.evaluate.summary import Row
from tiltrm.report import paper
from tiltrm.report.drawing import STYLES, colour, line_with_band
from tiltrm.report.results import (
    BENCHMARKS,
    MAZE,
    SUDOKU,
    SWEEP,
    StoredResults,
    interval,
    percent,
)
from tiltrm.report.section import Cell, DataTable, Panel, PaperComparison, Rows, Section

SYMBOLS = {"beta": "β", "particles": "particles S", "resample_below": "threshold τ",
           "potential": "potential", "placement": "where the noise enters"}  # fmt: skip
NEVER = "beta, never resampled"
COMMON = ("beta", NEVER, "particles", "resample_below")
SWEEPS = {SWEEP: (*COMMON, "potential", "placement"), MAZE: COMMON}  # of plans.axes, by role
USUAL: dict[str, Cell] = {"particles": 16, "resample_below": 0.3, "potential": "every_step",
                          "placement": "everywhere"}  # fmt: skip
HEAD = ("benchmark", "split", "setting", "value", "resampling", "puzzles", "exact", "95 % low",
        "95 % high", "oracle", "evaluations")  # fmt: skip


def jobs(results: StoredResults, role: str) -> list[Job]:
    """The jobs of this role's sweeps."""
    found = results.sweep_jobs(role)
    return [job for name in SWEEPS[role] for job in found[name]]


def section(results: StoredResults) -> Section:
    """One panel for each setting and benchmark."""
    panels: list[Panel] = []
    rows: Rows = []
    comparisons: list[PaperComparison] = []
    for role in (role for role in SWEEPS if role in results.targets):
        benchmark = SUDOKU if role == SWEEP else role
        by_name = results.sweep_jobs(role)
        found = {name: results.rows(by_name[name]) for name in SWEEPS[role]}
        panels += [_panel(benchmark, name, found) for name in found if name != NEVER]
        rows += [_line(benchmark, n, row) for n, some in found.items() for row in some]
        comparisons += _comparisons(benchmark, found)
    return Section(
        "fig6", "Figure 6 · Sensitivity to the settings",
        "Guided MAP with one setting varied at a time, the others as in Table 2 of the paper; "
        "bands are 95 % intervals, the dotted line is the best particle, the bar marks the paper's "
        "setting. Potential and placement are choices that the paper does not vary.",
        tuple(panels), tuple(comparisons), DataTable(HEAD, rows), results.missing(MAZE),
    )  # fmt: skip


def _value(row: Row, name: str) -> Cell:
    value: Cell = dict(row.settings)[name.partition(",")[0]]
    return value


def _line(benchmark: str, name: str, row: Row) -> tuple[Cell, ...]:
    oracle = None if row.oracle is None else percent(row.oracle.mean)
    return (BENCHMARKS[benchmark], row.split, name.partition(",")[0], _value(row, name),
            "never" if name == NEVER else "when the weights are uneven", row.puzzles,
            *interval(row), oracle, row.evaluations.mean)  # fmt: skip


def _comparisons(benchmark: str, found: dict[str, list[Row]]) -> list[PaperComparison]:
    """The paper gives these sweeps as curves, so its words about them are compared.

    If resampling at high β only distorts the weights, never resampling has the smaller range.
    """
    means = {name: [percent(row.exact.mean) for row in rows] for name, rows in found.items()}
    usual, never = (max(means[n][1:]) - min(means[n][1:]) for n in ("beta", NEVER))
    rise = means["particles"][-1] - means["particles"][0]
    theirs, name = paper.SWEEP_CHANGE.get(benchmark), BENCHMARKS[benchmark]
    over = "best less worst over β > 0"
    return [
        PaperComparison(f"{name}, {over}", theirs, usual, "points"),
        PaperComparison(f"{name}, never resampled, {over}", None, never, "points"),
        PaperComparison(f"{name}, most particles less one", theirs, rise, "points"),
    ]


def _panel(benchmark: str, name: str, found: dict[str, list[Row]]) -> Panel:
    lines = {"guided": found[name]}
    if name == "beta":
        lines = {"guided": found[name], "unguided": found[NEVER]}
    said = ", ".join(f"{_value(row, name)}: {percent(row.exact.mean):.1f}" for row in found[name])
    usual = USUAL.get(name, paper.BETA[benchmark])
    return Panel(f"{BENCHMARKS[benchmark]}: {SYMBOLS[name]}", f"Percent solved by {name}. {said}.",
                 partial(_draw, name, usual, lines))  # fmt: skip


def _draw(name: str, usual: Cell, lines: Mapping[str, Sequence[Row]], axes: Any) -> None:
    labels = {"guided": "resampled below τ" if name == "beta" else STYLES["guided"].label,
              "unguided": "never resampled"}  # fmt: skip
    values = [_value(row, name) for row in lines["guided"]]
    places = range(len(values))
    categorical = isinstance(values[0], str)
    for method, rows in lines.items():
        points = [interval(row) for row in rows]
        if categorical:
            middle, low, high = (list(column) for column in zip(*points, strict=True))
            reach = [[m - v for m, v in zip(middle, low, strict=True)],
                     [v - m for m, v in zip(middle, high, strict=True)]]  # fmt: skip
            axes.errorbar(list(places), middle, yerr=reach, fmt="o", color=colour(method),
                          capsize=3, label=labels[method], elinewidth=1.2)  # fmt: skip
        else:
            line_with_band(axes, list(places), points, colour=colour(method), label=labels[method],
                           marker=STYLES[method].marker)  # fmt: skip
    oracle = [percent(r.oracle.mean if r.oracle else r.exact.mean) for r in lines["guided"]]
    axes.plot(places, oracle, ":" if not categorical else "D", color=colour("oracle"), zorder=4,
              label=STYLES["oracle"].label, linewidth=1.4, markersize=8.5,
              markerfacecolor="none")  # fmt: skip
    for place, value in enumerate(values):
        if value == usual:
            axes.axvspan(place - 0.14, place + 0.14, color=colour("soft"), alpha=0.13, linewidth=0)
    axes.set_xticks(list(places), tick_labels(values))
    axes.set(xlabel=SYMBOLS[name], ylabel="exactly solved, %", xlim=(-0.4, len(values) - 0.6))
    if categorical:
        low, high = axes.get_ylim()
        axes.set_ylim(low, high + 0.15 * (high - low))
        axes.legend(loc="upper center", ncols=2)
    else:
        axes.legend()


def tick_labels(values: Sequence[Cell]) -> list[str]:
    """Text of the ticks: no underscores, and 1/16 for 0.0625 if all are such fractions."""
    if any(isinstance(value, str) for value in values):
        return [str(value).replace("_", " ") for value in values]
    exact = [Fraction(value or 0) for value in values]
    if all(value.denominator <= 64 for value in exact):
        return [str(value) for value in exact]
    return [f"{value:g}" for value in values]
