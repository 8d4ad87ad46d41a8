"""Above which halt logit is an answer decided? Chosen on puzzles whose answers are known.

A halting head that is sure too early costs answers, one that is never sure costs evaluations, and
every model has a scale of its own. One trajectory without noise is followed on every puzzle; where
its answer is settled and its halt logit first exceeds a threshold, adaptive solving would stop.
Proved by tests/solving/test_threshold.py.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from tiltrm.explore import Exploration, explore
from tiltrm.explore.cloud import Context
from tiltrm.explore.search import Progress
from tiltrm.model.base import RecursiveModel, State

FEWEST = 100  # puzzles; of fewer, no threshold is said
PRICE = 0.01  # of the cloud that an undecided puzzle needs, in answers
STEPS = 24  # outer steps of the trajectory


class Threshold(NamedTuple):
    """A halt logit, and what deciding above it does on the puzzles that it was chosen on."""

    above: float
    puzzles: int
    decided: int  # by one trajectory
    wrong: int  # of them
    wrong_in_the_end: int  # where nothing is decided early

    def words(self) -> str:
        """One sentence."""
        return (
            f"a settled answer is decided above a halt logit of {self.above:g}: one trajectory "
            f"decides {self.decided:,} of {self.puzzles:,} puzzles, {self.wrong:,} of them "
            f"wrongly, where {self.wrong_in_the_end:,} are wrong at its end"
        )


def threshold(asked: Tensor, right: Tensor) -> Threshold | None:
    """The halt logit that leaves the most answers right, the lowest where several do.

    What stays undecided counts as right as often as answers are at the trajectory's end, less the
    price of a cloud. `asked` are halt logits, -inf where nobody may decide, and `right` says
    whether the answer is; both are (puzzle, outer step). None where there are too few puzzles,
    where none is right in the end, or nobody may ever decide.
    """
    if len(right) < FEWEST or not right[:, -1].any():
        return None
    highest = asked.double().masked_fill(asked.isnan(), -math.inf).cummax(1).values
    before = highest.roll(1, 1)
    before[:, 0] = -math.inf
    risen = highest > before  # here a threshold from `before` up to `highest` is first exceeded
    hundredths = 100 * highest[highest.isfinite()]
    above = torch.cat((hundredths.floor(), hundredths.ceil())).unique() / 100
    if len(above) == 0:
        return None

    def stopped(where: Tensor) -> Tensor:
        """How many puzzles stop at one of these places, for every threshold."""
        begun, over = (side[where].sort().values for side in (before, highest))
        counts = [torch.searchsorted(side, above, right=True) for side in (begun, over)]
        return counts[0] - counts[1]

    decided, wrong = stopped(risen), stopped(risen & ~right)
    ended = int(right[:, -1].sum())
    undecided = (len(right) - decided) * (ended / len(right) - PRICE)
    best = int((decided - wrong + undecided).argmax())
    return Threshold(
        float(above[best]), len(right), int(decided[best]), int(wrong[best]), len(right) - ended
    )


def where_settled(halt: Tensor, answers: Tensor) -> Tensor:
    """Halt logits, -inf where the answer is not that of one step before; along dimension 1."""
    same = (answers[:, 1:] == answers[:, :-1]).all(-1)
    return halt.masked_fill(~torch.nn.functional.pad(same, (1, 0)), -math.inf)


def follow(
    model: RecursiveModel, tokens: Tensor, outer_steps: int = STEPS, *,
    progress: Progress | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """What `threshold` asks for, (puzzle, outer step), and the answers, (puzzle, step, cell)."""
    quiet = Exploration(
        particles=1, noise=0.0, beta=1.0, trigger="never", outer_steps=outer_steps,
        entropy_every=0, on_degenerate="abstain",
    )  # fmt: skip

    def logit(state: State, context: Context) -> Tensor:
        return context.halt_logit(model)

    trace = explore(model, tokens, quiet, guide=logit, trace=True, progress=progress).trace
    assert trace is not None
    answers = trace.answers[:, :, 0]
    return where_settled(trace.scores[:, :, 0], answers), answers
