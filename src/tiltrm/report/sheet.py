"""One item of the reproduction: panels to draw, numbers beside the paper's, a table, remarks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tiltrm.report.style import inline, png, styled, svg

PANEL = (4.2, 3.15)  # inches
WIDE = (8.4, 5.0)
NARROW = (3.5, 5.0)  # a wide panel on a phone


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    spoken: str  # what it shows, for those who cannot see it
    draw: Callable[[Any], None]
    wide: bool = False


class Compared(NamedTuple):
    """One number of the paper beside ours."""

    what: str
    paper: float | None
    ours: float | None
    unit: str = "%"  # what both are in; differences of percentages are points
    paper_spread: float | None = None
    our_spread: float | None = None
    digits: int = 1

    @property
    def difference(self) -> float | None:
        """Ours less the paper's."""
        return None if self.paper is None or self.ours is None else self.ours - self.paper


Cell = str | int | float | bool | None


class Table(NamedTuple):
    """A header and rows."""

    head: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]


@dataclass(frozen=True)
class Sheet:
    """What one item found. `data` is everything that was drawn; `shown` is for the page."""

    name: str
    title: str
    reading: str  # how to read it, in a sentence or two
    panels: tuple[Panel, ...]
    compared: tuple[Compared, ...]
    data: Table
    notes: tuple[str, ...] = ()  # what is missing, what failed, what was shortened
    shown: Table | None = None


def pictures(sheet: Sheet) -> dict[str, bytes]:
    """File name -> content: all panels together as PNG and SVG; nothing where there is no panel."""
    if not sheet.panels:
        return {}
    with styled() as figure:
        drawn = _together(figure, sheet.panels)
        return {f"{sheet.name}.png": png(drawn), f"{sheet.name}.svg": svg(drawn).encode()}


def _together(figure: Callable[[float, float], Any], panels: Sequence[Panel]) -> Any:
    """Two panels in a row; a wide one, or the odd one at the end of three, has a row of its own."""
    rows: list[list[Panel]] = []
    for panel in panels:
        fresh = not rows or panel.wide or rows[-1][0].wide or len(rows[-1]) == 2
        rows.append([panel]) if fresh else rows[-1].append(panel)
    heights = [WIDE[1] if row[0].wide else PANEL[1] for row in rows]
    whole = figure(2 * PANEL[0] if any(len(r) == 2 or r[0].wide for r in rows) else PANEL[0],
                   sum(heights))  # fmt: skip
    grid = whole.add_gridspec(len(rows), 2 if whole.get_figwidth() > PANEL[0] else 1,
                              height_ratios=heights)  # fmt: skip
    for number, row in enumerate(rows):
        for column, panel in enumerate(row):
            axes = whole.add_subplot(grid[number, :] if panel.wide else grid[number, column])
            axes.set_title(panel.title)
            panel.draw(axes)
    return whole


def inlined(sheet: Sheet) -> list[tuple[str, str, str]]:
    """(title, kind, SVG) of every panel by itself; a wide one again, narrow, for a phone."""
    found = []
    with styled() as figure:
        for number, panel in enumerate(sheet.panels):
            kinds = {"wide": WIDE, "narrow": NARROW} if panel.wide else {"panel": PANEL}
            for kind, size in kinds.items():
                drawn = figure(*size)
                panel.draw(drawn.subplots())
                name = f"{sheet.name}-{number}-{kind}"
                found.append((panel.title, kind, inline(drawn, name, panel.spoken)))
    return found
