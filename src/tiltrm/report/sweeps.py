"""Fig. 6: one setting at a time, and what else may be chosen: potential and placement."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from tiltrm.evaluate.job import Job
from tiltrm.evaluate.summary import Row
from tiltrm.report import paper
from tiltrm.report.evidence import (
    BENCHMARKS,
    MAZE,
    SUDOKU,
    SWEEP,
    Evidence,
    axes,
    interval,
    percent,
)
from tiltrm.report.figures import band
from tiltrm.report.sheet import Cell, Compared, Panel, Sheet, Table
from tiltrm.report.style import LOOKS, paint

SYMBOLS = {"beta": "β", "particles": "particles S", "resample_below": "threshold τ",
           "potential": "potential", "placement": "where the noise enters"}  # fmt: skip
NEVER = "beta, never resampled"
USUAL: dict[str, Cell] = {"particles": 16, "resample_below": 0.3, "potential": "every_step",
         "placement": "everywhere"}  # fmt: skip
HEAD = ("benchmark", "split", "setting", "value", "resampling", "puzzles", "exact", "95 % low",
        "95 % high", "oracle", "evaluations")  # fmt: skip
PARTS = {SWEEP: SUDOKU, MAZE: MAZE}


def plan(evidence: Evidence, part: str) -> list[Job]:
    """What must be computed; potential and placement on Sudoku alone."""
    found = axes(evidence, part)
    return [job for name in names(part) for job in found[name]]


def names(part: str) -> tuple[str, ...]:
    """Of `plans.axes`."""
    common = ("beta", NEVER, "particles", "resample_below")
    return common if part == MAZE else (*common, "potential", "placement")


def sheet(evidence: Evidence) -> Sheet:
    """The whole item."""
    panels: list[Panel] = []
    rows: list[tuple[Cell, ...]] = []
    compared: list[Compared] = []
    for part, benchmark in PARTS.items():
        if part in evidence.subjects:
            jobs = axes(evidence, part)
            found = {name: evidence.rows(jobs[name]) for name in names(part)}
            panels += [_panel(benchmark, name, found) for name in found if name != NEVER]
            rows += [_line(benchmark, n, row) for n, some in found.items() for row in some]
            compared += _compared(benchmark, found)
    return Sheet(
        "fig6", "Figure 6 · Sensitivity to the settings",
        "Guided MAP with one setting varied at a time, the others as in Table 2 of the paper; "
        "bands are 95 % intervals, the dotted line is the best particle, the bar marks the paper's "
        "setting. Potential and placement are choices that the paper does not vary.",
        tuple(panels), tuple(compared), Table(HEAD, rows), evidence.missing(MAZE),
    )  # fmt: skip


def _value(row: Row, name: str) -> Cell:
    value: Cell = dict(row.settings)[name.partition(",")[0]]
    return value


def _line(part: str, name: str, row: Row) -> tuple[Cell, ...]:
    middle, low, high = interval(row)
    oracle = None if row.oracle is None else percent(row.oracle.mean)
    return (BENCHMARKS[part], row.split, name.partition(",")[0], _value(row, name),
            "never" if name == NEVER else "when the weights are uneven", row.puzzles, middle, low,
            high, oracle, row.evaluations.mean)  # fmt: skip


def _compared(part: str, found: dict[str, list[Row]]) -> list[Compared]:
    """The paper gives these sweeps as curves; what it says of them in words is what is compared.

    That at high β resampling only distorts the weights shows where never resampling swings less.
    """
    means = {name: [percent(row.exact.mean) for row in rows] for name, rows in found.items()}
    swing, still = (max(means[n][1:]) - min(means[n][1:]) for n in ("beta", NEVER))
    rise = means["particles"][-1] - means["particles"][0]
    flat, name = 0.0 if part == MAZE else None, BENCHMARKS[part]
    over = "best less worst over β > 0"
    return [
        Compared(f"{name}, {over}", flat, swing, "points"),
        Compared(f"{name}, never resampled, {over}", None, still, "points"),
        Compared(f"{name}, most particles less one", flat, rise, "points"),
    ]


def _panel(part: str, name: str, found: dict[str, list[Row]]) -> Panel:
    lines = {"guided": found[name]}
    if name == "beta":
        lines = {"guided": found[name], "unguided": found[NEVER]}
    said = ", ".join(f"{_value(row, name)}: {percent(row.exact.mean):.1f}" for row in found[name])
    usual = USUAL.get(name, paper.OPERATING[part][1])
    return Panel(f"{BENCHMARKS[part]}: {SYMBOLS[name]}", f"Percent solved by {name}. {said}.",
                 partial(_draw, name, usual, lines))  # fmt: skip


def _draw(name: str, usual: Cell, lines: Mapping[str, Sequence[Row]], on: Any) -> None:
    labels = {"guided": "resampled below τ" if name == "beta" else LOOKS["guided"].label,
              "unguided": "never resampled"}  # fmt: skip
    values = [_value(row, name) for row in lines["guided"]]
    places = range(len(values))
    worded = isinstance(values[0], str)
    for look, rows in lines.items():
        points = [interval(row) for row in rows]
        if worded:
            middle, low, high = (list(column) for column in zip(*points, strict=True))
            reach = [[m - v for m, v in zip(middle, low, strict=True)],
                     [v - m for m, v in zip(middle, high, strict=True)]]  # fmt: skip
            on.errorbar(list(places), middle, yerr=reach, fmt="o", color=paint(look), capsize=3,
                          label=labels[look], elinewidth=1.2)  # fmt: skip
        else:
            band(on, list(places), points, look, labels[look])
    oracle = [percent(r.oracle.mean if r.oracle else r.exact.mean) for r in lines["guided"]]
    on.plot(places, oracle, ":" if not worded else "D", color=paint("oracle"), zorder=4,
            label=LOOKS["oracle"].label, linewidth=1.4, markersize=8.5,
            markerfacecolor="none")  # fmt: skip
    for place, value in enumerate(values):
        if value == usual:
            on.axvspan(place - 0.14, place + 0.14, color=paint("soft"), alpha=0.13, linewidth=0)
    on.set_xticks(list(places), ticks(values))
    on.set(xlabel=SYMBOLS[name], ylabel="exactly solved, %", xlim=(-0.4, len(values) - 0.6))
    if worded:
        low, high = on.get_ylim()
        on.set_ylim(low, high + 0.15 * (high - low))
        on.legend(loc="upper center", ncols=2)
    else:
        on.legend()


def ticks(values: Sequence[Cell]) -> list[str]:
    """Words without underscores; 1/16 for 0.0625, which is too long, where all are so simple."""
    if any(isinstance(value, str) for value in values):
        return [str(value).replace("_", " ") for value in values]
    exact = [Fraction(value or 0) for value in values]
    if all(value.denominator <= 64 for value in exact):
        return [str(value) for value in exact]
    return [f"{value:g}" for value in values]
