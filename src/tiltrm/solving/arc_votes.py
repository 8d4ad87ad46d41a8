"""Votes for the answer to one ARC test input, over augmentations and particles.

Two rankings. `weighted`, ours: every augmented question has one vote, which it divides by the
confidence of its search: that share for the answer of the search, the rest among the particles by
weight. `votes`, the peers': answers by the number of particles that give them, then by their mean
halt probability. Answers of earlier steps come last; they fill attempts that would be empty.
Proved by tests/solving/test_arc_votes.py.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.solving.final_clouds import Answer, FinalCloud
from tiltrm.tasks.arc.grids import ColourGrid, write_rows

RANKINGS = ("weighted", "votes")
ATTEMPTS = 2
NOTHING: ColourGrid = ((0,),)  # an attempt where no particle gave a grid; ARC wants some grid
ReadGrids = Callable[[Tensor], list[ColourGrid | None]]  # (answer, cell) -> grids as published


@dataclass
class Candidate:
    """One grid, and the votes for it."""

    grid: ColourGrid
    weight: float = 0.0  # of the votes of all questions together
    votes: int = 0  # particles
    halting: float = 0.0  # the sum of their halt probabilities
    earlier: float = 0.0  # its weight at the steps before the last, summed

    @property
    def mean_halting(self) -> float:
        """The mean halt probability of the particles that gave it."""
        return self.halting / max(1, self.votes)


class Ballot:
    """The votes for one test input."""

    def __init__(self) -> None:
        self._found: dict[ColourGrid, Candidate] = {}
        self._spare: list[tuple[ReadGrids, Counter[Answer]]] = []
        self.questions = 0

    def add(self, cloud: FinalCloud, read: ReadGrids, answer: Tensor, confidence: float) -> None:
        """Count one searched question: its last cloud, and the answer (cell,) of the search."""
        self.questions += 1
        alive = cloud.weights > 0
        if bool(alive.any()):
            self._count(cloud, alive, read, answer, confidence)
        if len(self._found) < ATTEMPTS:
            self._spare.append((read, cloud.earlier))
        else:
            self._spare.clear()

    def _count(
        self, cloud: FinalCloud, alive: Tensor, read: ReadGrids, answer: Tensor, confidence: float
    ) -> None:
        gave: dict[Answer, list[int]] = {}  # the particles that gave each answer
        for particle in alive.nonzero().flatten().tolist():
            gave.setdefault(cloud.answers[particle].numpy().tobytes(), []).append(particle)
        particles = list(gave.values())
        first = cloud.answers[[each[0] for each in particles]]
        *grids, own = read(torch.cat((first, answer[None])))
        if own is not None:
            self._of(own).weight += confidence
        for grid, each in zip(grids, particles, strict=True):
            if grid is not None:
                found = self._of(grid)
                found.weight += (1.0 - confidence) * float(cloud.weights[each].sum())
                found.votes += len(each)
                found.halting += float(cloud.halting[each].sum())

    def _of(self, grid: ColourGrid) -> Candidate:
        return self._found.setdefault(grid, Candidate(grid))

    def _add_spare(self) -> None:
        """Count the answers of earlier steps, which are read only where they are needed."""
        for read, earlier in self._spare:
            rows = [torch.frombuffer(bytearray(each), dtype=torch.uint8) for each in earlier]
            grids = read(torch.stack(rows)) if rows else []
            for grid, weight in zip(grids, earlier.values(), strict=True):
                if grid is not None:
                    self._of(grid).earlier += weight
        self._spare.clear()

    def ranked(self, ranking: str = "weighted") -> list[Candidate]:
        """The candidates, best first; equal ones in the order of their texts."""
        if ranking not in RANKINGS:
            raise SettingsError(
                f"ranking must be one of {', '.join(RANKINGS)}, got {ranking!r:.60}"
            )
        self._add_spare()
        by_weight = ranking == "weighted"

        def order(one: Candidate) -> tuple[float, float, float, str]:
            first = one.weight if by_weight else one.votes
            return -first, -one.mean_halting, -one.earlier, write_rows(one.grid)

        return sorted(self._found.values(), key=order)

    def attempts(self, ranking: str = "weighted") -> tuple[ColourGrid, ColourGrid]:
        """Two grids: the best two candidates; the first again if there is no second."""
        grids = [one.grid for one in self.ranked(ranking)[:ATTEMPTS]] or [NOTHING]
        return grids[0], grids[-1]
