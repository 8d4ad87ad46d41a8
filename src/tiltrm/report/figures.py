"""The figures of a diagnosis, drawn with matplotlib, which is an extra.

Every function takes axes and `Report.as_dict()`; the reproduction of the paper's figures uses the
same ones.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tiltrm.report.sheet import PANEL
from tiltrm.report.style import LOOKS, SERIES, inline, paint, styled

ACCURACY = (-0.02, 1.02)
OUTCOMES = {"right": "adaptive", "wrong": "wrong"}  # their colours
TERMS = {"terminal": "guided", "path": "unguided"}
ROOM = 0.12  # of the height, below, for a legend
SECANTS = "the paper's bound, from random secants"


def draw(figures: Mapping[str, Any]) -> dict[str, str]:
    """Title -> SVG for every figure that these numbers have; `figures` is `Report.as_dict()`."""
    drawn: dict[str, str] = {}
    with styled() as figure:
        for title, (plot, needs_labels) in PLOTS.items():
            if needs_labels and "accuracy" not in figures:
                continue
            sheet = figure(*PANEL)
            plot(sheet.subplots(), figures)
            drawn[title] = inline(sheet, f"plot{len(drawn)}", title)
    return drawn


def survival(axes: Any, figures: Mapping[str, Any]) -> None:
    """Pr(tau_r > M) by noise, a line a radius."""
    tubes = figures["stability"]["tubes"]
    for alpha, look in zip(sorted({tube["alpha"] for tube in tubes}), SERIES, strict=False):
        mine = [tube for tube in tubes if tube["alpha"] == alpha]
        axes.plot(
            [t["noise"] for t in mine], [t["survival"] for t in mine], label=f"α = {alpha:g}",
            color=paint(look), marker=LOOKS[look].mark,
        )  # fmt: skip
    axes.set(xlabel="noise σ", ylabel="stays in the tube, Pr(τ > M)", ylim=ACCURACY)
    axes.legend()


def deviation(axes: Any, figures: Mapping[str, Any]) -> None:
    """Deviations inside the widest tube by inner step, the bound that random secants give dotted.

    A line a noise, the stronger the darker. Nothing is drawn where no path stayed inside.
    """
    tubes = _widest(figures)
    for end in _inside(axes, tubes, [1.0 for _ in tubes]):
        _name(axes, *end)
    some = any(value for tube in tubes for value in tube["deviation"])  # a log of nothing fails
    axes.set(ylabel=f"E‖e‖² inside / r², α = {tubes[0]['alpha']:g}",
             yscale="log" if some else "linear")  # fmt: skip
    axes.yaxis.set_major_formatter("{x:g}")
    if axes.get_legend():
        low, high = axes.get_ylim()
        axes.set_ylim(low / (high / low) ** ROOM, high)


def excess(axes: Any, figures: Mapping[str, Any]) -> None:
    """The same over σ²LD, which is one step's noise, so that lines and bound can be told apart."""
    tubes = _widest(figures)
    units = [(t["alpha"] / t["noise"]) ** 2 if t["noise"] else math.nan for t in tubes]
    ends = _inside(axes, tubes, units)
    outer = sorted(dict.fromkeys((*ends[:1], *ends[-1:])), key=lambda end: end[1])
    for end, place in zip(outer, ("top", "bottom"), strict=False):
        _name(axes, *end, place)
    low, high = axes.get_ylim()
    axes.set(ylabel=f"E‖e‖² inside / σ²LD, α = {tubes[0]['alpha']:g}",
             ylim=(low - ROOM * (high - low), high))  # fmt: skip


