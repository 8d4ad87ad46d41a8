"""Fig. 1: accuracy by outer step, on Test and on the deterministic failures."""

from functools import partial
from typing import Any

from tiltrm.evaluate.summary import DF, Curve, Spread, by_step
from tiltrm.report import paper
from tiltrm.report.evidence import SUDOKU, Evidence, percent, spread_percent, table1
from tiltrm.report.sheet import Cell, Compared, Panel, Sheet, Table
from tiltrm.report.style import LOOKS, paint
from tiltrm.report.table1 import TEST

HEAD = ("split", "method", "outer step", "exact", "sd")
Lines = dict[str, tuple[Spread, ...]]  # by method, a spread for every outer step


def sheet(evidence: Evidence) -> Sheet:
    """The whole item."""
    curves = by_step(evidence.read(table1(evidence, SUDOKU)))
    splits = {
        split: _lines([curve for curve in curves if (curve.split == DF) == (split == DF)])
        for split in (TEST, DF)
    }
    splits = {split: lines for split, lines in splits.items() if lines}
    passed = _passing(splits[TEST])
    compared = [
        _compared(split, method, lines[method])
        for split, lines in splits.items()
        for method in paper.TABLE1[SUDOKU, split]
        if method in lines
    ]
    compared.append(
        Compared("outer step at which guided passes the deterministic end",
                 paper.STEP_PASSING_BASELINE, passed, "", digits=0)
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (split, method, step, *spread_percent(value))
        for split, lines in splits.items()
        for method, line in lines.items()
        for step, value in enumerate(line, 1)
    ]
    panels = tuple(
        Panel(f"Sudoku-Extreme, {split}", _spoken(split, lines), partial(_draw, lines))
        for split, lines in splits.items()
    )
    return Sheet(
        "fig1", "Figure 1 · Accuracy by outer step",
        "What each way would answer if it stopped after n outer steps; bands are the standard "
        "deviation over seeds and folds. The dotted line is where the deterministic model ends.",
        panels, tuple(compared), Table(HEAD, rows),
    )  # fmt: skip


def _lines(curves: list[Curve]) -> Lines:
    found = {curve.method: curve.exact for curve in curves}
    found["oracle"] = next((c.oracle for c in curves if c.method == "guided"), ())
    order = ("guided", "oracle", "unguided", "deterministic")
    return {method: found[method] for method in order if found.get(method)}


def _compared(split: str, method: str, line: tuple[Spread, ...]) -> Compared:
    value, (mean, sd) = paper.TABLE1[SUDOKU, split][method], spread_percent(line[-1])
    what = f"{split}, {LOOKS[method].label} at the last step"
    return Compared(what, value.mean, mean, "%", value.spread, sd)


def _passing(lines: Lines) -> int | None:
    """The first step at which guided is above the end of the deterministic model."""
    goal = lines["deterministic"][-1].mean
    steps = (n for n, value in enumerate(lines["guided"], 1) if value.mean > goal)
    return next(steps, None)


def _spoken(split: str, lines: Lines) -> str:
    ends = ", ".join(
        f"{LOOKS[m].label} {percent(line[-1].mean):.1f} %" for m, line in lines.items()
    )
    return f"Accuracy by outer step on {split}; at the last step: {ends}."


def _draw(lines: Lines, axes: Any) -> None:
    for method, line in lines.items():
        look = LOOKS[method]
        steps = range(1, len(line) + 1)
        mean = [percent(value.mean) for value in line]
        sd = [percent(value.sd or 0.0) for value in line]
        axes.plot(steps, mean, color=look.paint, linestyle=look.dash, label=look.label, zorder=3)
        axes.fill_between(
            steps, [m - s for m, s in zip(mean, sd, strict=True)],
            [m + s for m, s in zip(mean, sd, strict=True)], color=look.paint, alpha=0.16,
            linewidth=0,
        )  # fmt: skip
    goal = percent(lines["deterministic"][-1].mean)
    if goal:
        axes.axhline(goal, color=paint("soft"), linestyle=":", linewidth=1)
    axes.set(xlabel="outer step n", ylabel="exactly solved, %", ylim=(-2, 102))
    axes.set_xlim(1, len(lines["deterministic"]))
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 0.05))  # above the line of zeros on DF
