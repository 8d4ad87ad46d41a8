"""Figs. 2 and 5: how much noise helps, and whether it stays near the deterministic path."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from tiltrm.evaluate.job import Job
from tiltrm.evaluate.summary import Row
from tiltrm.report import figures, paper
from tiltrm.report.evidence import MAZE, SUDOKU, SWEEP, Evidence, axes, interval, percent
from tiltrm.report.sheet import Cell, Compared, Panel, Sheet, Table
from tiltrm.report.style import LOOKS
from tiltrm.report.training import curves

HEAD = ("panel", "method", "noise", "S or alpha", "inner step", "value", "low", "high", "bound",
        "secant bound")  # fmt: skip
TUBE = 1.5  # the alpha of the paper's deviations
AXES = {"guided": "noise", "unguided": "noise, unguided"}  # of tiltrm.evaluate.plans.axes


def plan(evidence: Evidence, part: str) -> list[Job]:
    """What must be computed for the left panel of Fig. 2."""
    found = axes(evidence, part)
    return [job for name in AXES.values() for job in found[name]]


def fig2(evidence: Evidence) -> Sheet:
    """Accuracy against noise, and the tubes, on Sudoku."""
    found = evidence.diagnosis(SUDOKU)
    rows = evidence.rows(plan(evidence, SWEEP))
    best = max((r for r in rows if r.method == "guided"), key=_most_then_quietest)
    subject = evidence.subjects[SWEEP]
    return Sheet(
        "fig2", "Figure 2 · The noise that helps, and whether it stays in the tube",
        f"Left: exactly solved against noise on {rows[0].puzzles:,} puzzles of {subject.split}, "
        "bands are 95 % intervals. Then the share of noisy inner paths that stay within "
        f"r = α√(LD) of the noise-free one, and how far they stray inside (α = {TUBE:g}), with the "
        "paper's bound dotted.",
        (Panel("Accuracy against noise", _spoken(rows), partial(_draw_noise, rows)),
         *stability_panels(found)),
        (Compared("noise at which guided solves most", paper.BEST_NOISE, _noise(best), "",
                  digits=2),
         *_stays(found, paper.BEST_NOISE, None)),
        Table(HEAD, [*map(_noise_line, rows), *tube_lines(found)]), hypothesis(found),
    )  # fmt: skip


def fig5(evidence: Evidence) -> Sheet:
    """The maze's tubes, and how the halting heads learned."""
    here = MAZE in evidence.subjects
    found = evidence.diagnosis(MAZE) if here else None
    panels, rows, missing = curves(evidence.metrics)
    return Sheet(
        "fig5", "Figure 5 · Maze-Hard: tubes, and how the halting heads learned",
        "The same tubes for the maze model. Then the halting head of each training run on its "
        "validation puzzles: binary cross-entropy, and how often its sign is right.",
        (*(stability_panels(found) if found else ()), *panels),
        tuple(_stays(found, paper.STABLE_NOISE, 1.0)) if found else (),
        Table((*HEAD, "training run", "step"), _padded(tube_lines(found) if found else [], rows)),
        evidence.missing(MAZE) + (hypothesis(found) if found else ()) + missing,
    )  # fmt: skip


def _padded(tubes: list[tuple[Cell, ...]], rows: list[tuple[Cell, ...]]) -> list[tuple[Cell, ...]]:
    """Both kinds of line under one header; of `curves` come (what, run, step, value)."""
    empty = (None,) * 4
    return [(*line, None, None) for line in tubes] + [
        (what, *empty, value, *empty, run, step) for what, run, step, value in rows
    ]


def stability_panels(found: Mapping[str, Any]) -> tuple[Panel, ...]:
    """Survival, and deviations with the paper's bound, as they are and in a unit that shows it."""
    tubes = found["stability"]["tubes"]
    stays = ", ".join(f"{t['survival']:.2f} at {t['noise']:g}" for t in tubes if t["alpha"] == TUBE)
    return (
        Panel("Survival in the tube", f"Probability of staying in the tube of alpha {TUBE:g} by "
              f"noise: {stays}.", lambda axes: figures.survival(axes, found)),
        Panel("Deviation inside the tube", "Mean squared deviation inside the tube by inner step, "
              "a line for every noise, the paper's bound dotted.",
              lambda axes: figures.deviation(axes, found)),
        Panel("The same over σ²LD, one step's noise", beyond(found),
              lambda axes: figures.excess(axes, found)),
    )  # fmt: skip


