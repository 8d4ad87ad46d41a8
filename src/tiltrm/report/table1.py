"""Table 1: exact-solve rates on Test and on the deterministic failures, beside the paper's."""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from tiltrm.evaluate.summary import DF, Row, Spread, summarise
from tiltrm.report import paper
from tiltrm.report.evidence import (
    BENCHMARKS,
    MAZE,
    SUDOKU,
    Evidence,
    percent,
    spread_percent,
    table1,
)
from tiltrm.report.sheet import Cell, Compared, Panel, Sheet, Table
from tiltrm.report.style import LOOKS, Look, paint

METHODS = ("deterministic", "unguided", "oracle", "guided")
TEST = "Test"
HEAD = (
    "benchmark", "split", "method", "puzzles", "runs", "exact", "sd", "paper", "paper sd",
    "shortest", "valid", "evaluations",
)  # fmt: skip


class Entry(NamedTuple):
    """One method on one split."""

    part: str
    split: str
    method: str
    row: Row  # of the cloud that it is about
    exact: Spread


def entries(evidence: Evidence, part: str) -> Iterator[Entry]:
    """The four columns of the paper on Test and, for Sudoku, on DF.

    The oracle is the best particle at the end of the guided cloud.
    """
    rows = summarise(evidence.read(table1(evidence, part)))
    for split in (TEST, DF) if part == SUDOKU else (TEST,):
        mine = {row.method: row for row in rows if (row.split == DF) == (split == DF)}
        for method in METHODS:
            row = mine.get("guided" if method == "oracle" else method)
            if row is None:
                continue
            exact = row.oracle if method == "oracle" else row.exact
            if exact is not None:
                yield Entry(part, split, method, row, exact)


def sheet(evidence: Evidence) -> Sheet:
    """The whole item."""
    parts = [part for part in (SUDOKU, MAZE) if part in evidence.subjects]
    found = [entry for part in parts for entry in entries(evidence, part)]
    splits = list(dict.fromkeys((entry.part, entry.split) for entry in found))
    panels = [
        _panel(part, split, [e for e in found if (e.part, e.split) == (part, split)])
        for part, split in splits
    ]
    compared = [line for entry in found for line in _compared(entry)] + [
        line for split in splits for line in _closed(found, *split)
    ]
    return Sheet(
        "table1", "Table 1 · Exact-solve rates on Test and on deterministic failures",
        "Filled marks are these weights, with the standard deviation over seeds and folds; hollow "
        "marks are the paper's. DF holds the puzzles of Test that the deterministic model fails. "
        "The oracle is the best particle that is left at the end of the guided cloud.",
        tuple(panels), tuple(compared), Table(HEAD, [_line(entry) for entry in found]),
        evidence.missing(MAZE) + _remarks(found), shown=_maze_measures(found),
    )  # fmt: skip


def _published(entry: Entry) -> paper.Value | None:
    return paper.TABLE1.get((entry.part, entry.split), {}).get(entry.method)


def _compared(entry: Entry) -> Iterator[Compared]:
    value = _published(entry)
    ours, sd = spread_percent(entry.exact)
    what = f"{BENCHMARKS[entry.part]} {entry.split}, {LOOKS[entry.method].label}"
    yield Compared(what, value and value.mean, ours, "%", value and value.spread, sd)


def _closed(found: list[Entry], part: str, split: str) -> Iterator[Compared]:
    """How much of the way from the deterministic model to the oracle guided goes."""
    exact = {e.method: percent(e.exact.mean) for e in found if (e.part, e.split) == (part, split)}
    theirs = {m: v.mean for m, v in paper.TABLE1.get((part, split), {}).items()}
    for values in (exact, theirs):
        if values.get("oracle", 0.0) <= values.get("deterministic", 0.0):
            return
    paper_share, our_share = (
        100 * (v["guided"] - v["deterministic"]) / (v["oracle"] - v["deterministic"])
        for v in (theirs, exact)
    )
    what = f"{BENCHMARKS[part]} {split}, share of the way to the oracle"
    yield Compared(what, paper_share, our_share)


def _line(entry: Entry) -> tuple[Cell, ...]:
    value, row = _published(entry), entry.row
    shown = entry.method != "oracle"
    kinds = (row.shortest, row.valid)
    others = [percent(s.mean) if shown and s is not None else None for s in kinds]
    return (
        BENCHMARKS[entry.part], entry.split, entry.method, row.puzzles, row.runs,
        *spread_percent(entry.exact), value and value.mean, value and value.spread, *others,
        row.evaluations.mean,
    )  # fmt: skip


def _maze_measures(found: list[Entry]) -> Table | None:
    """Exact is partly a matter of which of several shortest paths the label took."""
    rows: list[tuple[Cell, ...]] = []
    for entry in found:
        kinds = (entry.row.exact, entry.row.shortest, entry.row.valid)
        if entry.part == MAZE and entry.method != "oracle":
            shares = [None if kind is None else f"{percent(kind.mean):.1f}" for kind in kinds]
            rows.append((LOOKS[entry.method].label, *shares))
    head = ("Maze-Hard, %", "exact", "shortest and valid", "valid")
    return Table(head, rows) if rows else None


def _remarks(found: list[Entry]) -> tuple[str, ...]:
    sizes = {(e.part, e.split): (e.row.puzzles, e.row.runs) for e in found if e.method == "guided"}
    return tuple(
        f"{BENCHMARKS[part]} {split}: {puzzles:,} puzzles, {runs} runs of a seed and a fold "
        f"(the paper: {paper.SIZES[part, split]:,} puzzles, 25 runs)."
        for (part, split), (puzzles, runs) in sizes.items()
    )


def _panel(part: str, split: str, found: list[Entry]) -> Panel:
    spoken = "; ".join(
        f"{LOOKS[e.method].label} {percent(e.exact.mean):.1f} %"
        + (f", the paper {value.mean} %" if (value := _published(e)) else "")
        for e in found
    )
    said = f"Exact-solve rates: {spoken}."
    return Panel(f"{BENCHMARKS[part]}, {split}", said, partial(_draw_dots, found))


def _draw_dots(found: list[Entry], axes: Any) -> None:
    for place, entry in enumerate(reversed(found)):
        ours = spread_percent(entry.exact)
        _dot(axes, place + 0.17, LOOKS[entry.method], *ours, fill=None, ink="ink")
        value = _published(entry)
        if value is not None:
            _dot(axes, place - 0.17, LOOKS[entry.method], *value, fill=paint("sheet"), ink="soft")
    axes.set_yticks(range(len(found)), [LOOKS[e.method].label for e in reversed(found)])
    axes.set(xlabel="exactly solved, %", ylim=(-0.55, len(found) - 0.45))
    axes.margins(x=0.1)
    low, high = axes.get_xlim()
    axes.set_xlim(low, high + 0.1 * (high - low))  # room for the last number


def _dot(
    axes: Any, y: float, look: Look, mean: float | None, spread: float | None, *,
    fill: str | None, ink: str,
) -> None:  # fmt: skip
    """A mark with its spread, and its number to the right of both."""
    x, reach = mean or 0.0, spread or 0.0
    axes.errorbar(x, y, xerr=reach, fmt=look.mark, color=look.paint, capsize=2.5, markersize=6,
                  markerfacecolor=fill or look.paint, elinewidth=1.2)  # fmt: skip
    axes.annotate(f"{x:.1f}", (x + reach, y), (8, 0), textcoords="offset points", va="center",
                  fontsize=8.5, color=paint(ink))  # fmt: skip
