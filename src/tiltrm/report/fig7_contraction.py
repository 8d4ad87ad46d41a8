"""Figure 7: clouds that solve a puzzle sharpen towards their end."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from tiltrm.diagnose.entropy import puzzle_mean
from tiltrm.evaluate.shards import Shard
from tiltrm.report import paper
from tiltrm.report.drawing import colour
from tiltrm.report.fig4_entropy import COLUMNS, clouds, uncertainty
from tiltrm.report.results import StoredResults
from tiltrm.report.section import DataTable, Panel, PaperComparison, Section

HEAD = ("puzzle", "solved", "path entropy", "terminal entropy", "contraction")
OUTCOMES = ((False, "unsolved", "wrong"), (True, "solved", "adaptive"))  # and their colours
BARS = 32
PuzzleRow = tuple[int, bool, float, float, float]  # as in HEAD


def section(results: StoredResults) -> Section:
    """Contraction by outcome on the deterministic failures."""
    shards, failed = clouds(results)
    outcomes = uncertainty(shards, failed).figures().get("contraction", {})
    comparisons = tuple(
        PaperComparison(f"mean contraction, {word} ({values['puzzles']:,} puzzles)",
                        paper.CONTRACTION[word], values["mean"], "", digits=3)
        for word, values in sorted(outcomes.items())
    )  # fmt: skip
    rows = _rows(shards, failed)
    means = "; ".join(f"{c.what} {c.ours:.3f}" for c in comparisons)
    panels = (
        Panel("Contraction by outcome", f"Histogram. {means}.", partial(_draw_bars, rows)),
        Panel("Entropy along the path and at the end", "One mark a puzzle; above the diagonal the "
              "cloud sharpened towards its end.", partial(_draw_scatter, rows)),
    )  # fmt: skip
    return Section(
        "fig7", "Figure 7 · Clouds that solve a puzzle contract",
        "Contraction is the mean entropy along the path less that at the end, over free cells: "
        "above 0 the cloud sharpened. On the puzzles that the deterministic model fails, by "
        "whether guided MAP solves them.",
        panels if rows else (), comparisons, DataTable(HEAD, rows),
        () if rows else ("Not drawn: the deterministic model fails none of these puzzles.",),
    )  # fmt: skip


def _rows(shards: Sequence[Shard], among: np.ndarray[Any, Any]) -> list[PuzzleRow]:
    """One row for each of these puzzles, by number."""
    rows: list[PuzzleRow] = []
    for shard in shards:
        kept = np.isin(shard["puzzle"], among)
        terminal, path, right, free = (torch.tensor(shard[name][kept]) for name in COLUMNS)
        end, along = (puzzle_mean(value.double(), free) for value in (terminal, path))
        columns = (right.all(-1), along, end, along - end)
        rows += zip(shard["puzzle"][kept].tolist(), *(c.tolist() for c in columns), strict=True)
    return sorted(rows, key=lambda row: row[0])


def _draw_bars(rows: Sequence[PuzzleRow], axes: Any) -> None:
    values = [row[-1] for row in rows]
    edges = np.linspace(min(values), max(values) + 1e-9, BARS + 1)
    for solved, word, name in OUTCOMES:
        some = np.array([row[-1] for row in rows if row[1] == solved])
        if not len(some):
            continue
        share = 100.0 * np.histogram(some, edges)[0] / len(some)
        axes.stairs(share, edges, fill=True, color=colour(name), alpha=0.3)
        axes.stairs(share, edges, color=colour(name), linewidth=1.3,
                    label=f"{word}, {len(some):,} puzzles")  # fmt: skip
        axes.axvline(some.mean(), color=colour(name), linestyle="--", linewidth=1)
    axes.set(xlabel="mean contraction of a puzzle", ylabel="share of its outcome, %")
    axes.legend()


def _draw_scatter(rows: Sequence[PuzzleRow], axes: Any) -> None:
    top = 1.05 * max(0.05, *(max(path, terminal) for _, _, path, terminal, _ in rows))
    axes.plot([0, top], [0, top], ":", color=colour("soft"), linewidth=1)
    for solved, word, name in OUTCOMES:
        mine = [row for row in rows if row[1] == solved]
        axes.scatter(
            [row[3] for row in mine], [row[2] for row in mine], s=12, color=colour(name),
            marker="o" if solved else "x", alpha=0.55, linewidths=0 if solved else 0.9, label=word,
        )  # fmt: skip
    axes.set(xlabel="terminal entropy, mean of a puzzle", ylabel="entropy along the path",
             xlim=(-0.01, top), ylim=(-0.01, top))  # fmt: skip
    axes.legend(loc="lower right")
