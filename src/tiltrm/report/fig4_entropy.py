"""Figure 4: the cloud's entropy tells which cells are wrong and which puzzles to abstain on."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tiltrm.diagnose.entropy import TENTH, Uncertainty
from tiltrm.diagnose.selective import Cut, abstain_top, keep_up_to
from tiltrm.evaluate.job import Job
from tiltrm.evaluate.shards import Shard
from tiltrm.evaluate.summary import DF, Spread, failures
from tiltrm.evaluate.target import read_for
from tiltrm.report import paper
from tiltrm.report.diagnosis import ACCURACY, accuracy_bins
from tiltrm.report.drawing import STYLES, colour, line_with_band
from tiltrm.report.results import SUDOKU, TEST, StoredResults, percent, spread_percent
from tiltrm.report.section import DataTable, Panel, PaperComparison, Rows, Section
from tiltrm.tasks import by_name

HEAD = ("split", "entropy", "low", "high", "cells", "accuracy", "95 % low", "95 % high")
LABELS = {"terminal": "H, terminal", "path": "H̄, along the path"}
METHOD_COLOURS = {(TEST, "terminal"): "guided", (TEST, "path"): "unguided",
                  (DF, "terminal"): "adaptive", (DF, "path"): "deterministic"}  # fmt: skip
COLUMNS = ("terminal_entropy", "path_entropy", "cell_right", "free")
OPACITY = 0.85  # of the strongest shade
FULL = 0.5  # the entropy of that shade; higher ones have it too
SCALE = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)


def jobs(results: StoredResults, benchmark: str) -> list[Job]:
    """The jobs of Table 1 that kept their cells, and those that define the failures."""
    found = results.table1_jobs(benchmark)
    return [job for job in found if job.method == "deterministic" or job.options["cells"]]


def clouds(results: StoredResults) -> tuple[list[Shard], np.ndarray[Any, Any]]:
    """The guided runs that kept their cells, one for each fold, and the deterministic failures."""
    shards = results.read(jobs(results, SUDOKU))
    (failed, _), = failures(shards).values()  # fmt: skip
    return [s for s in shards if s.job.options.get("cells")], failed


def uncertainty(shards: Sequence[Shard], among: np.ndarray[Any, Any] | None) -> Uncertainty:
    """Entropies of these puzzles (None: all) against which cells were right."""
    found = Uncertainty()
    for shard in shards:
        kept = slice(None) if among is None else np.isin(shard["puzzle"], among)
        terminal, path, right, free = (torch.tensor(shard[name][kept]) for name in COLUMNS)
        if len(right):
            found.add(terminal.float(), path.float(), right, free, torch.ones_like(right))
    return found


def section(results: StoredResults) -> Section:
    """Two puzzles coloured by entropy, and token accuracy by entropy."""
    shards, failed = clouds(results)
    splits = {TEST: None, DF: failed}
    whole = {split: uncertainty(shards, among).figures() for split, among in splits.items()}
    whole = {split: found for split, found in whole.items() if "binned_accuracy" in found}
    folds = {split: [uncertainty([shard], splits[split]) for shard in shards] for split in whole}
    comparisons = [
        line for split in whole for line in _comparisons(split, folds[split], folds[TEST])
    ]
    rows: Rows = [
        (split, name, b["low"], b["high"], b["cases"], b["share"], *b["interval"])
        for split, found in whole.items()
        for name, bins in found["binned_accuracy"].items()
        for b in bins
    ]
    puzzles, notes = example_panels(shards)
    ranked = "; ".join(
        f"{split}: token AUROC {found['token_auroc']['terminal']:.3f}"
        for split, found in whole.items()
    )
    accuracy = Panel("Token accuracy by entropy", f"Accuracy of cells by entropy. {ranked}.",
                     partial(_draw_accuracy, whole))  # fmt: skip
    return Section(
        "fig4", "Figure 4 · Entropy tells which cells to doubt",
        "Two puzzles coloured by the entropy of the cloud along its path: given cells are white, "
        "wrong cells are struck through. Then the accuracy of free cells by entropy, with 95 % "
        "intervals. Abstaining leaves out what lies above the upper decile of Test's mean entropy, "
        "on both splits: of DF a tenth could not be enough, since more of it is unsolved.",
        (*puzzles, accuracy), tuple(comparisons), DataTable(HEAD, rows), notes,
    )  # fmt: skip


def _comparisons(
    split: str, folds: Sequence[Uncertainty], whole: Sequence[Uncertainty]
) -> list[PaperComparison]:
    """Token AUROC and the accuracy after abstaining: means and deviations over folds.

    Puzzles above the upper decile of H in the `whole` fold are left out; ties stay. The decile of
    DF itself cannot be meant: the paper solves 85.9 % of DF, so leaving out a tenth gives 95.4 % at
    most, and it reports 99.7. A fold that keeps no puzzle counts as coverage 0.
    """
    runs = [run for fold in folds if "token_auroc" in (run := fold.figures())]
    ranked = [v for run in runs if (v := run["token_auroc"]["terminal"]) == v]  # not NaN
    auroc, theirs = Spread.of(ranked) if ranked else None, paper.TOKEN_AUROC[split]
    pairs = [pair for pair in zip(folds, whole, strict=True) if pair[0].puzzles]
    cuts = [_below_the_decile(*pair) for pair in pairs]
    some = [cut.accuracy for cut in cuts if cut.coverage]
    kept, published = spread_percent(Spread.of(some) if some else None), paper.ABSTAINING[split]
    coverage = percent(Spread.of([cut.coverage for cut in cuts]).mean)
    empty = len(cuts) - len(some)
    what = f"{split}, solved of the {coverage:.0f} % kept below the top tenth of Test's H"
    what += f" (in {empty} of {len(cuts)} folds none)" if empty else ""
    return [
        PaperComparison(f"{split}, token AUROC of H", theirs.mean, auroc and auroc.mean, "",
                        theirs.spread, auroc and auroc.sd, digits=3),
        PaperComparison(what, published.mean, kept[0], "%", published.spread, kept[1]),
    ]  # fmt: skip


def _below_the_decile(some: Uncertainty, whole: Uncertainty) -> Cut:
    tables = [each.whole["terminal"].table() for each in (some, whole)]
    return keep_up_to(tables[0], abstain_top(tables[1], TENTH).threshold)


def _draw_accuracy(whole: dict[str, dict[str, Any]], axes: Any) -> None:
    for split, found in whole.items():
        for name, bins in found["binned_accuracy"].items():
            style = STYLES[METHOD_COLOURS[split, name]]
            line_with_band(axes, *accuracy_bins(bins), colour=style.colour, marker=style.marker,
                           label=f"{split}, {LABELS[name]}",
                           linestyle="-" if name == "terminal" else "--")  # fmt: skip
    axes.set(xlabel="entropy of a cell", ylabel="share of cells right", ylim=ACCURACY)
    axes.legend()


def example_panels(shards: Sequence[Shard]) -> tuple[list[Panel], tuple[str, ...]]:
    """One solved and one unsolved puzzle, and a sentence for a kind that does not occur.

    Of each kind the median by entropy, among puzzles whose entropy is not 0.
    """
    panels, notes = [], []
    labels = read_for(shards[0].job).labels()
    for solved, word in ((True, "solved"), (False, "unsolved")):
        found = [
            (float(entropy[free].astype(np.float64).mean()), int(shard["puzzle"][row]), shard, row)
            for shard in shards
            for row, (entropy, free) in enumerate(
                zip(shard["path_entropy"], shard["free"], strict=True)
            )
            if shard["exact"][row] == solved and free.any()
        ]
        ranked = sorted(found, key=lambda item: item[:2])
        ranked = [item for item in ranked if item[0] > 0] or ranked
        if ranked:
            _, puzzle, shard, row = ranked[len(ranked) // 2]
            panels.append(_puzzle_panel(shard, row, word, labels[puzzle]))
        else:
            notes.append(f"No puzzle of Test is {word}, so none is shown.")
    return panels, tuple(notes)


def _puzzle_panel(shard: Shard, row: int, word: str, label: Tensor) -> Panel:
    title = f"Puzzle {int(shard['puzzle'][row]) + 1} of {shard.job.split}"
    wrong = int((~shard["cell_right"][row]).sum())
    digits = by_name(shard.job.task).decode(label + torch.tensor(shard["off"][row]))
    return Panel(f"{title}: {word}", f"{title}, {word}, {wrong} wrong cells, coloured by its "
                 "entropy.", partial(_draw_puzzle, shard, row, digits))  # fmt: skip


def _draw_puzzle(shard: Shard, row: int, digits: str, axes: Any) -> None:
    side = math.isqrt(len(digits))
    entropy, right, free = (shard[n][row] for n in ("path_entropy", "cell_right", "free"))
    for cell, digit in enumerate(digits):
        y, x = divmod(cell, side)
        if free[cell]:
            _shade(axes, x, y, 1.0, float(entropy[cell]))
        if not right[cell]:
            axes.plot([x + 0.12, x + 0.88], [y + 0.88, y + 0.12], color=colour("wrong"),
                      linewidth=1.6, solid_capstyle="round")  # fmt: skip
        axes.text(x + 0.5, y + 0.54, digit, ha="center", va="center", fontsize=78 / side,
                  fontweight="normal" if free[cell] else "bold",
                  color=colour("ink" if right[cell] else "wrong"))  # fmt: skip
    box = math.isqrt(side)
    for line in range(side + 1):
        thick = line % box == 0
        style = {"color": colour("ink" if thick else "hair"), "linewidth": 1.5 if thick else 0.7,
                 "zorder": 3 if thick else 1}  # fmt: skip
        axes.plot([line, line], [0, side], **style)
        axes.plot([0, side], [line, line], **style)
    unit = side / 9
    for rung, value in enumerate(SCALE):
        down = unit * (1.5 + 0.8 * (len(SCALE) - rung))
        _shade(axes, side + 0.6 * unit, down, 0.8 * unit, value)
        text = f"{value:g}" if value < FULL else f"≥ {value:g}"
        axes.text(side + 1.7 * unit, down + 0.4 * unit, text, va="center", fontsize=8)
    axes.text(side + 0.6 * unit, 1.7 * unit, "H̄", va="center", fontsize=9)
    axes.set(xlim=(-0.1, side + 3 * unit), ylim=(side + 0.1, -0.1), aspect="equal")
    axes.axis("off")


def _shade(axes: Any, x: float, y: float, size: float, entropy: float) -> None:
    axes.fill([x, x + size, x + size, x], [y, y, y + size, y + size], linewidth=0,
              facecolor=colour("doubt"), alpha=OPACITY * min(1.0, entropy / FULL),
              zorder=0.5)  # fmt: skip
