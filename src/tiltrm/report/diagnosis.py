"""Plots of a diagnosis, which Figures 2, 3 and 5 share, and the page of `tiltrm diagnose`.

A plot takes matplotlib's axes and `found`, the numbers of `Report.as_dict()`.
"""

import html
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tiltrm.errors import SettingsError
from tiltrm.report.drawing import (
    PANEL,
    SERIES,
    STYLES,
    colour,
    figure_style,
    inline_svg,
    line_with_band,
)
from tiltrm.report.page import bullets, document, table

ACCURACY = (-0.02, 1.02)  # limits of an axis of shares
OUTCOMES = {"right": "adaptive", "wrong": "wrong"}  # their colours
ENTROPIES = {"terminal": "guided", "path": "unguided"}  # their colours
ROOM = 0.12  # of the height, at the bottom, for a legend
SECANTS = "the paper's bound, from random secants"


def page(found: Mapping[str, Any]) -> str:
    """The page. Without matplotlib it says so and has the tables alone."""
    try:
        drawn, note = draw(found), ""
    except SettingsError as error:
        drawn, note = {}, f"<p>{html.escape(str(error))}</p>"
    figures = "".join(
        f"<figure><figcaption>{html.escape(title)}</figcaption>{svg}</figure>"
        for title, svg in drawn.items()
    )
    suggested = ", ".join(f"{name} {value}" for name, value in found["suggested"].items())
    return document(
        "tiltrm diagnose",
        f"<h1>{html.escape(found['verdict'])}</h1>"
        f"<p>Certainty {found['certainty']:.2f}; {found['puzzles']} puzzles; "
        f"{found['evaluations']:,} evaluations. Suggested: {html.escape(suggested)}.</p>"
        f'{bullets(found["reasons"])}{note}<div class="panels">{figures}</div>{_tables(found)}'
        f"<p>{html.escape(found['shortened'])}</p>",
    )


def _tables(found: Mapping[str, Any]) -> str:
    tubes = found["stability"]["tubes"]
    parts = [
        _titled("Estimates of rho", ("", "mean", "largest", "below 1"),
                [(n, r["mean"], r["largest"], r["below_one"])
                 for n, r in found["stability"]["rho"].items()]),
        _titled("Tubes", ("noise", "alpha", "survival", "exit bound", "hypothesis"),
                [(t["noise"], t["alpha"], t["survival"], t["exit_bound"], t["hypothesis"])
                 for t in tubes]),
    ]  # fmt: skip
    for name, study in found["alignment"].items():
        keys = [k for k in ("spread", "widest_spread", "bound", "moved", "ess", "gap", "auroc",
                            "shift") if k in study]  # fmt: skip
        rows = list(zip(*(study[key] for key in keys), strict=True))
        numbered = [(n, *row) for n, row in enumerate(rows, 1)]
        parts.append(_titled(f"Guide: {name}", ("outer step", *keys), numbered))
    runs = {name: study["whole_run"] for name, study in found["alignment"].items()}
    parts.append(_titled("All tilts of a whole run", ("guide", *next(iter(runs.values()))),
                         [(name, *run.values()) for name, run in runs.items()]))  # fmt: skip
    if "accuracy" in found:
        shares = [(name, share) for name, share in found["accuracy"].items()]
        parts.append(_titled("Puzzles solved", ("", "share"), shares))
        curve = found["entropy"]["puzzles_by_entropy"]["terminal"]["curve"]
        parts.append(_titled("Selective", ("coverage", "puzzles right"), curve))
    return "".join(parts)


def _titled(title: str, head: tuple[str, ...], rows: list[Any]) -> str:
    return f"<h2>{html.escape(title)}</h2>{table(title, head, rows)}"


