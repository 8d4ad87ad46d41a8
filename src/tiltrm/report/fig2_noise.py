"""Figure 2: how much noise helps, and whether it stays near the deterministic path."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from tiltrm.evaluate.job import Job
from tiltrm.evaluate.summary import Row
from tiltrm.report import fig5_stability, paper
from tiltrm.report.drawing import STYLES, line_with_band
from tiltrm.report.results import SUDOKU, SWEEP, StoredResults, interval
from tiltrm.report.section import Cell, DataTable, Panel, PaperComparison, Section

SWEEPS = {"guided": "noise", "unguided": "noise, unguided"}  # names of tiltrm.evaluate.plans.axes


def jobs(results: StoredResults, role: str) -> list[Job]:
    """The jobs of the left panel."""
    found = results.sweep_jobs(role)
    return [job for name in SWEEPS.values() for job in found[name]]


def section(results: StoredResults) -> Section:
    """Accuracy against noise, and the tubes, on Sudoku."""
    found = results.diagnosis(SUDOKU)
    rows = results.rows(jobs(results, SWEEP))
    guided = [row for row in rows if row.method == "guided"]
    best = max(guided, key=lambda row: (row.exact.mean, -_noise(row)))
    return Section(
        "fig2", "Figure 2 · The noise that helps, and whether it stays in the tube",
        f"Left: exactly solved against noise on {rows[0].puzzles:,} puzzles of "
        f"{results.targets[SWEEP].split}, "
        "bands are 95 % intervals. Then the share of noisy inner paths that stay within "
        f"r = α√(LD) of the noise-free one, and how far they stray inside (α = "
        f"{fig5_stability.TUBE:g}), with the paper's bound dotted.",
        (Panel("Accuracy against noise", _spoken(rows), partial(_draw, rows)),
         *fig5_stability.panels(found)),
        (PaperComparison("noise at which guided solves most", paper.BEST_NOISE, _noise(best), "",
                         digits=2),
         *fig5_stability.comparisons(found, paper.BEST_NOISE, None)),
        DataTable(fig5_stability.HEAD, [*map(_line, rows), *fig5_stability.tube_rows(found)]),
        fig5_stability.notes(found),
    )  # fmt: skip


def _noise(row: Row) -> float:
    return float(dict(row.settings)["noise"])


def _line(row: Row) -> tuple[Cell, ...]:
    own = dict(row.settings)
    return ("accuracy", row.method, own["noise"], own["particles"], None, *interval(row), None,
            None)  # fmt: skip


def _spoken(rows: Sequence[Row]) -> str:
    return "Percent solved by noise. " + "; ".join(
        f"{row.method}, {dict(row.settings)['particles']} particles, noise {_noise(row):g}: "
        f"{interval(row)[0]:.1f}" for row in rows
    )  # fmt: skip


def _draw(rows: Sequence[Row], axes: Any) -> None:
    for method in SWEEPS:
        style = STYLES[method]
        sizes = sorted({dict(r.settings)["particles"] for r in rows if r.method == method})
        for size in sizes:
            mine = [r for r in rows if r.method == method and dict(r.settings)["particles"] == size]
            line_with_band(
                axes, [_noise(row) for row in mine], [interval(row) for row in mine],
                colour=style.colour, marker=style.marker, shade=0.1,
                label=f"{style.label}, S = {size}", linestyle="-" if size == sizes[-1] else "--",
            )  # fmt: skip
    axes.set(xlabel="noise σ", ylabel="exactly solved, %")
    axes.legend()
