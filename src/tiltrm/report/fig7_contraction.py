"""Figure 7: clouds that solve a puzzle sharpen towards their end."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tiltrm.diagnose.entropy import puzzle_mean
from tiltrm.evaluate.shards import Shard
from tiltrm.report import paper
from tiltrm.report.drawing import colour
from tiltrm.report.fig4_entropy import COLUMNS, clouds, uncertainty
from tiltrm.report.results import StoredResults, percent
from tiltrm.report.section import DataTable, Panel, PaperComparison, Rows, Section

HEAD = ("puzzle", "solved", "path entropy", "terminal entropy", "contraction")
OUTCOMES = ((False, "unsolved", "wrong"), (True, "solved", "adaptive"))  # and their colours
BARS = 32


def section(results: StoredResults) -> Section:
    """Contraction by outcome on the deterministic failures."""
    shards, failed = clouds(results)
    outcomes = uncertainty(shards, failed).figures().get("contraction", {})
    points = _entropies(shards, failed)
    comparisons = tuple(
        PaperComparison(f"mean contraction, {word} ({values['puzzles']:,} puzzles)",
                        paper.CONTRACTION[word], values["mean"], "", digits=3)
        for word, values in sorted(outcomes.items())
    )  # fmt: skip
    rows: Rows = [
        (int(p), bool(s), float(path), float(end), float(path - end))
        for p, s, end, path in zip(*points, strict=True)
    ]
    means = "; ".join(f"{c.what} {c.ours:.3f}" for c in comparisons)
    panels = (
        Panel("Contraction by outcome", f"Histogram. {means}.", partial(_draw_bars, points)),
        Panel("Entropy along the path and at the end", "One mark a puzzle; above the diagonal the "
              "cloud sharpened towards its end.", partial(_draw_scatter, points)),
    )  # fmt: skip
    return Section(
        "fig7", "Figure 7 · Clouds that solve a puzzle contract",
        "Contraction is the mean entropy along the path less that at the end, over free cells: "
        "above 0 the cloud sharpened. On the puzzles that the deterministic model fails, by "
        "whether guided MAP solves them.",
        panels if rows else (), comparisons, DataTable(HEAD, rows),
        () if rows else ("Not drawn: the deterministic model fails none of these puzzles.",),
    )  # fmt: skip


PuzzleEntropies = tuple[Tensor, Tensor, Tensor, Tensor]  # puzzle, solved, terminal, path


def _entropies(shards: Sequence[Shard], among: np.ndarray[Any, Any]) -> PuzzleEntropies:
    columns = []
    for shard in shards:
        kept = np.isin(shard["puzzle"], among)
        terminal, path, right, free = (torch.tensor(shard[name][kept]) for name in COLUMNS)
        each = [puzzle_mean(value.double(), free) for value in (terminal, path)]
        columns.append((torch.from_numpy(shard["puzzle"][kept]), right.all(-1), *each))
    joined = [torch.cat(column) for column in zip(*columns, strict=True)]
    order = joined[0].argsort(stable=True)
    puzzle, solved, terminal, path = (column[order] for column in joined)
    return puzzle, solved, terminal, path


def _draw_bars(points: PuzzleEntropies, axes: Any) -> None:
    _, solved, terminal, path = points
    contraction = path - terminal
    edges = np.linspace(float(contraction.min()), float(contraction.max()) + 1e-9, BARS + 1)
    for yes, word, name in OUTCOMES:
        some = contraction[solved == yes].numpy()
        if not len(some):
            continue
        share = percent(1.0) * np.histogram(some, edges)[0] / len(some)
        axes.stairs(share, edges, fill=True, color=colour(name), alpha=0.3)
        axes.stairs(share, edges, color=colour(name), linewidth=1.3,
                    label=f"{word}, {len(some):,} puzzles")  # fmt: skip
        axes.axvline(some.mean(), color=colour(name), linestyle="--", linewidth=1)
    axes.set(xlabel="mean contraction of a puzzle", ylabel="share of its outcome, %")
    axes.legend()


def _draw_scatter(points: PuzzleEntropies, axes: Any) -> None:
    _, solved, terminal, path = points
    top = 1.05 * max(0.05, float(terminal.max()), float(path.max()))
    axes.plot([0, top], [0, top], ":", color=colour("soft"), linewidth=1)
    for yes, word, name in OUTCOMES:
        some, mark = solved == yes, "o" if yes else "x"
        axes.scatter(
            terminal[some], path[some], s=12, marker=mark, color=colour(name), alpha=0.55,
            linewidths=0 if yes else 0.9, label=word,
        )  # fmt: skip
    axes.set(xlabel="terminal entropy, mean of a puzzle", ylabel="entropy along the path",
             xlim=(-0.01, top), ylim=(-0.01, top))  # fmt: skip
    axes.legend(loc="lower right")
