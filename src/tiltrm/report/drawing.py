"""Shared drawing: colours and line styles by method, figures in that style, PNG and SVG files.

The colours can be told apart with the common forms of colour blindness, and no figure relies on
colour alone: each method also has a marker and a dash pattern. Each colour has a counterpart for
dark pages. The same figure gives the same file.
"""

import html
import importlib
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from tiltrm.errors import SettingsError
from tiltrm.report.section import Panel, Section

PANEL = (4.2, 3.15)  # inches
WIDE = (8.4, 5.0)
NARROW = (3.5, 5.0)  # a wide panel on a phone
MISSING = "figures need matplotlib, which is not installed; pip install 'tiltrm[report]'"
SALT = "tiltrm"  # makes the ids inside an SVG reproducible
FONT = "DejaVu Sans"  # ships with matplotlib
DPI = 160

COLOURS: dict[str, tuple[str, str]] = {  # name -> (on light pages, on dark pages)
    "ink": ("#1b2230", "#e9ecf3"),
    "soft": ("#596274", "#a3aec0"),
    "hair": ("#dcdad3", "#333c4b"),
    "sheet": ("#ffffff", "#181d26"),
    "deterministic": ("#421a7c", "#8f78ff"),
    "unguided": ("#0039bf", "#76adfd"),
    "guided": ("#bf551d", "#f0622f"),
    "oracle": ("#33312f", "#8f8a80"),
    "adaptive": ("#08824f", "#47f2ad"),
    "adaptive_rules": ("#284c00", "#e9ff8a"),
    "ptrm": ("#c78000", "#ffb81c"),
    "halt_first": ("#096593", "#baf8fd"),
    "symmetry": ("#803456", "#d24cb3"),
    "doubt": ("#e08a00", "#d98f1f"),
    "wrong": ("#8c2420", "#e2566c"),
}


def colour(name: str) -> str:
    """A colour of `COLOURS` on light pages."""
    return COLOURS[name][0]


class MethodStyle(NamedTuple):
    """How one method is drawn."""

    label: str
    colour_name: str  # a key of COLOURS
    marker: str = "o"
    dash: Any = "-"

    @property
    def colour(self) -> str:
        """The colour on light pages."""
        return colour(self.colour_name)


STYLES: dict[str, MethodStyle] = {
    "deterministic": MethodStyle("deterministic TRM", "deterministic", "s", (0, (4, 1.5))),
    "unguided": MethodStyle("unguided", "unguided", "^", "-."),
    "guided": MethodStyle("guided MAP", "guided", "o"),
    "oracle": MethodStyle("oracle particle", "oracle", "D", ":"),
    "adaptive": MethodStyle("adaptive (ours)", "adaptive", "*"),
    "adaptive_rules": MethodStyle("adaptive, rules may decide", "adaptive_rules", "P"),
    "ptrm": MethodStyle("PTRM, best final Q", "ptrm", "v", "--"),
    "halt_first": MethodStyle("halt-first of K", "halt_first", "X"),
    "symmetry": MethodStyle("symmetry vote", "symmetry", "h", "--"),
}
SERIES = (  # colours of lines that are not methods, in order
    "guided", "unguided", "adaptive", "deterministic", "ptrm", "symmetry", "halt_first",
)  # fmt: skip


RC: dict[str, Any] = {
    "svg.hashsalt": SALT, "svg.fonttype": "none", "font.family": FONT, "font.size": 9.5,
    "axes.edgecolor": colour("soft"), "axes.labelcolor": colour("ink"), "text.color": colour("ink"),
    "axes.titlesize": 10.5, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "axes.titlecolor": colour("ink"), "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.color": colour("hair"), "grid.linewidth": 0.7, "axes.axisbelow": True,
    "axes.linewidth": 0.8, "xtick.color": colour("soft"), "ytick.color": colour("soft"),
    "xtick.labelcolor": colour("ink"), "ytick.labelcolor": colour("ink"),
    "lines.linewidth": 1.8, "lines.markersize": 5.0, "legend.frameon": False,
    "legend.fontsize": 8.5, "legend.handlelength": 2.8, "figure.facecolor": "none",
    "axes.facecolor": "none", "path.simplify": False, "axes.unicode_minus": True,
}  # fmt: skip


@contextmanager
def figure_style() -> Iterator[Callable[[float, float], Any]]:
    """A function (width, height) in inches -> matplotlib figure in this style.

    SettingsError if matplotlib is not installed.
    """
    try:
        figure = importlib.import_module("matplotlib.figure").Figure
        context = importlib.import_module("matplotlib").rc_context
    except ImportError as error:
        raise SettingsError(MISSING) from error
    with context(RC):
        yield lambda width, height: figure(figsize=(width, height), layout="constrained")


