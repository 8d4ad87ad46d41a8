"""Table 1: exact-solve rates on Test and on the deterministic failures, beside the paper's."""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from tiltrm.evaluate.summary import Row, Spread, summarise
from tiltrm.report import paper
from tiltrm.report.drawing import STYLES, MethodStyle, colour
from tiltrm.report.results import BENCHMARKS, MAZE, StoredResults, percent, spread_percent
from tiltrm.report.section import Cell, DataTable, Panel, PaperComparison, Rows, Section

METHODS = ("deterministic", "unguided", "oracle", "guided")
HEAD = (
    "benchmark", "split", "method", "puzzles", "runs", "exact", "sd", "paper", "paper sd",
    "shortest", "valid", "evaluations",
)  # fmt: skip


class Entry(NamedTuple):
    """One method on one split."""

    benchmark: str
    split: str
    method: str
    row: Row  # of the cloud that it is about
    exact: Spread

    @property
    def published(self) -> paper.Value | None:
        """The paper's number for it."""
        return paper.TABLE1.get((self.benchmark, self.split), {}).get(self.method)


def entries(results: StoredResults, benchmark: str) -> Iterator[Entry]:
    """The four columns of the paper on each of its splits.

    The oracle is the best particle at the end of the guided cloud.
    """
    rows = summarise(results.read(results.table1_jobs(benchmark)))
    for split in (split for name, split in paper.TABLE1 if name == benchmark):
        by_method = {row.method: row for row in rows if row.split == split}
        for method in METHODS:
            row = by_method.get("guided" if method == "oracle" else method)
            exact = row and (row.oracle if method == "oracle" else row.exact)
            if row and exact:
                yield Entry(benchmark, split, method, row, exact)


def section(results: StoredResults) -> Section:
    """Table 1 as marks with their deviations, one panel for each split."""
    found = [entry for benchmark in results.benchmarks for entry in entries(results, benchmark)]
    splits: dict[tuple[str, str], list[Entry]] = {}
    for entry in found:
        splits.setdefault((entry.benchmark, entry.split), []).append(entry)
    comparisons = [_comparison(entry) for entry in found]
    comparisons += [line for some in splits.values() for line in _way_to_the_oracle(some)]
    return Section(
        "table1", "Table 1 · Exact-solve rates on Test and on deterministic failures",
        "Filled marks are these weights, with the standard deviation over seeds and folds; hollow "
        "marks are the paper's. DF holds the puzzles of Test that the deterministic model fails. "
        "The oracle is the best particle that is left at the end of the guided cloud.",
        tuple(_panel(some) for some in splits.values()), tuple(comparisons),
        DataTable(HEAD, [_line(entry) for entry in found]),
        results.missing(MAZE) + _notes(found), shown=_three_measures(found),
    )  # fmt: skip


def _comparison(entry: Entry) -> PaperComparison:
    value = entry.published
    ours, sd = spread_percent(entry.exact)
    what = f"{BENCHMARKS[entry.benchmark]} {entry.split}, {STYLES[entry.method].label}"
    return PaperComparison(what, value and value.mean, ours, "%", value and value.spread, sd)


def _way_to_the_oracle(found: list[Entry]) -> Iterator[PaperComparison]:
    """Guided's share of the way from the deterministic model to the oracle, on one split."""
    benchmark, split, *_ = found[0]
    ours = {entry.method: percent(entry.exact.mean) for entry in found}
    theirs = {method: v.mean for method, v in paper.TABLE1.get((benchmark, split), {}).items()}
    shares = []
    for values in (theirs, ours):
        start, end = values.get("deterministic", 0.0), values.get("oracle", 0.0)
        if end <= start:
            return
        shares.append(100 * (values["guided"] - start) / (end - start))
    what = f"{BENCHMARKS[benchmark]} {split}, share of the way to the oracle"
    yield PaperComparison(what, shares[0], shares[1])


def _line(entry: Entry) -> tuple[Cell, ...]:
    value, row = entry.published, entry.row
    measures = (None, None) if entry.method == "oracle" else (row.shortest, row.valid)
    return (
        BENCHMARKS[entry.benchmark], entry.split, entry.method, row.puzzles, row.runs,
        *spread_percent(entry.exact), value and value.mean, value and value.spread,
        *(spread_percent(measure)[0] for measure in measures), row.evaluations.mean,
    )  # fmt: skip


def _three_measures(found: list[Entry]) -> DataTable | None:
    """For tasks with several right answers: exact depends on which of them the label is."""
    several = [e for e in found if e.row.shortest is not None and e.method != "oracle"]
    rows: Rows = []
    for entry in several:
        measures = (entry.row.exact, entry.row.shortest, entry.row.valid)
        shares = [None if m is None else f"{percent(m.mean):.1f}" for m in measures]
        rows.append((STYLES[entry.method].label, *shares))
    if not several:
        return None
    head = (f"{BENCHMARKS[several[0].benchmark]}, %", "exact", "shortest and valid", "valid")
    return DataTable(head, rows)


def _notes(found: list[Entry]) -> tuple[str, ...]:
    return tuple(
        f"{BENCHMARKS[e.benchmark]} {e.split}: {e.row.puzzles:,} puzzles, {e.row.runs} runs of a "
        f"seed and a fold (the paper: {paper.SIZES[e.benchmark, e.split]:,} puzzles, 25 runs)."
        for e in found
        if e.method == "guided"
    )


def _panel(found: list[Entry]) -> Panel:
    spoken = "; ".join(
        f"{STYLES[e.method].label} {percent(e.exact.mean):.1f} %"
        + (f", the paper {e.published.mean} %" if e.published else "")
        for e in found
    )
    title = f"{BENCHMARKS[found[0].benchmark]}, {found[0].split}"
    return Panel(title, f"Exact-solve rates: {spoken}.", partial(_draw, found))


def _draw(found: list[Entry], axes: Any) -> None:
    for place, entry in enumerate(reversed(found)):
        style = STYLES[entry.method]
        _draw_mark(axes, place + 0.17, style, *spread_percent(entry.exact), style.colour, "ink")
        if entry.published is not None:
            _draw_mark(axes, place - 0.17, style, *entry.published, colour("sheet"), "soft")
    axes.set_yticks(range(len(found)), [STYLES[e.method].label for e in reversed(found)])
    axes.set(xlabel="exactly solved, %", ylim=(-0.55, len(found) - 0.45))
    axes.margins(x=0.1)
    low, high = axes.get_xlim()
    axes.set_xlim(low, high + 0.1 * (high - low))  # room for the last number


def _draw_mark(
    axes: Any, y: float, style: MethodStyle, mean: float | None, spread: float | None, fill: str,
    ink: str,
) -> None:  # fmt: skip
    """A mark with its spread, and its number to the right of both."""
    x, reach = mean or 0.0, spread or 0.0
    axes.errorbar(x, y, xerr=reach, fmt=style.marker, color=style.colour, capsize=2.5,
                  markersize=6, markerfacecolor=fill, elinewidth=1.2)  # fmt: skip
    axes.annotate(f"{x:.1f}", (x + reach, y), (8, 0), textcoords="offset points", va="center",
                  fontsize=8.5, color=colour(ink))  # fmt: skip