def draw(found: Mapping[str, Any]) -> dict[str, str]:
    """Title -> SVG for every figure that these numbers have."""
    drawn: dict[str, str] = {}
    with figure_style() as figure:
        for title, (plot, needs_labels) in PLOTS.items():
            if needs_labels and "accuracy" not in found:
                continue
            drawing = figure(*PANEL)
            plot(drawing.subplots(), found)
            drawn[title] = inline_svg(drawing, f"plot{len(drawn)}", title)
    return drawn


def draw_survival(axes: Any, found: Mapping[str, Any]) -> None:
    """Pr(tau_r > M) by noise, one line for each radius."""
    tubes = found["stability"]["tubes"]
    for alpha, name in zip(sorted({tube["alpha"] for tube in tubes}), SERIES, strict=False):
        mine = [tube for tube in tubes if tube["alpha"] == alpha]
        axes.plot(
            [t["noise"] for t in mine], [t["survival"] for t in mine], label=f"α = {alpha:g}",
            color=colour(name), marker=STYLES[name].marker,
        )  # fmt: skip
    axes.set(xlabel="noise σ", ylabel="stays in the tube, Pr(τ > M)", ylim=ACCURACY)
    axes.legend()


def draw_deviation(axes: Any, found: Mapping[str, Any]) -> None:
    """Deviations inside the widest tube by inner step, and the bound from random secants, dotted.

    One line for each noise, darker for stronger noise; none where no path stayed inside.
    """
    tubes = _widest(found)
    for end in _draw_inside(axes, tubes, [1.0 for _ in tubes]):
        _annotate(axes, *end)
    drawn = any(value for tube in tubes for value in tube["deviation"])
    axes.set(ylabel=f"E‖e‖² inside / r², α = {tubes[0]['alpha']:g}",
             yscale="log" if drawn else "linear")  # fmt: skip
    axes.yaxis.set_major_formatter("{x:g}")
    if axes.get_legend():
        low, high = axes.get_ylim()
        axes.set_ylim(low / (high / low) ** ROOM, high)


def draw_excess(axes: Any, found: Mapping[str, Any]) -> None:
    """The same in units of σ²LD, the noise of one step, which sets lines and bound apart."""
    tubes = _widest(found)
    units = [(t["alpha"] / t["noise"]) ** 2 if t["noise"] else math.nan for t in tubes]
    ends = _draw_inside(axes, tubes, units)
    outer = sorted(dict.fromkeys((*ends[:1], *ends[-1:])), key=lambda end: end[1])
    for end, place in zip(outer, ("top", "bottom"), strict=False):
        _annotate(axes, *end, place)
    low, high = axes.get_ylim()
    axes.set(ylabel=f"E‖e‖² inside / σ²LD, α = {tubes[0]['alpha']:g}",
             ylim=(low - ROOM * (high - low), high))  # fmt: skip