def halo() -> list[Any]:
    """Path effects that put a white outline round text on top of lines."""
    effects = importlib.import_module("matplotlib.patheffects")
    return [effects.withStroke(linewidth=2.2, foreground=colour("sheet"))]


def line_with_band(
    axes: Any, places: Sequence[float], values: Sequence[tuple[float, float, float]], *,
    colour: str, shade: float = 0.16, **line: Any,
) -> None:  # fmt: skip
    """A line with its band. Values are (middle, low, high); `line` goes to `axes.plot`."""
    middle, low, high = zip(*values, strict=True) if values else ((), (), ())
    axes.plot(places, middle, color=colour, **line)
    axes.fill_between(places, low, high, color=colour, alpha=shade, linewidth=0)


def image_files(section: Section) -> dict[str, bytes]:
    """File name -> content: all panels together as PNG and SVG; empty if there is no panel."""
    if not section.panels:
        return {}
    with figure_style() as figure:
        drawn = _all_panels(figure, section.panels)
        return {f"{section.name}.png": to_png(drawn), f"{section.name}.svg": to_svg(drawn).encode()}


def _all_panels(figure: Callable[[float, float], Any], panels: Sequence[Panel]) -> Any:
    """Two panels a row; a wide panel, or the last of an odd number, has a row to itself."""
    rows: list[list[Panel]] = []
    for panel in panels:
        fresh = not rows or panel.wide or rows[-1][0].wide or len(rows[-1]) == 2
        rows.append([panel]) if fresh else rows[-1].append(panel)
    heights = [WIDE[1] if row[0].wide else PANEL[1] for row in rows]
    columns = 2 if any(len(row) == 2 or row[0].wide for row in rows) else 1
    whole = figure(columns * PANEL[0], sum(heights))
    grid = whole.add_gridspec(len(rows), columns, height_ratios=heights)
    for number, row in enumerate(rows):
        for column, panel in enumerate(row):
            axes = whole.add_subplot(grid[number, :] if panel.wide else grid[number, column])
            axes.set_title(panel.title)
            panel.draw(axes)
    return whole


def inline_panels(section: Section) -> list[tuple[str, str, str]]:
    """(title, CSS class, SVG) of every panel; a wide panel a second time, narrow, for phones."""
    found = []
    with figure_style() as figure:
        for number, panel in enumerate(section.panels):
            kinds = {"wide": WIDE, "narrow": NARROW} if panel.wide else {"panel": PANEL}
            for kind, size in kinds.items():
                drawn = figure(*size)
                panel.draw(drawn.subplots())
                name = f"{section.name}-{number}-{kind}"
                found.append((panel.title, kind, inline_svg(drawn, name, panel.spoken)))
    return found


def to_png(figure: Any) -> bytes:
    """PNG on a white background."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=DPI, facecolor=colour("sheet"),
                   metadata={"Software": None})  # fmt: skip
    return out.getvalue()


def to_svg(figure: Any, *, background: str = COLOURS["sheet"][0]) -> str:
    """SVG text."""
    out = io.StringIO()
    metadata = {"Date": None, "Creator": None}
    figure.savefig(out, format="svg", facecolor=background, metadata=metadata)
    return out.getvalue()


def inline_svg(figure: Any, name: str, spoken: str) -> str:
    """SVG for the inside of a page: with the page's colours and fonts, and ids of its own.

    `name` is put before every id; `spoken` is the description for screen readers.
    """
    text = re.sub(r"^.*?(?=<svg)", "", to_svg(figure, background="none"), flags=re.DOTALL)
    text = re.sub(r"<metadata>.*?</metadata>\s*|<style.*?</style>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'(?<=\sid=")|(?<=xlink:href="#)|(?<=url\(#)', f"{name}-", text)
    text = re.sub(r"font-family: [^;\"]*;? ?", "", text)
    for variable, (light, _) in COLOURS.items():
        text = text.replace(light, f"var(--{variable})")
    return re.sub("<svg", f'<svg role="img" aria-label="{html.escape(spoken)}"', text, count=1)


def css_variables() -> str:
    """The colours as CSS variables that follow the reader's light or dark theme."""
    return "".join(
        f"--{name}:light-dark({light},{dark});" for name, (light, dark) in COLOURS.items()
    )
