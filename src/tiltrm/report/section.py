"""The content of one item of the reproduction: panels, comparisons with the paper, a data table."""

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

Cell = str | int | float | bool | None
Rows = list[tuple[Cell, ...]]


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    spoken: str  # a description for screen readers
    draw: Callable[[Any], None]  # takes matplotlib's axes
    wide: bool = False


class PaperComparison(NamedTuple):
    """One number of the paper beside ours."""

    what: str
    paper: float | None
    ours: float | None
    unit: str = "%"  # "%", "×", "points" or none; differences of percentages are points
    paper_spread: float | None = None
    our_spread: float | None = None
    digits: int = 1

    def texts(self) -> tuple[str, str, str]:
        """The paper's number, ours, and ours minus the paper's, with units; never a minus zero."""
        gap = None if self.paper is None or self.ours is None else self.ours - self.paper
        points = " points" if self.unit in ("%", "points") else ""
        return (
            self._number(self.paper, self.paper_spread),
            self._number(self.ours, self.our_spread),
            "–" if gap is None else f"{gap:+z.{self.digits}f}{points}",
        )

    def _number(self, value: float | None, spread: float | None) -> str:
        if value is None:
            return "–"
        text = f"{value:z.{self.digits}f}"
        text += "" if spread is None else f" ± {spread:.{self.digits}f}"
        return text + {"%": " %", "×": " ×"}.get(self.unit, "")


class DataTable(NamedTuple):
    """A header and rows."""

    head: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]

    def as_csv(self) -> str:
        """Comma-separated values; numbers have 6 digits, None and NaN are empty."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.head)
        writer.writerows([_csv_cell(value) for value in row] for row in self.rows)
        return out.getvalue()


@dataclass(frozen=True)
class Section:
    """One item: its part of the page and the content of its files."""

    name: str  # of the item, and of its files
    title: str
    reading: str  # how to read the panels, in a sentence or two
    panels: tuple[Panel, ...]
    comparisons: tuple[PaperComparison, ...]
    data: DataTable  # every number that is drawn, for the CSV file
    notes: tuple[str, ...] = ()  # what is missing, failed or shortened
    shown: DataTable | None = None  # a table on the page

    @property
    def short_title(self) -> str:
        """'Figure 1' of 'Figure 1 · Accuracy by outer step'."""
        return self.title.partition(" · ")[0]


def _csv_cell(value: Cell) -> str:
    if value is None or value != value:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