def _widest(found: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    tubes = found["stability"]["tubes"]
    widest = max(tube["alpha"] for tube in tubes)
    return [tube for tube in tubes if tube["alpha"] == widest]


def _draw_inside(
    axes: Any, tubes: Sequence[Mapping[str, Any]], units: Sequence[float]
) -> list[tuple[int, float, float]]:
    """Draw each tube's deviations and bound, times its unit; returns (x, y, noise) of line ends."""
    steps = list(range(1, len(tubes[0]["deviation"]) + 1))
    bounds, ends = [], []
    for place, (tube, unit) in enumerate(zip(tubes, units, strict=True), 1):
        line = [unit * value if value else math.nan for value in tube["deviation"]]
        axes.plot(steps, line, "o-", markersize=3.5, color=colour("unguided"),
                  alpha=0.25 + 0.75 * place / len(tubes))  # fmt: skip
        if line[-1] == line[-1]:
            ends.append((steps[-1], line[-1], tube["noise"]))
        if tube["secant_bound"] is not None and line[0] == line[0]:
            limit = [unit * value for value in tube["secant_bound"]]
            bounds += axes.plot(steps, limit, ":", color=colour("guided"), zorder=3)
    axes.set(xlabel="inner step m", xticks=steps,
             xlim=(steps[0] - 0.2, steps[-1] + 0.17 * len(steps)))  # fmt: skip
    if bounds:
        axes.legend(bounds[:1], [SECANTS], loc="lower right")
    return ends


def _annotate(axes: Any, x: float, y: float, noise: float, place: str = "center") -> None:
    axes.annotate(f"σ = {noise:g}", (x, y), (7, 0), va=place, textcoords="offset points",
                  fontsize=8)  # fmt: skip


def _draw_alignment(axes: Any, found: Mapping[str, Any]) -> None:
    """By outer step, the bound on the mass that one tilt can move, and the mass that it moves."""
    for name, (guide, study) in zip(SERIES, found["alignment"].items(), strict=False):
        steps = range(1, len(study["bound"]) + 1)
        axes.plot(steps, study["bound"], "-", color=colour(name), label=f"{guide}: bound")
        axes.plot(steps, study["moved"], "--", color=colour(name), label=f"{guide}: moved")
    axes.set(xlabel="outer step n", ylabel="mass that one tilt can move", ylim=(0, None))
    axes.legend()


def draw_scores(axes: Any, found: Mapping[str, Any]) -> None:
    """Guide scores of trajectories that end right and wrong, mean and one standard deviation."""
    study = next(iter(found["alignment"].values()))
    steps = list(range(1, len(study["bound"]) + 1))
    for word, name in OUTCOMES.items():
        mean, sd = numbers(study[f"score_{word}"]), numbers(study[f"score_{word}_std"])
        values = [(m, m - s, m + s) for m, s in zip(mean, sd, strict=True)]
        line_with_band(axes, steps, values, colour=colour(name), shade=0.18, label=f"ends {word}")
    axes.set(xlabel="outer step n", ylabel="guide score")
    axes.legend()


def numbers(values: Sequence[float | None]) -> list[float]:
    """None as NaN, which is not drawn."""
    return [math.nan if value is None else value for value in values]


def accuracy_bins(
    bins: Sequence[Mapping[str, Any]],
) -> tuple[list[float], list[tuple[float, float, float]]]:
    """Middles of the bins, and (share, low, high) of each."""
    middle = [(b["low"] + b["high"]) / 2 for b in bins]
    return middle, [(b["share"], *b["interval"]) for b in bins]


def _draw_accuracy(axes: Any, found: Mapping[str, Any]) -> None:
    """Token accuracy by entropy, with 95 % intervals."""
    for name, bins in found["entropy"]["binned_accuracy"].items():
        style = STYLES[ENTROPIES[name]]
        line_with_band(axes, *accuracy_bins(bins), colour=style.colour, marker=style.marker,
                       label=name)  # fmt: skip
    axes.set(xlabel="entropy", ylabel="token accuracy, 95 %", ylim=ACCURACY)
    axes.legend()


def _draw_coverage(axes: Any, found: Mapping[str, Any]) -> None:
    for name, study in found["entropy"]["puzzles_by_entropy"].items():
        line = zip(*study["curve"], strict=True)
        axes.plot(*line, "o-", color=colour(ENTROPIES[name]), label=name)
    axes.set(xlabel="coverage", ylabel="puzzles right", ylim=ACCURACY)
    axes.legend()


Plot = Callable[[Any, Mapping[str, Any]], None]  # (axes, found)
PLOTS: dict[str, tuple[Plot, bool]] = {  # whether the plot needs labels
    "Survival in the tube by noise": (draw_survival, False),
    "Deviation in the tube by inner step": (draw_deviation, False),
    "The same over σ²LD, one step's noise": (draw_excess, False),
    "What the guide can move": (_draw_alignment, False),
    "Guide scores by outcome": (draw_scores, True),
    "Token accuracy by entropy": (_draw_accuracy, True),
    "Accuracy against coverage": (_draw_coverage, True),
}
