"""Figure 8: guided exploration at checkpoints of a training run, from its scan.jsonl."""

from functools import partial
from pathlib import Path
from typing import Any

from tiltrm.errors import DataError
from tiltrm.report import paper
from tiltrm.report.drawing import STYLES, colour
from tiltrm.report.results import StoredResults, percent
from tiltrm.report.section import DataTable, Panel, PaperComparison, Rows, Section
from tiltrm.train.log import METRICS, current_lines

TrainingCurve = list[tuple[int, float]]  # (training step, value)
Curves = dict[str, TrainingCurve]
METHODS = ("guided", "unguided", "deterministic")
HEAD = ("way", "step", "exact")


def section(results: StoredResults) -> Section:
    """Accuracy by training step, and the training loss."""
    title = "Figure 8 · Guided exploration while the model is still learning"
    reading = (
        "Three ways of inference with the weights of the moment, on the same validation puzzles. "
        "The dotted lines mark where the deterministic model ends, and where guided gets there."
    )
    if results.scan is None:
        note = "Not drawn: give --scan RUN/scan.jsonl, which tiltrm train writes with scan.every."
        return Section("fig8", title, reading, (), (), DataTable(HEAD, []), (note,))
    curves, losses, notes = read_scan(results.scan)
    ends = ", ".join(f"{STYLES[way].label} {curve[-1][1]:.1f}" for way, curve in curves.items())
    panels = [Panel("Exactly solved by training step",
                    f"Percent solved at the last checkpoint: {ends}",
                    partial(_draw_curves, curves))]  # fmt: skip
    if losses:
        spoken = f"Training loss from {losses[0][1]:.3g} to {losses[-1][1]:.3g}."
        panels.append(Panel("Training loss", spoken, partial(_draw_loss, losses)))
    rows: Rows = [(way, *point) for way, curve in curves.items() for point in curve]
    rows += [("training loss", *point) for point in losses]
    comparisons = (
        PaperComparison("times earlier that guided reaches the deterministic end",
                        paper.TIMES_EARLIER, _times_earlier(curves), "×"),
        PaperComparison("checkpoints", paper.CHECKPOINTS, len(curves["guided"]), "", digits=0),
    )  # fmt: skip
    return Section("fig8", title, reading, tuple(panels), comparisons, DataTable(HEAD, rows), notes)


def read_scan(path: Path) -> tuple[Curves, TrainingCurve, tuple[str, ...]]:
    """Percent solved by method, the training loss from metrics.jsonl, and what is missing."""
    found = current_lines(path, "scan")
    if not found:
        raise DataError(
            f"{path}: expected at least one scan, got none; name the scan.jsonl of a training run"
        )
    curves = {
        way: [(line.step, percent(line.number(way, "exact"))) for line in found] for way in METHODS
    }
    metrics = path.with_name(METRICS)
    if not metrics.exists():
        note = f"The training loss is not drawn: there is no {METRICS} beside the scan."
        return curves, [], (note,)
    losses = [(line.step, line.number("loss")) for line in current_lines(metrics, "train")]
    return curves, losses, ()


def _crossings(curves: Curves) -> tuple[float, int, int | None]:
    """The deterministic model's last value, and the first steps at which it and guided have it."""
    goal = curves["deterministic"][-1][1]
    first = {way: next((s for s, v in curves[way] if v >= goal), None) for way in METHODS}
    return goal, first["deterministic"] or 0, first["guided"]


def _times_earlier(curves: Curves) -> float | None:
    _, deterministic, guided = _crossings(curves)
    return deterministic / guided if guided else None


def _draw_curves(curves: Curves, axes: Any) -> None:
    for way, curve in curves.items():
        style = STYLES[way]
        axes.plot(*zip(*curve, strict=True), color=style.colour, marker=style.marker,
                  linestyle=style.dash, label=style.label)  # fmt: skip
    goal, _, guided = _crossings(curves)
    axes.axhline(goal, color=colour("soft"), linestyle=":", linewidth=1)
    if guided:
        axes.axvline(guided, color=colour("soft"), linestyle=":", linewidth=1)
    training_step_axis(axes)
    axes.set(ylabel="exactly solved, %", ylim=(-2, 102))
    axes.legend()


def _draw_loss(losses: TrainingCurve, axes: Any) -> None:
    axes.plot(*zip(*losses, strict=True), color=colour("deterministic"), linewidth=1)
    training_step_axis(axes)
    axes.set(ylabel="loss on the training rows")


def training_step_axis(axes: Any) -> None:
    """Let the x axis begin at step 0, so that twice as early is half as far."""
    axes.set(xlabel="training step", xlim=(-0.02 * axes.get_xlim()[1], None))
    axes.locator_params(axis="x", nbins=6)
    axes.xaxis.set_major_formatter("{x:,.0f}")
