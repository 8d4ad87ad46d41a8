"""What a training run left: metrics.jsonl (Fig. 5, right) and scan.jsonl (Fig. 8)."""

from collections.abc import Sequence
from functools import partial
from itertools import chain, count, cycle
from pathlib import Path
from typing import Any

from tiltrm.errors import DataError
from tiltrm.report import paper
from tiltrm.report.evidence import Evidence, percent
from tiltrm.report.sheet import Cell, Compared, Panel, Sheet, Table
from tiltrm.report.style import LOOKS, SERIES, paint
from tiltrm.train.log import METRICS, current_lines

Line = list[tuple[int, float]]  # (training step, value)
Lines = dict[str, Line]
WAYS = ("guided", "unguided", "deterministic")


def curves(files: Sequence[Path]) -> tuple[list[Panel], list[tuple[Cell, ...]], tuple[str, ...]]:
    """Panels of the halting head, rows (what, run, training step, value), and what is missing."""
    runs = {name: current_lines(path, "evaluation") for name, path in _called(files).items()}
    missing = [f"{name}: no evaluation is on record." for name, run in runs.items() if not run]
    if not files:
        missing.append("The training curves are not drawn: give --metrics RUN/metrics.jsonl, once "
                       "for each training run.")  # fmt: skip
    runs = {name: run for name, run in runs.items() if run}
    kinds = {"halt_bce": "Halting head: cross-entropy on val",
             "halt_accuracy": "Halting head: how often right on val"}  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    panels = []
    for key, title in kinds.items() if runs else ():
        scale = 100.0 if key == "halt_accuracy" else 1.0
        lines = {
            name: [(line.step, scale * line.number("val", key)) for line in run]
            for name, run in runs.items()
        }
        rows += [(key, name, *point) for name, line in lines.items() for point in line]
        ends = ", ".join(f"{name} {line[-1][1]:.4g}" for name, line in lines.items())
        panels.append(Panel(title, f"{title} by training step; at the end: {ends}.",
                            partial(_draw_curves, lines, key)))  # fmt: skip
    return panels, rows, tuple(missing)


def _called(files: Sequence[Path]) -> dict[str, Path]:
    """Runs by the task they were for, where that is taken with their folder, then a number."""
    found: dict[str, Path] = {}
    for path in files:
        folder = path.parent.resolve().name
        settings = next(
            (line.values.get("settings") for line in current_lines(path, "start")), None
        )
        task = str((isinstance(settings, dict) and settings.get("task")) or folder)
        more = (f"{task} ({folder}, {n})" for n in count(2))
        names = chain((task, f"{task} ({folder})"), more)
        found[next(name for name in names if name not in found)] = path
    return found


def _draw_curves(lines: Lines, key: str, axes: Any) -> None:
    for look, (name, line) in zip(cycle(SERIES), lines.items(), strict=False):
        axes.plot(*zip(*line, strict=True), marker=LOOKS[look].mark, color=paint(look), label=name)
    _by_step(axes)
    axes.set(ylabel="sign of the logit right, %" if key == "halt_accuracy" else "nats")
    if key == "halt_bce":
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
    axes.legend()


def fig8(evidence: Evidence) -> Sheet:
    """The checkpoint scan."""
    title = "Figure 8 · Guided exploration while the model is still learning"
    reading = (
        "Three ways of inference with the weights of the moment, on the same validation puzzles. "
        "The dotted lines mark where the deterministic model ends, and where guided gets there."
    )
    if evidence.scan is None:
        note = "Not drawn: give --scan RUN/scan.jsonl, which tiltrm train writes with scan.every."
        return Sheet("fig8", title, reading, (), (), Table(("way", "step", "exact"), []), (note,))
    lines, losses, notes = scanned(evidence.scan)
    panels = [Panel("Exactly solved by training step", _spoken(lines), partial(_draw_scan, lines))]
    if losses:
        said = f"Training loss from {losses[0][1]:.3g} to {losses[-1][1]:.3g}."
        panels.append(Panel("Training loss", said, partial(_draw_loss, losses)))
    rows: list[tuple[Cell, ...]] = [(w, *point) for w, line in lines.items() for point in line]
    rows += [("training loss", *point) for point in losses]
    compared = (
        Compared("times earlier that guided reaches the deterministic end", paper.TIMES_EARLIER,
                 _earlier(lines), "×"),
        Compared("checkpoints", paper.CHECKPOINTS, len(lines["guided"]), "", digits=0),
    )  # fmt: skip
    return Sheet("fig8", title, reading, tuple(panels), compared,
                 Table(("way", "step", "exact"), rows), notes)  # fmt: skip


def scanned(path: Path) -> tuple[Lines, Line, tuple[str, ...]]:
    """Percent solved by way, the training loss beside them, and what is missing."""
    found = current_lines(path, "scan")
    if not found:
        raise DataError(
            f"{path}: expected at least one scan, got none; name the scan.jsonl of a training run"
        )
    lines = {
        way: [(line.step, percent(line.number(way, "exact"))) for line in found] for way in WAYS
    }
    metrics = path.with_name(METRICS)
    if not metrics.exists():
        note = f"The training loss is not drawn: there is no {METRICS} beside the scan."
        return lines, [], (note,)
    return lines, [(line.step, line.number("loss")) for line in current_lines(metrics, "train")], ()


def _crossings(lines: Lines) -> tuple[float, int, int | None]:
    """Where the deterministic model ends; the first steps at which it and guided are there."""
    goal = lines["deterministic"][-1][1]
    first = {w: next((s for s, v in lines[w] if v >= goal), None) for w in WAYS}
    return goal, first["deterministic"] or 0, first["guided"]


def _earlier(lines: Lines) -> float | None:
    _, plain, guided = _crossings(lines)
    return plain / guided if guided else None


def _spoken(lines: Lines) -> str:
    return "Percent solved at the last checkpoint: " + ", ".join(
        f"{LOOKS[way].label} {line[-1][1]:.1f}" for way, line in lines.items()
    )


def _draw_scan(lines: Lines, axes: Any) -> None:
    for way, line in lines.items():
        look = LOOKS[way]
        axes.plot(*zip(*line, strict=True), color=look.paint, marker=look.mark, linestyle=look.dash,
                  label=look.label)  # fmt: skip
    goal, _, guided = _crossings(lines)
    axes.axhline(goal, color=paint("soft"), linestyle=":", linewidth=1)
    if guided:
        axes.axvline(guided, color=paint("soft"), linestyle=":", linewidth=1)
    _by_step(axes)
    axes.set(ylabel="exactly solved, %", ylim=(-2, 102))
    axes.legend()


def _draw_loss(losses: Line, axes: Any) -> None:
    axes.plot(*zip(*losses, strict=True), color=paint("deterministic"), linewidth=1)
    _by_step(axes)
    axes.set(ylabel="loss on the training rows")


def _by_step(axes: Any) -> None:
    """An axis of training steps from 0, so that twice as early is half as far."""
    axes.set(xlabel="training step", xlim=(-0.02 * axes.get_xlim()[1], None))
    axes.locator_params(axis="x", nbins=6)
    axes.xaxis.set_major_formatter("{x:,.0f}")
