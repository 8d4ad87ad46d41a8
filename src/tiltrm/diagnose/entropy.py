"""Which cells and puzzles to trust: the entropy of a cloud's token marginals.

Terminal H (eq. 20), mean along the path (eq. 21) and their difference, the contraction (eq. 22),
per cell and per puzzle, and with labels how well they predict errors (Figs. 4 and 7, App. D).
Given cells are left out, as in the paper: they are always right, so they would inflate the AUROC.
The AUROC over all cells is reported as well, for comparison.
Proved by tests/diagnose/test_entropy.py.
"""

import math
from typing import Any

import torch
from torch import Tensor

from tiltrm.diagnose.ranking import Ranking, binned, table_auroc
from tiltrm.diagnose.selective import abstain_top, calibrate, curve
from tiltrm.explore.result import token_entropy

TENTH = 0.1  # the paper abstains on the upper decile
RISK = 0.05
EDGES = 40  # intervals of the contraction's histogram over [-1, 1]


def along_path(answers: Tensor, log_weights: Tensor, vocabulary: int) -> tuple[Tensor, Tensor]:
    """Terminal and path entropy of recorded clouds: (puzzle, cell) twice.

    answers: (puzzle, step, particle, cell); log_weights: (puzzle, step, particle), normalised.
    """
    terms = [
        token_entropy(answers[:, n], log_weights[:, n], vocabulary) for n in range(answers.shape[1])
    ]
    return terms[-1], torch.stack(terms).mean(0)


def puzzle_mean(value: Tensor, free: Tensor) -> Tensor:
    """Mean over the free cells: (puzzle, cell) -> (puzzle,); 0 if no cell is free."""
    return torch.where(free, value, 0.0).sum(-1) / free.sum(-1).clamp_min(1)


class Uncertainty:
    """Sums over chunks of puzzles; with labels, rankings of cells and puzzles by entropy."""

    def __init__(self) -> None:
        self.puzzles = 0
        self.sums = torch.zeros(3, dtype=torch.float64)  # H, path H, contraction
        self.by_outcome = torch.zeros(2, 4, dtype=torch.float64)  # (unsolved, solved), + count
        self.histogram = torch.zeros(2, EDGES, dtype=torch.int64)  # of contraction, by outcome
        names = ("terminal", "path", "terminal, all cells", "path, all cells")
        self.cells = {name: Ranking() for name in names}
        self.whole = {name: Ranking() for name in ("terminal", "path")}

    def add(
        self, terminal: Tensor, path: Tensor, answers: Tensor, free: Tensor, labels: Tensor | None
    ) -> None:
        """All (puzzle, cell); `free` marks the cells that are not given."""
        each = torch.stack([puzzle_mean(v.double(), free) for v in (terminal, path)])
        each = torch.cat((each, (each[1] - each[0])[None]))  # (statistic, puzzle)
        self.puzzles += len(terminal)
        self.sums += each.sum(1)
        if labels is None:
            return
        right = answers == labels
        solved = right.all(-1)
        for name, value in (("terminal", terminal), ("path", path)):
            self.cells[name].add(value[free], right[free])
            self.cells[f"{name}, all cells"].add(value, right)
        self.whole["terminal"].add(each[0], solved)
        self.whole["path"].add(each[1], solved)
        place = ((each[2] + 1) / 2 * EDGES).long().clamp(0, EDGES - 1)
        for outcome in (0, 1):
            some = solved == bool(outcome)
            self.by_outcome[outcome, :3] += each[:, some].sum(1)
            self.by_outcome[outcome, 3] += int(some.sum())
            self.histogram[outcome] += torch.bincount(place[some], minlength=EDGES)

    def figures(self, abstain: float = TENTH, risk: float = RISK) -> dict[str, Any]:
        """All figures; those that need labels only if labels were added."""
        count = max(1, self.puzzles)
        names = ("terminal", "path", "contraction")
        found: dict[str, Any] = {
            "puzzles": self.puzzles,
            "mean": dict(zip(names, (self.sums / count).tolist(), strict=True)),
        }
        if self.whole["terminal"].size == 0:
            return found
        found["contraction"] = {
            word: self._outcome(row) for row, word in enumerate(("unsolved", "solved"))
        }
        # A positive of these rankings is a right answer; a risk score should be high on wrong ones.
        auroc = {n: 1.0 - table_auroc(r.table()) for n, r in self.cells.items()}
        found["token_auroc"] = auroc
        found["binned_accuracy"] = {
            name: [b._asdict() for b in binned(self.cells[name].table())]
            for name in ("terminal", "path")
        }
        found["token_curve"] = curve(self.cells["terminal"].table())
        found["puzzles_by_entropy"] = {
            name: self._whole(name, abstain, risk) for name in self.whole
        }
        return found

    def _outcome(self, row: int) -> dict[str, Any]:
        *sums, count = self.by_outcome[row].tolist()
        means = [total / count if count else math.nan for total in sums]
        histogram = self.histogram[row].tolist()
        return {"puzzles": int(count), "terminal": means[0], "path": means[1], "mean": means[2],
                "histogram": histogram}  # fmt: skip

    def _whole(self, name: str, abstain: float, risk: float) -> dict[str, Any]:
        table = self.whole[name].table()
        guarantee = calibrate(table, risk)
        return {
            "auroc": 1.0 - table_auroc(table),
            "curve": curve(table),
            "abstain_on_top": {"share": abstain, **abstain_top(table, abstain)._asdict()},
            "conformal": {**guarantee._asdict(), "statement": guarantee.statement},
        }