def _widest(figures: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    tubes = figures["stability"]["tubes"]
    widest = max(tube["alpha"] for tube in tubes)
    return [tube for tube in tubes if tube["alpha"] == widest]


def _inside(
    axes: Any, tubes: Sequence[Mapping[str, Any]], units: Sequence[float]
) -> list[tuple[int, float, float]]:
    """A line a tube and its bound, both times the tube's unit: where lines end, and their noise."""
    steps = list(range(1, len(tubes[0]["deviation"]) + 1))
    bounds, ends = [], []
    for place, (tube, unit) in enumerate(zip(tubes, units, strict=True), 1):
        line = [unit * value if value else math.nan for value in tube["deviation"]]
        axes.plot(steps, line, "o-", markersize=3.5, color=paint("unguided"),
                  alpha=0.25 + 0.75 * place / len(tubes))  # fmt: skip
        if line[-1] == line[-1]:
            ends.append((steps[-1], line[-1], tube["noise"]))
        if tube["secant_bound"] is not None and line[0] == line[0]:
            limit = [unit * value for value in tube["secant_bound"]]
            bounds += axes.plot(steps, limit, ":", color=paint("guided"), zorder=3)
    axes.set(xlabel="inner step m", xticks=steps,
             xlim=(steps[0] - 0.2, steps[-1] + 0.17 * len(steps)))  # fmt: skip
    if bounds:
        axes.legend(bounds[:1], [SECANTS], loc="lower right")
    return ends


def _name(axes: Any, x: float, y: float, noise: float, place: str = "center") -> None:
    axes.annotate(f"σ = {noise:g}", (x, y), (7, 0), va=place, textcoords="offset points",
                  fontsize=8)  # fmt: skip


def alignment(axes: Any, figures: Mapping[str, Any]) -> None:
    """By outer step, the bound on the mass that one tilt can move, and what it does move."""
    for look, (name, study) in zip(SERIES, figures["alignment"].items(), strict=False):
        steps = range(1, len(study["bound"]) + 1)
        axes.plot(steps, study["bound"], "-", color=paint(look), label=f"{name}: bound")
        axes.plot(steps, study["moved"], "--", color=paint(look), label=f"{name}: moved")
    axes.set(xlabel="outer step n", ylabel="mass that one tilt can move", ylim=(0, None))
    axes.legend()


def scores(axes: Any, figures: Mapping[str, Any]) -> None:
    """Guide scores of trajectories that end right and wrong, mean and one standard deviation."""
    study = next(iter(figures["alignment"].values()))
    steps = list(range(1, len(study["bound"]) + 1))
    for word, colour in OUTCOMES.items():
        mean, spread = numbers(study[f"score_{word}"]), numbers(study[f"score_{word}_std"])
        axes.plot(steps, mean, color=paint(colour), label=f"ends {word}")
        low = [m - s for m, s in zip(mean, spread, strict=True)]
        high = [m + s for m, s in zip(mean, spread, strict=True)]
        axes.fill_between(steps, low, high, color=paint(colour), alpha=0.18, linewidth=0)
    axes.set(xlabel="outer step n", ylabel="guide score")
    axes.legend()


def numbers(values: Sequence[float | None]) -> list[float]:
    """None as NaN, which is not drawn."""
    return [math.nan if value is None else value for value in values]


def accuracy(axes: Any, figures: Mapping[str, Any]) -> None:
    """Token accuracy by entropy, with 95 % intervals."""
    for name, bins in figures["entropy"]["binned_accuracy"].items():
        middle = [(b["low"] + b["high"]) / 2 for b in bins]
        band(axes, middle, [(b["share"], *b["interval"]) for b in bins], TERMS[name], name)
    axes.set(xlabel="entropy", ylabel="token accuracy, 95 %", ylim=ACCURACY)
    axes.legend()


def band(
    axes: Any, places: Sequence[float], values: Sequence[tuple[float, float, float]], look: str,
    label: str, *, dash: Any = "-", shade: float = 0.16,
) -> None:  # fmt: skip
    """A line with its band: values are (middle, low, high)."""
    middle, low, high = zip(*values, strict=True) if values else ((), (), ())
    axes.plot(places, middle, linestyle=dash, marker=LOOKS[look].mark, color=paint(look),
              label=label)  # fmt: skip
    axes.fill_between(places, low, high, color=paint(look), alpha=shade, linewidth=0)


def _selective(axes: Any, figures: Mapping[str, Any]) -> None:
    for name, found in figures["entropy"]["puzzles_by_entropy"].items():
        axes.plot(*zip(*found["curve"], strict=True), "o-", color=paint(TERMS[name]), label=name)
    axes.set(xlabel="coverage", ylabel="puzzles right", ylim=ACCURACY)
    axes.legend()


Plot = Callable[[Any, Mapping[str, Any]], None]
PLOTS: dict[str, tuple[Plot, bool]] = {
    "Survival in the tube by noise": (survival, False),
    "Deviation in the tube by inner step": (deviation, False),
    "The same over σ²LD, one step's noise": (excess, False),
    "What the guide can move": (alignment, False),
    "Guide scores by outcome": (scores, True),
    "Token accuracy by entropy": (accuracy, True),
    "Accuracy against coverage": (_selective, True),
}
