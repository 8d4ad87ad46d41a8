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
    """Deviations inside the widest tube by inner step; the bound dotted where it may be drawn.

    A line a noise, the stronger the darker. Nothing is drawn where no path stayed inside.
    """
    tubes = figures["stability"]["tubes"]
    widest = max(tube["alpha"] for tube in tubes)
    mine = [tube for tube in tubes if tube["alpha"] == widest]
    steps = list(range(1, len(mine[0]["deviation"]) + 1))
    for place, tube in enumerate(mine, 1):
        inside = [value or math.nan for value in tube["deviation"]]
        style = {"color": paint("unguided"), "alpha": 0.25 + 0.75 * place / len(mine)}
        axes.plot(steps, inside, "o-", markersize=3.5, **style)
        axes.annotate(f"σ = {tube['noise']:g}", (steps[-1], inside[-1]), (7, 0), va="center",
                      textcoords="offset points", fontsize=8)  # fmt: skip
        if tube["bound"] is not None:
            axes.plot(steps, tube["bound"], ":", **style)
    axes.set(xlabel="inner step m", ylabel=f"E‖e‖² inside / r², α = {widest:g}", yscale="log",
             xticks=steps, xlim=(steps[0] - 0.2, steps[-1] + 0.17 * len(steps)))  # fmt: skip
    axes.yaxis.set_major_formatter("{x:g}")


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
    "Deviation in the tube by inner step, its bound dotted": (deviation, False),
    "What the guide can move": (alignment, False),
    "Guide scores by outcome": (scores, True),
    "Token accuracy by entropy": (accuracy, True),
    "Accuracy against coverage": (_selective, True),
}
