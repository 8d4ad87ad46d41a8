"""Fig. 4: what the entropy of the cloud says about its cells, and which puzzles to leave out."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from tiltrm.diagnose.entropy import TENTH, Uncertainty
from tiltrm.diagnose.selective import Cut, abstain_top, keep_up_to
from tiltrm.evaluate.job import Job
from tiltrm.evaluate.shards import Shard
from tiltrm.evaluate.summary import DF, Spread, failures
from tiltrm.report import paper
from tiltrm.report.evidence import SUDOKU, Evidence, percent, spread_percent, table1
from tiltrm.report.figures import ACCURACY, band
from tiltrm.report.grid import examples
from tiltrm.report.sheet import Cell, Compared, Panel, Sheet, Table
from tiltrm.report.table1 import TEST

NAMES = {"terminal": "H, terminal", "path": "H̄, along the path"}
LOOK = {(TEST, "terminal"): "guided", (TEST, "path"): "unguided",
        (DF, "terminal"): "adaptive", (DF, "path"): "deterministic"}  # fmt: skip
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
    folds = {split: [uncertainty([shard], splits[split]) for shard in shards] for split in whole}
    compared = [line for split in whole for line in _compared(split, folds[split], folds[TEST])]
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
        "intervals. Abstaining leaves out what lies above the upper decile of Test's mean entropy, "
        "on both splits: of DF a tenth could not be enough, since more of it is unsolved.",
        (*puzzles, panel), tuple(compared),
        Table(("split", "entropy", "low", "high", "cells", "accuracy", "95 % low", "95 % high"),
              rows), notes,
    )  # fmt: skip


def _compared(
    split: str, folds: Sequence[Uncertainty], whole: Sequence[Uncertainty]
) -> list[Compared]:
    """Each a mean over folds with their standard deviation, as the paper gives it.

    What lies above the upper decile of H in the `whole` fold is left out, ties at it stay. Not the
    decile of DF: the paper solves 85.9 % of it, so leaving out a tenth gives 95.4 % at most, where
    it reports 99.7. A fold that keeps nothing is 0 of the coverage.
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
    words = f"solved of the {coverage:.0f} % kept below the top tenth of Test's H"
    words += f" (in {empty} of {len(cuts)} folds none)" if empty else ""
    return [
        Compared(f"{split}, token AUROC of H", theirs.mean, auroc and auroc.mean, "",
                 theirs.spread, auroc and auroc.sd, digits=3),
        Compared(f"{split}, {words}", published.mean, kept[0], "%", published.spread, kept[1]),
    ]  # fmt: skip


def _below_the_decile(some: Uncertainty, whole: Uncertainty) -> Cut:
    tables = [each.whole["terminal"].table() for each in (some, whole)]
    return keep_up_to(tables[0], abstain_top(tables[1], TENTH).threshold)


def _draw_accuracy(whole: dict[str, dict[str, Any]], axes: Any) -> None:
    for split, found in whole.items():
        for name, bins in found["binned_accuracy"].items():
            middle = [(b["low"] + b["high"]) / 2 for b in bins]
            values = [(b["share"], *b["interval"]) for b in bins]
            band(axes, middle, values, LOOK[split, name], f"{split}, {NAMES[name]}",
                 dash="-" if name == "terminal" else "--")  # fmt: skip
    axes.set(xlabel="entropy of a cell", ylabel="share of cells right", ylim=ACCURACY)
    axes.legend()
