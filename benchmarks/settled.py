"""Is a halting head to be believed at once, or only of answers that are settled? See docs/LOG.md.

`python -m benchmarks.settled --model M --data VAL.csv --above 0 2 3` follows a quiet trajectory on
every puzzle, and prints for each bound on the halt logit what it decides, how much of that wrongly,
and at what price: at once, and where an answer must be that of one outer step before. With --whole
the task's plan goes on from there, as `tiltrm solve` does.
"""

import argparse
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tiltrm.data import read
from tiltrm.device import choose
from tiltrm.explore.plan import Adaptive, Stage
from tiltrm.explore.running import solve_adaptively as solve
from tiltrm.explore.search import UNDECIDED
from tiltrm.explore.stopping import by_agreement, by_halting
from tiltrm.model import load
from tiltrm.model.base import RecursiveModel
from tiltrm.settings import AGREE_AMONG, AGREE_SHARE
from tiltrm.solving import default_plan, plan_views, task_of
from tiltrm.solving.threshold import STEPS
from tiltrm.tasks import Task, adopt
from tiltrm.tasks.base import exactly_right


class Row(NamedTuple):
    """What one bound does."""

    above: float
    settled: bool
    decided: int
    wrong: int  # of them
    right: float  # share of all answers
    evaluations: float  # a puzzle

    def __str__(self) -> str:
        """One line of the table."""
        how = "settled" if self.settled else "at once"
        return (
            f"above {self.above:g}, {how}: {self.decided:,} decided, {self.wrong:,} of them "
            f"wrongly; {100 * self.right:.1f} % right at {self.evaluations:.0f} evaluations"
        )


def rows(
    model: RecursiveModel, task: Task, tokens: Tensor, labels: Tensor, bounds: Sequence[float],
    plan: Adaptive,
) -> Iterator[Row]:  # fmt: skip
    """Both ways at every bound."""
    views = plan_views(plan, task, model, tokens.device)
    for above in bounds:
        for settled in (False, True):
            rules = {
                "halting": by_halting(model, above, settled=settled),
                "agreement": by_agreement(AGREE_SHARE, AGREE_AMONG),
            }
            found = solve(model, tokens, rules, plan, views=views)
            right = exactly_right(found.answers, labels)
            decided = torch.tensor([why != UNDECIDED for why in found.decided_by])
            yield Row(
                above, settled, int(decided.sum()), int((decided & ~right).sum()),
                float(right.double().mean()), float(found.evaluations.double().mean()),
            )  # fmt: skip


def main() -> None:
    """The table of one model on one file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="sudoku-extreme")
    parser.add_argument("--data", required=True)
    parser.add_argument("--task", help="FILE.py:NAME, for a task of one's own")
    parser.add_argument("--above", type=float, nargs="+", default=[0.0, 2.0, 3.0])
    parser.add_argument("--limit", type=int)
    parser.add_argument("--outer-steps", type=int, default=STEPS)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--device", default="auto")
    arguments = parser.parse_args()
    device = choose(arguments.device)
    model = load(arguments.model, device=device)
    task = adopt(arguments.task) if arguments.task else task_of(model)
    puzzles = read(arguments.data, task, limit=arguments.limit)
    quiet = Adaptive((Stage(1, arguments.outer_steps),))
    plan = default_plan(task.name) if arguments.whole else quiet
    tokens = puzzles.questions.to(device)
    for row in rows(model, task, tokens, puzzles.labels(), arguments.above, plan):
        print(row, flush=True)


if __name__ == "__main__":
    main()
