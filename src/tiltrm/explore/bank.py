"""The bank: the best answer of every puzzle among all that any particle ever gave.

A cloud forgets: particles move on, are resampled away, or end with their stage. The bank keeps one
answer a puzzle, the best so far by a value that every visited answer gets.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from tiltrm.explore.select import first_best
from tiltrm.explore.weights import Potential

if TYPE_CHECKING:
    from tiltrm.explore.cloud import Cloud, Context

CELLS = 10.0  # a path longer by so many is as bad as one broken rule
BROKEN = 1e6  # the value of a path with broken rules lies below that of any without
UNCHANGED = 0.5  # cells by which a path of the unchanged puzzle is better: of equal ones it counts

# The value of every particle's answer, higher is better; None at a step that banks nothing.
VisitedValue = Callable[["Cloud", "Context"], Tensor | None]  # -> (puzzle, particle)


class Bank(NamedTuple):
    """The best answer so far of every puzzle."""

    value: Tensor  # (puzzle,), -inf where there is none yet
    answers: Tensor  # (puzzle, cell) uint8
    halt_logit: Tensor  # (puzzle,): of the particle that gave the answer, at that step
    visited: Tensor  # (puzzle, particle): the values of the step that was banked last

    def part(self, puzzles: slice | Tensor) -> "Bank":
        """The banks of some puzzles."""
        return Bank(*(column[puzzles] for column in self))


def banked(cloud: "Cloud", context: "Context", value: VisitedValue) -> Bank:
    """The bank of a cloud after a step: a strictly better answer replaces the old one.

    Of equal ones in one step, the particle with the lower index counts.
    Proved by tests/explore/test_bank.py.
    """
    found, bank = value(cloud, context), cloud.bank
    if found is None and bank is not None:
        return bank
    if found is None:
        found = torch.full_like(cloud.score, -torch.inf)
    alive = (cloud.log_weights > -torch.inf) & context.decodable & (found > -torch.inf)
    found = torch.where(alive, found, -torch.inf)
    rows = torch.arange(len(found), device=found.device)
    best = first_best(found, alive)
    new = Bank(
        found[rows, best], context.answers[rows, best], context.halt_logit()[rows, best], found
    )
    if bank is None:
        return new
    better = new.value > bank.value
    return Bank(
        torch.where(better, new.value, bank.value),
        torch.where(better[:, None], new.answers, bank.answers),
        torch.where(better, new.halt_logit, bank.halt_logit),
        found,
    )


def by_guide_score(potential: Potential) -> VisitedValue:
    """The guide's score, at the steps at which the potential asks for it."""
    return lambda cloud, context: cloud.score if potential.asks(*context.clock) else None


def by_path(
    violations: Callable[[Tensor, Tensor], Tensor], length: Callable[[Tensor, Tensor], Tensor]
) -> VisitedValue:
    """For paths: the fewer cells the better; any valid path before any with broken rules.

    Of paths of the same length, those of particles that see the puzzle unchanged come first: they
    break ties as the model does.
    """

    def value(cloud: "Cloud", context: "Context") -> Tensor:
        puzzles, answers = context.problem.tokens[:, None], context.answers
        broken = violations(puzzles, answers)
        cost = length(puzzles, answers) - UNCHANGED * context.problem.unchanged.float()
        return -torch.where(broken == 0, cost, BROKEN + broken.float())

    return value


def path_costs(broken: Tensor, cells: Tensor) -> Tensor:
    """How far the paths of a cloud are from the best of them: (..., particle) float32.

    Args:
        broken: Broken rules of every path, which are its cost where there are any.
        cells: Cells of every path. A faultless one costs 1/10 for each cell more than the shortest
            faultless path of its cloud has, 1 at most.
    """
    cells = cells.float()
    best = torch.where(broken == 0, cells, torch.inf).amin(-1, keepdim=True)
    longer = ((cells - best) / CELLS).clamp(max=1.0)
    return torch.where(broken == 0, longer, broken.float())
