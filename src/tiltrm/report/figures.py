"""The figures of a diagnosis as inline SVG, drawn with matplotlib, which is an extra."""

import importlib
import io
import re
from collections.abc import Callable, Mapping
from typing import Any

from tiltrm.errors import SettingsError

SIZE = (5.0, 3.2)  # inches
MISSING = "figures need matplotlib, which is not installed; pip install 'tiltrm[report]'"


def require() -> Any:
    """matplotlib's Figure, or a SettingsError that says how to get it."""
    try:
        return importlib.import_module("matplotlib.figure").Figure
    except ImportError as error:
        raise SettingsError(MISSING) from error


def draw(figures: Mapping[str, Any]) -> dict[str, str]:
    """Title -> SVG for every figure that these numbers have; `figures` is `Report.as_dict()`."""
    figure = require()
    drawn = {}
    for title, (plot, needs_labels) in PLOTS.items():
        if needs_labels and "accuracy" not in figures:
            continue
        sheet = figure(figsize=SIZE, layout="constrained")
        plot(sheet.subplots(), figures)
        text = io.StringIO()
        sheet.savefig(text, format="svg", metadata={"Date": None})
        drawn[title] = re.sub(r"^.*?(?=<svg)", "", text.getvalue(), flags=re.DOTALL)
    return drawn


def _survival(axes: Any, figures: Mapping[str, Any]) -> None:
    tubes = figures["stability"]["tubes"]
    for alpha in sorted({tube["alpha"] for tube in tubes}):
        mine = [tube for tube in tubes if tube["alpha"] == alpha]
        axes.plot(
            [t["noise"] for t in mine], [t["survival"] for t in mine], "o-", label=f"α = {alpha:g}"
        )
    axes.set(xlabel="noise σ", ylabel="Pr(τ > M)", ylim=(-0.02, 1.02))
    axes.legend()


def _deviation(axes: Any, figures: Mapping[str, Any]) -> None:
    tubes = figures["stability"]["tubes"]
    widest = max(tube["alpha"] for tube in tubes)
    for tube in (t for t in tubes if t["alpha"] == widest):
        steps = range(1, len(tube["deviation"]) + 1)
        (line,) = axes.plot(steps, tube["deviation"], "o-", label=f"σ = {tube['noise']:g}")
        if tube["bound"] is not None:
            axes.plot(steps, tube["bound"], ":", color=line.get_color())
    axes.set(xlabel="inner step m", ylabel=f"E|e|² in the tube / r², α = {widest:g}")
    axes.legend()


def _alignment(axes: Any, figures: Mapping[str, Any]) -> None:
    for name, study in figures["alignment"].items():
        steps = range(1, len(study["bound"]) + 1)
        (line,) = axes.plot(steps, study["bound"], "-", label=f"{name}: bound")
        axes.plot(steps, study["moved"], "--", color=line.get_color(), label=f"{name}: moved")
    axes.set(xlabel="outer step n", ylabel="mass that one tilt can move")
    axes.legend()


def _scores(axes: Any, figures: Mapping[str, Any]) -> None:
    study = next(iter(figures["alignment"].values()))
    steps = range(1, len(study["bound"]) + 1)
    for word in ("right", "wrong"):
        mean = [float("nan") if value is None else value for value in study[f"score_{word}"]]
        axes.plot(steps, mean, "o-", label=f"ends {word}")
    gap = [float("nan") if value is None else value for value in study["gap"]]
    axes.plot(steps, gap, ":", color="grey", label="gap Δ")
    axes.set(xlabel="outer step n", ylabel="guide score")
    axes.legend()


def _accuracy(axes: Any, figures: Mapping[str, Any]) -> None:
    for name, bins in figures["entropy"]["binned_accuracy"].items():
        middle = [(b["low"] + b["high"]) / 2 for b in bins]
        share = [b["share"] for b in bins]
        low = [max(0.0, b["share"] - b["interval"][0]) for b in bins]
        high = [max(0.0, b["interval"][1] - b["share"]) for b in bins]
        axes.errorbar(middle, share, yerr=(low, high), fmt="o-", capsize=3, label=name)
    axes.set(xlabel="entropy", ylabel="token accuracy, 95 %", ylim=(-0.02, 1.02))
    axes.legend()


def _selective(axes: Any, figures: Mapping[str, Any]) -> None:
    for name, found in figures["entropy"]["puzzles_by_entropy"].items():
        axes.plot(*zip(*found["curve"], strict=True), "o-", label=name)
    axes.set(xlabel="coverage", ylabel="puzzles right", ylim=(-0.02, 1.02))
    axes.legend()


Plot = Callable[[Any, Mapping[str, Any]], None]
PLOTS: dict[str, tuple[Plot, bool]] = {
    "Survival in the tube by noise": (_survival, False),
    "Deviation in the tube by inner step, its bound dotted": (_deviation, False),
    "What the guide can move": (_alignment, False),
    "Guide scores by outcome": (_scores, True),
    "Token accuracy by entropy": (_accuracy, True),
    "Accuracy against coverage": (_selective, True),
}
