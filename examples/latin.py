"""A task of your own: Latin squares. Every row and every column holds the digits 1 to 5 once.

tiltrm data  --task examples/latin.py:LATIN --generate 2000 --out latin.csv
tiltrm train --task examples/latin.py:LATIN --preset small --data latin.csv --out runs/latin
tiltrm solve --task examples/latin.py:LATIN --model runs/latin/best
"""

import random
from dataclasses import dataclass

import torch
from torch import Tensor

from tiltrm.tasks import Grid, Symmetry
from tiltrm.tasks.base import permutations

BLANK, FIRST = 1, 2  # ids; 0 is the pad, and the digits begin at FIRST


@dataclass(frozen=True)
class Latin(Grid):
    """Only `broken` is required. `symmetry` and `generate` give more puzzles to train on."""

    def broken(self, answer: Tensor) -> Tensor:
        """The number of digits missing from rows and columns."""
        grid = answer.reshape(*answer.shape[:-1], self.side, self.side, 1)
        digits = torch.arange(FIRST, self.vocabulary, device=answer.device)
        present = grid == digits  # (..., row, column, digit)
        return (~present.any(-2)).sum((-2, -1)) + (~present.any(-3)).sum((-2, -1))

    def symmetry(self, puzzles: int, generator: torch.Generator) -> Symmetry:
        """Any permutation of rows, of columns and of digits keeps the rules."""
        rows, columns, digits = (permutations(puzzles, self.side, generator) for _ in range(3))
        source = rows[:, :, None] * self.side + columns[:, None, :]
        fixed = torch.arange(FIRST, device=generator.device).expand(puzzles, -1)
        return Symmetry(source.flatten(1), torch.cat((fixed, digits + FIRST), dim=-1))

    def generate(self, seed: int) -> tuple[Tensor, Tensor]:
        """A minimal puzzle with one solution, from a shuffled square, and this solution."""
        chance, size = random.Random(seed), self.side
        rows, columns, digits = (chance.sample(range(size), size) for _ in range(3))
        answer = [digits[(row + column) % size] + FIRST for row in rows for column in columns]
        puzzle = list(answer)
        for cell in chance.sample(range(self.cells), self.cells):
            puzzle[cell] = BLANK
            if self.solutions(puzzle) > 1:
                puzzle[cell] = answer[cell]
        return torch.tensor(puzzle, dtype=torch.uint8), torch.tensor(answer, dtype=torch.uint8)

    def solutions(self, puzzle: list[int]) -> int:
        """Count solutions up to 2, always filling the blank with the fewest choices."""
        blanks = [cell for cell, token in enumerate(puzzle) if token == BLANK]
        if not blanks:
            return 1
        cell = min(blanks, key=lambda blank: len(self._choices(puzzle, blank)))
        found = 0
        for token in self._choices(puzzle, cell):
            found += self.solutions([*puzzle[:cell], token, *puzzle[cell + 1 :]])
            if found > 1:
                return 2
        return found

    def _choices(self, puzzle: list[int], cell: int) -> set[int]:
        row, column = divmod(cell, self.side)
        seen = {*puzzle[row * self.side : (row + 1) * self.side], *puzzle[column :: self.side]}
        return set(range(FIRST, self.vocabulary)) - seen


LATIN = Latin("latin5", 5, ".12345")
