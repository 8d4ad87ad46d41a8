"""What the pictures of all tasks share: values per cell, terminal colours, SVG elements."""

import math
from collections.abc import Iterable

from torch import Tensor

from tiltrm.errors import SettingsError

RESET = "\x1b[0m"
BOLD = "1"
RAMP = (196, 202, 208, 214, 220, 226, 190, 154, 118, 82)  # the 256-colour codes red to green

INK, PAPER, RULE = "#1f2933", "#fdfdfb", "#c9ced6"
ANSWER, DOUBT, WRONG = "#2563a8", "#f59e0b", "#d0342c"


def tokens(values: Tensor, cells: int) -> list[int]:
    """(cell,) ids as a list; raises SettingsError on another shape."""
    return [int(value) for value in _flat(values, cells, "tokens")]


def shares(values: Tensor | None, cells: int, otherwise: float) -> list[float]:
    """(cell,) values in [0, 1] as a list, NaN as 0; `otherwise` everywhere where there are none."""
    if values is None:
        return [otherwise] * cells
    found = _flat(values, cells, "confidence")
    return [0.0 if math.isnan(value) else min(1.0, max(0.0, float(value))) for value in found]


def _flat(values: Tensor, cells: int, name: str) -> list[float]:
    if values.shape != (cells,):
        raise SettingsError(f"expected {name} of shape ({cells},), got {tuple(values.shape)}")
    numbers: list[float] = values.tolist()
    return numbers


def paint(text: str, code: str) -> str:
    """Text in a terminal style."""
    return f"\x1b[{code}m{text}{RESET}"


def heat(confidence: float) -> int:
    """The terminal colour of a confidence: red 0, yellow a half, green 1."""
    return RAMP[min(len(RAMP) - 1, int(confidence * len(RAMP)))]


def page(width: int, height: int, title: str, parts: Iterable[str]) -> str:
    """A whole SVG picture on light paper."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" font-family="Helvetica, Arial, sans-serif">'
    )
    paper = rect(0, 0, width, height, PAPER)
    return "\n".join((head, f"<title>{title}</title>", paper, *parts, "</svg>\n"))


def rect(x: float, y: float, width: float, height: float, fill: str, extra: str = "") -> str:
    """A filled rectangle."""
    size = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
    return f'<rect {size} fill="{fill}"{extra and " " + extra}/>'


def shade(x: float, y: float, size: float, doubt: float) -> str:
    """A cell tinted by doubt = 1 - confidence."""
    return rect(x, y, size, size, DOUBT, f'fill-opacity="{0.85 * doubt:.3f}"')


def line(x1: float, y1: float, x2: float, y2: float, stroke: str, width: float) -> str:
    """A straight line."""
    ends = f'x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"'
    return f'<line {ends} stroke="{stroke}" stroke-width="{width:g}" stroke-linecap="round"/>'


def letter(x: float, y: float, text: str, size: float, fill: str, *, bold: bool = False) -> str:
    """One character centred at (x, y)."""
    weight = ' font-weight="700"' if bold else ""
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" text-anchor="middle" '
        f'dominant-baseline="central" fill="{fill}"{weight}>{text}</text>'
    )


def cross(x: float, y: float, size: float) -> str:
    """The mark of a wrong cell: a frame, and a stroke through the cell."""
    inset = size * 0.08
    frame = f'fill-opacity="0.12" stroke="{WRONG}" stroke-width="{size * 0.06:g}"'
    return rect(x + inset, y + inset, size - 2 * inset, size - 2 * inset, WRONG, frame) + line(
        x + 2 * inset, y + size - 2 * inset, x + size - 2 * inset, y + 2 * inset, WRONG, size * 0.05
    )
