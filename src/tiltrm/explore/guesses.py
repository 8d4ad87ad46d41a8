"""Guesses: fresh particles find cells of the puzzle filled in, drawn from the votes so far.

The trajectories that fail on a hard puzzle disagree on some of its cells. With one of these filled
in rightly, the rest is an easier puzzle of the same kind. A wrong guess leaves a puzzle without a
solution, which no stopping rule should decide, and the next stage guesses again. Answers are judged
on the puzzle as it was given. For tasks whose answers may stand in a puzzle as clues
(`TaskDefaults.guesses`).
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from tiltrm.explore.keys import derive, uniforms

BLANK = 1  # the id of a cell to be filled in; those above are clues and answers
GUESSING = (1 << 40) + 1  # takes a particle's place in the key of the guesses; no particle has it


def add_votes(votes: Tensor | None, answers: Tensor, alive: Tensor, vocabulary: int) -> Tensor:
    """The votes, and one for the value of every cell in each living particle's answer.

    Args:
        votes: (puzzle, cell, vocabulary) int64, or None before the first.
        answers: (puzzle, particle, cell) ids.
        alive: (puzzle, particle) bool.
        vocabulary: The number of ids.
    """
    chosen = F.one_hot(answers.long(), vocabulary) * alive[..., None, None]
    found: Tensor = chosen.sum(1)
    return found if votes is None else votes + found


def fill_in(tokens: Tensor, votes: Tensor, keys: Tensor, particles: int, count: int) -> Tensor:
    """The puzzles as each particle finds them: with `count` cells filled in where votes differ.

    A value of a cell is drawn in proportion to its votes times the number of pairs of votes that
    disagree on this cell. The first guesses of a cloud are one systematic draw, so that its
    particles guess differently; further ones are independent. All weights are integers, so a draw
    is the same on every device. Proved by tests/explore/test_guesses.py.

    Args:
        tokens: (puzzle, cell) ids.
        votes: (puzzle, cell, vocabulary) int64.
        keys: (puzzle,) int64, new for every stage.
        particles: Particles of the cloud.
        count: Cells to fill in for each of them.

    Returns:
        (puzzle, particle, cell) ids.
    """
    slots = torch.arange(particles, device=tokens.device)
    filled = tokens[:, None].expand(-1, particles, -1).clone()
    spread = (slots + uniforms(keys, 1)) / particles  # (puzzle, particle)
    own = uniforms(derive(keys[:, None], slots).flatten(), count).view(len(keys), particles, count)
    weights = _weights(votes)[:, None]  # (puzzle, 1, cell, vocabulary)
    for number in range(count):
        blank = (filled == BLANK)[..., None]
        total, place = _draw((weights * blank).flatten(-2), own[..., number] if number else spread)
        cell = place // votes.shape[-1]
        now = filled.gather(-1, cell[..., None])[..., 0]
        value = torch.where(total > 0, place % votes.shape[-1], now.long())
        filled.scatter_(-1, cell[..., None], value[..., None].to(filled.dtype))
    return filled


def _weights(votes: Tensor) -> Tensor:
    """n_d (n^2 - sum of n_d^2) for n_d of n votes on a cell: (puzzle, cell, vocabulary) int64."""
    clues = votes.clone()
    clues[..., : BLANK + 1] = 0
    disagreeing = clues.sum(-1, keepdim=True).square() - clues.square().sum(-1, keepdim=True)
    return clues * disagreeing


def _draw(weights: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """The sum of the weights (..., choice), and the choice at this share of it: (...) both."""
    upto = weights.cumsum(-1)
    total = upto[..., -1]
    wanted = (uniform * total).long()
    return total, torch.searchsorted(upto, wanted[..., None], right=True)[..., 0].clamp(
        max=weights.shape[-1] - 1
    )
