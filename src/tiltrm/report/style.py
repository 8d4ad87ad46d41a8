"""The look of every figure: colours, lines and marks by method, and files that never vary.

Colours are told apart by people with the common forms of colour blindness, and no figure relies on
colour alone: a method has its mark and its dash too. Each colour has a twin for dark pages.
"""

import html
import importlib
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tiltrm.errors import SettingsError

MISSING = "figures need matplotlib, which is not installed; pip install 'tiltrm[report]'"
SALT = "tiltrm"  # of the ids inside an SVG, so that the same figure is the same file
FONT = "DejaVu Sans"  # comes with matplotlib
DOTS = 160  # an inch

COLOURS: dict[str, tuple[str, str]] = {  # name -> on light, on dark
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


class Look(NamedTuple):
    """How one method is drawn."""

    label: str
    colour: str  # a name of COLOURS
    mark: str = "o"
    dash: Any = "-"

    @property
    def paint(self) -> str:
        """The colour on light paper."""
        return COLOURS[self.colour][0]


LOOKS: dict[str, Look] = {
    "deterministic": Look("deterministic TRM", "deterministic", "s", (0, (4, 1.5))),
    "unguided": Look("unguided", "unguided", "^", "-."),
    "guided": Look("guided MAP", "guided", "o"),
    "oracle": Look("oracle particle", "oracle", "D", ":"),
    "adaptive": Look("adaptive (ours)", "adaptive", "*"),
    "adaptive_rules": Look("adaptive, rules may decide", "adaptive_rules", "P"),
    "ptrm": Look("PTRM, best final Q", "ptrm", "v", "--"),
    "halt_first": Look("halt-first of K", "halt_first", "X"),
    "symmetry": Look("symmetry vote", "symmetry", "h", "--"),
}
SERIES = ("guided", "unguided", "adaptive", "deterministic", "ptrm", "symmetry", "halt_first")


def paint(name: str) -> str:
    """A named colour on light paper."""
    return COLOURS[name][0]


RC: dict[str, Any] = {
    "svg.hashsalt": SALT, "svg.fonttype": "none", "font.family": FONT, "font.size": 9.5,
    "axes.edgecolor": paint("soft"), "axes.labelcolor": paint("ink"), "text.color": paint("ink"),
    "axes.titlesize": 10.5, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "axes.titlecolor": paint("ink"), "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.color": paint("hair"), "grid.linewidth": 0.7, "axes.axisbelow": True,
    "axes.linewidth": 0.8, "xtick.color": paint("soft"), "ytick.color": paint("soft"),
    "xtick.labelcolor": paint("ink"), "ytick.labelcolor": paint("ink"),
    "lines.linewidth": 1.8, "lines.markersize": 5.0, "legend.frameon": False,
    "legend.fontsize": 8.5, "legend.handlelength": 2.8, "figure.facecolor": "none",
    "axes.facecolor": "none", "path.simplify": False, "axes.unicode_minus": True,
}  # fmt: skip


@contextmanager
def styled() -> Iterator[Any]:
    """matplotlib's Figure in this style; SettingsError where matplotlib is not installed."""
    try:
        figure = importlib.import_module("matplotlib.figure").Figure
        context = importlib.import_module("matplotlib").rc_context
    except ImportError as error:
        raise SettingsError(MISSING) from error
    with context(RC):
        yield lambda width, height: figure(figsize=(width, height), layout="constrained")


def halo() -> list[Any]:
    """A rim of paper round words that lie on lines."""
    effects = importlib.import_module("matplotlib.patheffects")
    return [effects.withStroke(linewidth=2.2, foreground=paint("sheet"))]


def png(figure: Any) -> bytes:
    """The picture on white paper, the same bytes for the same figure."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=DOTS, facecolor=paint("sheet"),
                   metadata={"Software": None})  # fmt: skip
    return out.getvalue()


def svg(figure: Any, *, ground: str = COLOURS["sheet"][0]) -> str:
    """The picture as SVG text."""
    out = io.StringIO()
    figure.savefig(out, format="svg", facecolor=ground, metadata={"Date": None, "Creator": None})
    return out.getvalue()


def inline(figure: Any, name: str, spoken: str) -> str:
    """The same for the inside of a page: its colours and letters are the page's, its ids its own.

    `name` sets the ids apart from those of other figures; `spoken` is what a screen reader says.
    """
    text = re.sub(r"^.*?(?=<svg)", "", svg(figure, ground="none"), flags=re.DOTALL)
    text = re.sub(r"<metadata>.*?</metadata>\s*|<style.*?</style>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'(?<=\sid=")|(?<=xlink:href="#)|(?<=url\(#)', f"{name}-", text)
    text = re.sub(r"font-family: [^;\"]*;? ?", "", text)
    for colour, (light, _) in COLOURS.items():
        text = text.replace(light, f"var(--{colour})")
    return re.sub("<svg", f'<svg role="img" aria-label="{html.escape(spoken)}"', text, count=1)


def variables() -> str:
    """The colours as CSS variables that follow the reader's theme."""
    return "".join(
        f"--{name}:light-dark({light},{dark});" for name, (light, dark) in COLOURS.items()
    )
