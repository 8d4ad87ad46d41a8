"""Figure 5: tubes of the maze model and how halting heads learned; Fig. 2 shares the tubes.

A tube is the set of states within r = α√(LD) of the noise-free inner path.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain, count, cycle
from pathlib import Path
from typing import Any

from tiltrm.report import diagnosis, paper
from tiltrm.report.drawing import SERIES, STYLES, colour
from tiltrm.report.fig8_training import Curves, training_step_axis
from tiltrm.report.results import MAZE, StoredResults, percent
from tiltrm.report.section import DataTable, Panel, PaperComparison, Rows, Section
from tiltrm.train.log import current_lines

HEAD = ("panel", "method", "noise", "S or alpha", "inner step", "value", "low", "high", "bound",
        "secant bound")  # fmt: skip
TUBE = 1.5  # the alpha of the paper's deviations
MEASURES = {"halt_bce": "Halting head: cross-entropy on val",
            "halt_accuracy": "Halting head: how often right on val"}  # fmt: skip


def section(results: StoredResults) -> Section:
    """The maze's tubes, and the halting heads of the training runs."""
    found = results.diagnosis(MAZE) if MAZE in results.targets else None
    curves, rows, missing = halting_curves(results.metrics)
    tubes: Rows = [(*line, None, None) for line in tube_rows(found)] if found else []
    empty = (None,) * 4
    learned = [(what, *empty, value, *empty, run, step) for what, run, step, value in rows]
    return Section(
        "fig5", "Figure 5 · Maze-Hard: tubes, and how the halting heads learned",
        "The same tubes for the maze model. Then the halting head of each training run on its "
        "validation puzzles: binary cross-entropy, and how often its sign is right.",
        (*(panels(found) if found else ()), *curves),
        tuple(comparisons(found, paper.STABLE_NOISE, 100.0)) if found else (),
        DataTable((*HEAD, "training run", "step"), [*tubes, *learned]),
        results.missing(MAZE) + (notes(found) if found else ()) + missing,
    )  # fmt: skip


def has_curves(results: StoredResults) -> bool:
    """Whether the training runs have evaluations to draw."""
    return bool(halting_curves(results.metrics)[0])


def panels(found: Mapping[str, Any]) -> tuple[Panel, ...]:
    """Survival in the tubes, and deviations inside with the paper's bound, in two units."""
    tubes = found["stability"]["tubes"]
    stays = ", ".join(f"{t['survival']:.2f} at {t['noise']:g}" for t in tubes if t["alpha"] == TUBE)
    return (
        Panel("Survival in the tube", f"Probability of staying in the tube of alpha {TUBE:g} by "
              f"noise: {stays}.", lambda axes: diagnosis.draw_survival(axes, found)),
        Panel("Deviation inside the tube", "Mean squared deviation inside the tube by inner step, "
              "a line for every noise, the paper's bound dotted.",
              lambda axes: diagnosis.draw_deviation(axes, found)),
        Panel("The same over σ²LD, one step's noise", bound_sentence(found),
              lambda axes: diagnosis.draw_excess(axes, found)),
    )  # fmt: skip


def notes(found: Mapping[str, Any]) -> tuple[str, ...]:
    """Sentences: whether Proposition 5.1 applies at alpha = 1.5, and whether its bound holds."""
    said = sorted({t["hypothesis"] for t in found["stability"]["tubes"] if t["alpha"] == TUBE})
    rho = "; ".join(f"{name}: mean {r['mean']:.3g}, largest {r['largest']:.3g}"
                    for name, r in found["stability"]["rho"].items())  # fmt: skip
    return (*(f"{sentence[:1].upper()}{sentence[1:]}." for sentence in said),
            f"Estimates of ρ: {rho}.", bound_sentence(found))  # fmt: skip