def hypothesis(found: Mapping[str, Any]) -> tuple[str, ...]:
    """Whether Proposition 5.1 applies at alpha = 1.5, in words, and whether its bound holds."""
    said = sorted({t["hypothesis"] for t in found["stability"]["tubes"] if t["alpha"] == TUBE})
    rho = "; ".join(f"{name}: mean {r['mean']:.3g}, largest {r['largest']:.3g}"
                    for name, r in found["stability"]["rho"].items())  # fmt: skip
    return (*(f"{sentence[:1].upper()}{sentence[1:]}." for sentence in said),
            f"Estimates of ρ: {rho}.", beyond(found))  # fmt: skip


def beyond(found: Mapping[str, Any]) -> str:
    """Whether the measured deviations keep below the paper's bound, which random secants give."""
    tubes = [t for t in found["stability"]["tubes"] if t["secant_bound"] is not None]
    if not tubes:
        return "Random secants stretch at every state, so the paper's bound does not exist."
    over = [t for t in tubes if t["exceeds_secant_bound"]]
    count = f"{len(tubes)} tubes (a noise and an α each)"
    if not over:
        return ("Deviations exceed the paper's bound, from random secants, by no more than chance "
                f"in all {count}.")  # fmt: skip
    pairs = [zip(t["deviation_there"], t["secant_bound"], strict=True) for t in over]
    most = max(value / limit for pair in pairs for value, limit in pair)
    rho = found["stability"]["rho"]["power iteration"]["mean"]
    return (
        f"The paper's bound, from random secants, is violated: deviations exceed it in {len(over)} "
        f"of {count}, by up to {percent(most - 1):.1f} %. Random secants miss the directions that "
        f"stretch; power iteration finds ρ = {rho:.1f} on average."
    )


def tube_lines(found: Mapping[str, Any]) -> list[tuple[Cell, ...]]:
    """Every tube for the CSV."""
    lines: list[tuple[Cell, ...]] = []
    for tube in found["stability"]["tubes"]:
        place = (tube["noise"], tube["alpha"])
        lines.append(("survival", None, *place, None, tube["survival"], *(None,) * 4))
        nothing = [None] * len(tube["deviation"])
        columns = (tube["deviation"], tube["bound"] or nothing, tube["secant_bound"] or nothing)
        lines += [
            ("deviation", None, *place, m, value, None, None, *bounds)
            for m, (value, *bounds) in enumerate(zip(*columns, strict=True), 1)
        ]
    return lines


def _stays(found: Mapping[str, Any], noise: float, theirs: float | None) -> list[Compared]:
    tubes = [t for t in found["stability"]["tubes"] if t["noise"] == noise]
    return [
        Compared(f"stays in the tube of α = {t['alpha']:g} at σ = {noise:g}",
                 theirs and 100 * theirs, 100 * t["survival"])
        for t in tubes
    ]  # fmt: skip


def _noise(row: Row) -> float:
    return float(dict(row.settings)["noise"])


def _most_then_quietest(row: Row) -> tuple[float, float]:
    return row.exact.mean, -_noise(row)


def _noise_line(row: Row) -> tuple[Cell, ...]:
    middle, low, high = interval(row)
    own = dict(row.settings)
    return ("accuracy", row.method, own["noise"], own["particles"], None, middle, low, high, None,
            None)  # fmt: skip


def _spoken(rows: Sequence[Row]) -> str:
    return "Percent solved by noise. " + "; ".join(
        f"{row.method}, {dict(row.settings)['particles']} particles, noise {_noise(row):g}: "
        f"{interval(row)[0]:.1f}" for row in rows
    )  # fmt: skip


def _draw_noise(rows: Sequence[Row], on: Any) -> None:
    for method in AXES:
        sizes = sorted({dict(r.settings)["particles"] for r in rows if r.method == method})
        for size in sizes:
            mine = [r for r in rows if r.method == method and dict(r.settings)["particles"] == size]
            figures.band(
                on, [_noise(row) for row in mine], [interval(row) for row in mine], method,
                f"{LOOKS[method].label}, S = {size}", dash="-" if size == sizes[-1] else "--",
                shade=0.1,
            )  # fmt: skip
    on.set(xlabel="noise σ", ylabel="exactly solved, %")
    on.legend()
