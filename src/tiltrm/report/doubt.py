"""Figs. 4 and 7: what the entropy of the cloud says about its cells and its puzzles."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tiltrm.diagnose.entropy import Uncertainty, puzzle_mean
from tiltrm.evaluate.job import Job
from tiltrm.evaluate.shards import Shard
from tiltrm.evaluate.summary import DF, Spread, failures
from tiltrm.report import paper
from tiltrm.report.evidence import SUDOKU, Evidence, percent, spread_percent, table1
from tiltrm.report.figures import ACCURACY, band
from tiltrm.report.grid import examples
from tiltrm.report.sheet import Cell, Compared, Panel, Sheet, Table
from tiltrm.report.style import paint
from tiltrm.report.table1 import TEST

NAMES = {"terminal": "H, terminal", "path": "H̄, along the path"}
LOOK = {(TEST, "terminal"): "guided", (TEST, "path"): "unguided",
        (DF, "terminal"): "adaptive", (DF, "path"): "deterministic"}  # fmt: skip
OUTCOMES = ((False, "unsolved", "wrong"), (True, "solved", "adaptive"))  # and their colours
BARS = 32
COLUMNS = ("terminal_entropy", "path_entropy", "cell_right", "free")


def plan(evidence: Evidence, part: str) -> list[Job]:
    """What must be computed: the part of Table 1 that kept its cells, and who fails at all."""
    jobs = table1(evidence, part)
    return [job for job in jobs if job.method == "deterministic" or job.options["cells"]]


def clouds(evidence: Evidence) -> tuple[list[Shard], np.ndarray[Any, Any]]:
    """The guided runs that kept their cells, a fold each, and the deterministic failures."""
    shards = evidence.read(plan(evidence, SUDOKU))
    (failed, _), = failures(shards).values()  # fmt: skip
    return [s for s in shards if s.job.options.get("cells")], failed


def uncertainty(shards: Sequence[Shard], among: np.ndarray[Any, Any] | None) -> Uncertainty:
    """Entropies of these puzzles against which cells were right."""
    found = Uncertainty()
    for shard in shards:
        kept = slice(None) if among is None else np.isin(shard["puzzle"], among)
        terminal, path, right, free = (torch.tensor(shard[name][kept]) for name in COLUMNS)
        if len(right):
            found.add(terminal.float(), path.float(), right, free, torch.ones_like(right))
    return found


def fig4(evidence: Evidence) -> Sheet:
    """Two puzzles in colours, and token accuracy by entropy."""
    shards, failed = clouds(evidence)
    splits = {TEST: None, DF: failed}
    whole = {split: uncertainty(shards, among).figures() for split, among in splits.items()}
    whole = {split: found for split, found in whole.items() if "binned_accuracy" in found}
    compared = [line for split in whole for line in _compared(split, shards, splits[split])]
    rows: list[tuple[Cell, ...]] = [
        (split, name, b["low"], b["high"], b["cases"], b["share"], *b["interval"])
        for split, found in whole.items()
        for name, bins in found["binned_accuracy"].items()
        for b in bins
    ]
    puzzles, notes = examples(shards)
    said = "; ".join(
        f"{split}: token AUROC {found['token_auroc']['terminal']:.3f}"
        for split, found in whole.items()
    )
    panel = Panel("Token accuracy by entropy", f"Accuracy of cells by entropy. {said}.",
                  partial(_draw_accuracy, whole))  # fmt: skip
    return Sheet(
        "fig4", "Figure 4 · Entropy tells which cells to doubt",
        "Two puzzles coloured by the entropy of the cloud along its path: given cells are white, "
        "wrong cells are struck through. Then the accuracy of free cells by entropy, with 95 % "
        "intervals. Abstaining leaves out the tenth of puzzles with the highest mean entropy.",
        (*puzzles, panel), tuple(compared),
        Table(("split", "entropy", "low", "high", "cells", "accuracy", "95 % low", "95 % high"),
              rows), notes,
    )  # fmt: skip


def _compared(
    split: str, shards: Sequence[Shard], among: np.ndarray[Any, Any] | None
) -> list[Compared]:
    """Each a mean over folds with their standard deviation, as the paper gives it."""
    runs = [uncertainty([shard], among).figures() for shard in shards]
    runs = [run for run in runs if "token_auroc" in run]
    ranked = [v for run in runs if (v := run["token_auroc"]["terminal"]) == v]  # not NaN
    keeps = [run["puzzles_by_entropy"]["terminal"]["abstain_on_top"]["accuracy"] for run in runs]
    auroc, theirs = Spread.of(ranked) if ranked else None, paper.TOKEN_AUROC[split]
    kept, published = spread_percent(Spread.of(keeps)), paper.ABSTAINING[split]
    return [
        Compared(f"{split}, token AUROC of H", theirs.mean, auroc and auroc.mean, "",
                 theirs.spread, auroc and auroc.sd, digits=3),
        Compared(f"{split}, solved after abstaining on the top tenth of H", published.mean,
                 kept[0], "%", published.spread, kept[1]),
    ]  # fmt: skip


def _draw_accuracy(whole: dict[str, dict[str, Any]], axes: Any) -> None:
    for split, found in whole.items():
        for name, bins in found["binned_accuracy"].items():
            middle = [(b["low"] + b["high"]) / 2 for b in bins]
            values = [(b["share"], *b["interval"]) for b in bins]
            band(axes, middle, values, LOOK[split, name], f"{split}, {NAMES[name]}",
                 dash="-" if name == "terminal" else "--")  # fmt: skip
    axes.set(xlabel="entropy of a cell", ylabel="share of cells right", ylim=ACCURACY)
    axes.legend()


def fig7(evidence: Evidence) -> Sheet:
    """Contraction by outcome on the deterministic failures."""
    shards, failed = clouds(evidence)
    found = uncertainty(shards, failed).figures()
    outcomes = found.get("contraction", {})
    points = _points(shards, failed)
    compared = tuple(
        Compared(f"mean contraction, {word} ({values['puzzles']:,} puzzles)",
                 paper.CONTRACTION[word], values["mean"], "", digits=3)
        for word, values in sorted(outcomes.items())
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (int(p), bool(s), float(path), float(end), float(path - end))
        for p, s, end, path in zip(*points, strict=True)
    ]
    said = "; ".join(f"{c.what} {c.ours:.3f}" for c in compared)
    panels = (
        Panel("Contraction by outcome", f"Histogram. {said}.", partial(_draw_bars, points)),
        Panel("Entropy along the path and at the end", "One mark a puzzle; above the diagonal the "
              "cloud sharpened towards its end.", partial(_draw_scatter, points)),
    )  # fmt: skip
    return Sheet(
        "fig7", "Figure 7 · Clouds that solve a puzzle contract",
        "Contraction is the mean entropy along the path less that at the end, over free cells: "
        "above 0 the cloud sharpened. On the puzzles that the deterministic model fails, by "
        "whether guided MAP solves them.",
        panels if rows else (), compared,
        Table(("puzzle", "solved", "path entropy", "terminal entropy", "contraction"), rows),
        () if rows else ("Not drawn: the deterministic model fails none of these puzzles.",),
    )  # fmt: skip


Points = tuple[Tensor, Tensor, Tensor, Tensor]  # puzzle, solved, terminal, path


def _points(shards: Sequence[Shard], among: np.ndarray[Any, Any]) -> Points:
    parts = []
    for shard in shards:
        kept = np.isin(shard["puzzle"], among)
        terminal, path, right, free = (torch.tensor(shard[name][kept]) for name in COLUMNS)
        each = [puzzle_mean(value.double(), free) for value in (terminal, path)]
        parts.append((torch.from_numpy(shard["puzzle"][kept]), right.all(-1), *each))
    joined = [torch.cat(column) for column in zip(*parts, strict=True)]
    order = joined[0].argsort(stable=True)
    puzzle, solved, terminal, path = (column[order] for column in joined)
    return puzzle, solved, terminal, path


def _draw_bars(points: Points, axes: Any) -> None:
    _, solved, terminal, path = points
    contraction = path - terminal
    edges = np.linspace(float(contraction.min()), float(contraction.max()) + 1e-9, BARS + 1)
    for yes, word, colour in OUTCOMES:
        some = contraction[solved == yes].numpy()
        if not len(some):
            continue
        share = percent(1.0) * np.histogram(some, edges)[0] / len(some)
        axes.stairs(share, edges, fill=True, color=paint(colour), alpha=0.3)
        axes.stairs(share, edges, color=paint(colour), linewidth=1.3,
                    label=f"{word}, {len(some):,} puzzles")  # fmt: skip
        axes.axvline(some.mean(), color=paint(colour), linestyle="--", linewidth=1)
    axes.set(xlabel="mean contraction of a puzzle", ylabel="share of its outcome, %")
    axes.legend()


def _draw_scatter(points: Points, axes: Any) -> None:
    _, solved, terminal, path = points
    top = 1.05 * max(0.05, float(terminal.max()), float(path.max()))
    axes.plot([0, top], [0, top], ":", color=paint("soft"), linewidth=1)
    for yes, word, colour in OUTCOMES:
        some, mark = solved == yes, "o" if yes else "x"
        axes.scatter(
            terminal[some], path[some], s=12, marker=mark, color=paint(colour), alpha=0.55,
            linewidths=0 if yes else 0.9, label=word,
        )  # fmt: skip
    axes.set(xlabel="terminal entropy, mean of a puzzle", ylabel="entropy along the path",
             xlim=(-0.01, top), ylim=(-0.01, top))  # fmt: skip
    axes.legend(loc="lower right")
