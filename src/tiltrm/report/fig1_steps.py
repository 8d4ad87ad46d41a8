"""Figure 1: accuracy by outer step, on Test and on the deterministic failures."""

from functools import partial
from typing import Any

from tiltrm.evaluate.summary import DF, Curve, Spread, by_step
from tiltrm.report import paper
from tiltrm.report.drawing import STYLES, colour, line_with_band
from tiltrm.report.results import SUDOKU, TEST, StoredResults, percent, spread_percent
from tiltrm.report.section import DataTable, Panel, PaperComparison, Rows, Section

HEAD = ("split", "method", "outer step", "exact", "sd")
Lines = dict[str, tuple[Spread, ...]]  # by method, one value for each outer step


def section(results: StoredResults) -> Section:
    """One panel for each split."""
    curves = by_step(results.read(results.table1_jobs(SUDOKU)))
    splits = {split: _lines([c for c in curves if c.split == split]) for split in (TEST, DF)}
    splits = {split: lines for split, lines in splits.items() if lines}
    comparisons = [
        _comparison(split, method, lines[method])
        for split, lines in splits.items()
        for method in paper.TABLE1[SUDOKU, split]
        if method in lines
    ]
    comparisons.append(
        PaperComparison("outer step at which guided passes the deterministic end",
                        paper.STEP_PASSING_BASELINE, _passing_step(splits[TEST]), "", digits=0)
    )  # fmt: skip
    rows: Rows = [
        (split, method, step, *spread_percent(value))
        for split, lines in splits.items()
        for method, line in lines.items()
        for step, value in enumerate(line, 1)
    ]
    panels = tuple(
        Panel(f"Sudoku-Extreme, {split}", _spoken(split, lines), partial(_draw, lines))
        for split, lines in splits.items()
    )
    return Section(
        "fig1", "Figure 1 · Accuracy by outer step",
        "What each way would answer if it stopped after n outer steps; bands are the standard "
        "deviation over seeds and folds. The dotted line is where the deterministic model ends.",
        panels, tuple(comparisons), DataTable(HEAD, rows),
    )  # fmt: skip


def _lines(curves: list[Curve]) -> Lines:
    found = {curve.method: curve.exact for curve in curves}
    found["oracle"] = next((c.oracle for c in curves if c.method == "guided"), ())
    order = ("guided", "oracle", "unguided", "deterministic")
    return {method: found[method] for method in order if found.get(method)}


def _comparison(split: str, method: str, line: tuple[Spread, ...]) -> PaperComparison:
    value, (mean, sd) = paper.TABLE1[SUDOKU, split][method], spread_percent(line[-1])
    what = f"{split}, {STYLES[method].label} at the last step"
    return PaperComparison(what, value.mean, mean, "%", value.spread, sd)


def _passing_step(lines: Lines) -> int | None:
    """The first step at which guided is above the end of the deterministic model."""
    goal = lines["deterministic"][-1].mean
    return next((n for n, value in enumerate(lines["guided"], 1) if value.mean > goal), None)


def _spoken(split: str, lines: Lines) -> str:
    ends = ", ".join(
        f"{STYLES[m].label} {percent(line[-1].mean):.1f} %" for m, line in lines.items()
    )
    return f"Accuracy by outer step on {split}; at the last step: {ends}."


def _draw(lines: Lines, axes: Any) -> None:
    for method, line in lines.items():
        style = STYLES[method]
        points = [(percent(value.mean), percent(value.sd or 0.0)) for value in line]
        values = [(mean, mean - sd, mean + sd) for mean, sd in points]
        line_with_band(axes, range(1, len(line) + 1), values, colour=style.colour,
                       linestyle=style.dash, label=style.label, zorder=3)  # fmt: skip
    goal = percent(lines["deterministic"][-1].mean)
    if goal:
        axes.axhline(goal, color=colour("soft"), linestyle=":", linewidth=1)
    axes.set(xlabel="outer step n", ylabel="exactly solved, %", ylim=(-2, 102))
    axes.set_xlim(1, len(lines["deterministic"]))
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 0.05))  # above the line of zeros on DF
