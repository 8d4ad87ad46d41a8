"""Rows, paired tests and curves as text for a terminal."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tiltrm.evaluate.paired import Paired
from tiltrm.evaluate.summary import Curve, Row, Spread
from tiltrm.evaluate.titles import title
from tiltrm.explore.search import UNDECIDED

SMALLEST = 1e-300  # a p-value below has no float


class Comparison(NamedTuple):
    """One method against another on one split."""

    split: str
    first: str
    second: str
    found: Paired

    def as_dict(self) -> dict[str, object]:
        """Ready for JSON."""
        return {"split": self.split, "first": self.first, "second": self.second,
                **self.found.as_dict()}  # fmt: skip


def of_rows(rows: Sequence[Row]) -> str:
    """A line a row; percent with seed-fold standard deviations."""
    heads = ["split", "method", "puzzles", "runs", "exact %", "oracle %", "evaluations"]
    mazes = any(row.shortest is not None for row in rows)
    if mazes:
        heads[6:6] = ["shortest %", "valid %"]
    lines = []
    for row in rows:
        line = [row.split, row.title, f"{row.puzzles:,}", str(row.runs), _percent(row.exact),
                _percent(row.oracle), f"{row.evaluations.mean:,.1f}"]  # fmt: skip
        if mazes:
            line[6:6] = [_percent(row.shortest), _percent(row.valid)]
        lines.append(line)
    return aligned([heads, *lines], left=2)


def of_reasons(rows: Sequence[Row]) -> str:
    """Who decided and how often rightly, a line a method that has judges; "" where none has."""
    lines = []
    for row in rows:
        said = ", ".join(
            f"{name} {answers:,} ({100 * right / answers:.2f} % right)"
            for name, answers, right in row.reasons
        )
        if {reason.name for reason in row.reasons} - {UNDECIDED}:
            lines.append(f"{row.split}, {row.title}, decided by: {said}")
    return "\n".join(lines)


def of_comparisons(comparisons: Sequence[Comparison]) -> str:
    """A line a comparison, in points of accuracy."""
    heads = ["split", "method", "less", "points", "95 % interval", "won", "lost", "p"]
    lines = [
        [c.split, c.first, c.second, f"{100 * c.found.difference:+.2f}",
         f"[{100 * c.found.low:+.2f}, {100 * c.found.high:+.2f}]", f"{c.found.wins:,}",
         f"{c.found.losses:,}", _p(c.found.p_value)]
        for c in comparisons
    ]  # fmt: skip
    return aligned([heads, *lines], left=3)


def of_curves(curves: Sequence[Curve]) -> str:
    """A column a curve, a line an outer step: exact answers in percent."""
    names = [f"{c.split}, {title(c.method, c.settings, c.task)}" for c in curves]
    steps = max((len(curve.exact) for curve in curves), default=0)
    lines = [
        [str(n + 1), *(_percent(c.exact[n]) if n < len(c.exact) else "" for c in curves)]
        for n in range(steps)
    ]
    return aligned([["outer step", *names], *lines], left=0)


def aligned(cells: Sequence[Sequence[str]], left: int) -> str:
    """Columns under one another, the first `left` of them flush left, the others flush right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(_line(row, widths, left) for row in cells)


def _line(row: Iterable[str], widths: Sequence[int], left: int) -> str:
    padded = [
        text.ljust(width) if place < left else text.rjust(width)
        for place, (text, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()


def _percent(spread: Spread | None) -> str:
    if spread is None:
        return "-"
    return f"{100 * spread.mean:.2f}" + (
        f" ± {100 * spread.sd:.2f}" if spread.sd is not None else ""
    )


def _p(value: float) -> str:
    return f"< {SMALLEST:g}" if value < SMALLEST else f"{value:.2g}"
