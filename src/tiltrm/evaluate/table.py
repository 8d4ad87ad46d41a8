"""Rows, paired tests and curves as text for a terminal."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tiltrm.evaluate.compare import Paired
from tiltrm.evaluate.summary import Curve, Row, Spread
from tiltrm.evaluate.titles import title
from tiltrm.explore.search import NOT_DECIDED

SMALLEST = 1e-300  # smaller p-values cannot be told from 0


class Comparison(NamedTuple):
    """One method against a baseline on one split."""

    split: str
    first: str
    second: str
    found: Paired

    def as_dict(self) -> dict[str, object]:
        """Ready for JSON."""
        return {"split": self.split, "first": self.first, "second": self.second,
                **self.found.as_dict()}  # fmt: skip


def rows_table(rows: Sequence[Row]) -> str:
    """One line per row, in percent with standard deviations over seeds and folds."""
    heads = ["split", "method", "puzzles", "runs", "exact %", "oracle %", "evaluations/puzzle"]
    mazes = any(row.shortest is not None for row in rows)
    if mazes:
        heads[6:6] = ["shortest %", "valid %"]
    lines = []
    for row in rows:
        line = [row.split, row.title, f"{row.puzzles:,}", str(row.runs), percent(row.exact),
                percent(row.oracle), f"{row.evaluations.mean:,.1f}"]  # fmt: skip
        if mazes:
            line[6:6] = [percent(row.shortest), percent(row.valid)]
        lines.append(line)
    return align([heads, *lines], left=2)


def stopping_rules(rows: Sequence[Row]) -> str:
    """How often each stopping rule applied and was right, one line per method that has any."""
    lines = []
    for row in rows:
        said = ", ".join(
            f"{name} {answers:,} ({100 * right / answers:.2f} % right)"
            for name, answers, right in row.reasons
        )
        if {reason.name for reason in row.reasons} - {*NOT_DECIDED}:
            lines.append(f"{row.split}, {row.title}, stopped by: {said}")
    return "\n".join(lines)


def comparisons_table(comparisons: Sequence[Comparison], split: str = "split") -> str:
    """One line per comparison, in percentage points. split: the title of the first column."""
    heads = [
        split,
        "method",
        "baseline",
        "difference",
        "95 % interval",
        "wins",
        "losses",
        "p-value",
    ]
    lines = [
        [c.split, c.first, c.second, f"{100 * c.found.difference:+.2f}",
         f"[{100 * c.found.low:+.2f}, {100 * c.found.high:+.2f}]", f"{c.found.wins:,}",
         f"{c.found.losses:,}", _p(c.found.p_value)]
        for c in comparisons
    ]  # fmt: skip
    return align([heads, *lines], left=3)


def curves_table(curves: Sequence[Curve]) -> str:
    """One column per curve, one line per outer step: exact answers in percent."""
    names = [f"{c.split}, {title(c.method, c.settings, c.task)}" for c in curves]
    steps = max((len(curve.exact) for curve in curves), default=0)
    lines = [
        [str(n + 1), *(percent(c.exact[n]) if n < len(c.exact) else "" for c in curves)]
        for n in range(steps)
    ]
    return align([["outer step", *names], *lines], left=0)


def align(cells: Sequence[Sequence[str]], left: int) -> str:
    """Cells in columns; the first `left` columns are left-aligned, the others right-aligned."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(_line(row, widths, left) for row in cells)


def _line(row: Iterable[str], widths: Sequence[int], left: int) -> str:
    padded = [
        text.ljust(width) if place < left else text.rjust(width)
        for place, (text, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()


def percent(spread: Spread | None) -> str:
    """The mean in percent, with its standard deviation if there is one; '-' for None."""
    if spread is None:
        return "-"
    return f"{100 * spread.mean:.2f}" + (
        f" ± {100 * spread.sd:.2f}" if spread.sd is not None else ""
    )


def _p(value: float) -> str:
    return f"< {SMALLEST:g}" if value < SMALLEST else f"{value:.2g}"