def bound_sentence(found: Mapping[str, Any]) -> str:
    """Whether the deviations keep below the paper's bound, which comes from random secants."""
    tubes = [t for t in found["stability"]["tubes"] if t["secant_bound"] is not None]
    if not tubes:
        return "Random secants stretch at every state, so the paper's bound does not exist."
    over = [t for t in tubes if t["exceeds_secant_bound"]]
    count = f"{len(tubes)} tubes (a noise and an α each)"
    if not over:
        return ("Deviations exceed the paper's bound, from random secants, by no more than chance "
                f"in all {count}.")  # fmt: skip
    pairs = [zip(t["deviation_there"], t["secant_bound"], strict=True) for t in over]
    most = max(value / limit for pair in pairs for value, limit in pair)
    rho = found["stability"]["rho"]["power iteration"]["mean"]
    return (
        f"The paper's bound, from random secants, is violated: deviations exceed it in {len(over)} "
        f"of {count}, by up to {percent(most - 1):.1f} %. Random secants miss the directions that "
        f"stretch; power iteration finds ρ = {rho:.1f} on average."
    )


def tube_rows(found: Mapping[str, Any]) -> Rows:
    """Every tube, for the CSV file."""
    lines: Rows = []
    for tube in found["stability"]["tubes"]:
        place = (tube["noise"], tube["alpha"])
        lines.append(("survival", None, *place, None, tube["survival"], *(None,) * 4))
        nothing = [None] * len(tube["deviation"])
        columns = (tube["deviation"], tube["bound"] or nothing, tube["secant_bound"] or nothing)
        lines += [
            ("deviation", None, *place, m, value, None, None, *bounds)
            for m, (value, *bounds) in enumerate(zip(*columns, strict=True), 1)
        ]
    return lines


def comparisons(
    found: Mapping[str, Any], noise: float, theirs: float | None
) -> list[PaperComparison]:
    """Percent of paths that stay in each tube at this noise; `theirs` is the paper's number."""
    return [
        PaperComparison(f"stays in the tube of α = {t['alpha']:g} at σ = {noise:g}", theirs,
                        100 * t["survival"])
        for t in found["stability"]["tubes"] if t["noise"] == noise
    ]  # fmt: skip


def halting_curves(files: Sequence[Path]) -> tuple[list[Panel], Rows, tuple[str, ...]]:
    """From metrics.jsonl: panels, rows (measure, run, training step, value), what is missing."""
    runs = {name: current_lines(path, "evaluation") for name, path in _by_name(files).items()}
    missing = [f"{name}: no evaluation is on record." for name, run in runs.items() if not run]
    if not files:
        missing.append("The training curves are not drawn: give --metrics RUN/metrics.jsonl, once "
                       "for each training run.")  # fmt: skip
    runs = {name: run for name, run in runs.items() if run}
    rows: Rows = []
    found = []
    for key, title in MEASURES.items() if runs else ():
        scale = 100.0 if key == "halt_accuracy" else 1.0
        curves = {
            name: [(line.step, scale * line.number("val", key)) for line in run]
            for name, run in runs.items()
        }
        rows += [(key, name, *point) for name, curve in curves.items() for point in curve]
        ends = ", ".join(f"{name} {curve[-1][1]:.4g}" for name, curve in curves.items())
        found.append(Panel(title, f"{title} by training step; at the end: {ends}.",
                           partial(_draw_curves, curves, key)))  # fmt: skip
    return found, rows, tuple(missing)


def _by_name(files: Sequence[Path]) -> dict[str, Path]:
    """Runs by their task; if that name is taken, with their folder, then with a number."""
    found: dict[str, Path] = {}
    for path in files:
        folder = path.parent.resolve().name
        begun = current_lines(path, "start")
        settings = next((line.values.get("settings") for line in begun), None)
        task = str((isinstance(settings, dict) and settings.get("task")) or folder)
        numbered = (f"{task} ({folder}, {n})" for n in count(2))
        names = chain((task, f"{task} ({folder})"), numbered)
        found[next(name for name in names if name not in found)] = path
    return found


def _draw_curves(curves: Curves, key: str, axes: Any) -> None:
    for series, (name, curve) in zip(cycle(SERIES), curves.items(), strict=False):
        axes.plot(*zip(*curve, strict=True), marker=STYLES[series].marker, color=colour(series),
                  label=name)  # fmt: skip
    training_step_axis(axes)
    axes.set(ylabel="sign of the logit right, %" if key == "halt_accuracy" else "nats")
    if key == "halt_bce":
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
    axes.legend()
