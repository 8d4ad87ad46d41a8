"""Guesses: fresh particles find one more clue in the puzzle, drawn from the votes so far.

The trajectories that fail on a hard puzzle disagree on some of it. With a right clue more, the rest
is an easier puzzle of the same kind. A wrong one leaves a puzzle without a solution, which no
stopping rule should decide, and the next stage guesses again. Answers are judged on the puzzle as
it was given. The task says which clues an answer gives (`Clues`): the value of a blank cell, or
the number of a room.
"""

import torch
from torch import Tensor

from tiltrm.explore.keys import derive, uniforms
from tiltrm.tasks.base import PAD, Clues

GUESSING = (1 << 40) + 1  # takes a particle's place in the key of the guesses; no particle has it


def add_votes(votes: Tensor | None, said: Tensor, alive: Tensor, vocabulary: int) -> Tensor:
    """The votes, and one for every clue that the answer of a living particle gives.

    Args:
        votes: (puzzle, cell, vocabulary) int32, or None before the first.
        said: (puzzle, particle, cell) ids of clues, PAD where there is none.
        alive: (puzzle, particle) bool.
        vocabulary: The number of ids.
    """
    puzzles, _, cells = said.shape
    found = said.new_zeros((puzzles, cells, vocabulary), dtype=torch.int32)
    counted = ((said != PAD) & alive[..., None]).transpose(1, 2).int()
    found.scatter_add_(-1, said.transpose(1, 2).long(), counted)
    return found if votes is None else votes + found


def fill_in(
    tokens: Tensor, votes: Tensor, keys: Tensor, particles: int, count: int, clues: Clues
) -> Tensor:
    """The puzzles as each particle finds them: with `count` more clues where votes differ.

    A clue of a cell is drawn in proportion to its votes times the number of pairs of votes that
    disagree on this cell. The first guesses of a cloud are one systematic draw, so that its
    particles guess differently; further ones are independent, in other cells. All weights are
    integers, so a draw is the same on every device. Proved by tests/explore/test_guesses.py.

    Args:
        tokens: (puzzle, cell) ids.
        votes: (puzzle, cell, vocabulary) integers.
        keys: (puzzle,) int64, new for every stage.
        particles: Particles of the cloud.
        count: Guesses of each of them.
        clues: How a clue is added to a puzzle.

    Returns:
        (puzzle, particle, cell) ids.
    """
    slots = torch.arange(particles, device=tokens.device)
    filled = tokens[:, None].expand(-1, particles, -1).clone()
    spread = (slots + uniforms(keys, 1)) / particles  # (puzzle, particle)
    own = uniforms(derive(keys[:, None], slots).flatten(), count).view(len(keys), particles, count)
    weights = _weights(votes)  # (puzzle, cell, vocabulary)
    for number in range(count):
        if number == 0:  # all particles draw from the same weights
            total, place = _draw(weights.flatten(1), spread)
        else:
            left = weights[:, None] * (filled == tokens[:, None])[..., None]
            total, place = _draw(left.flatten(-2), own[..., number, None])
            total, place = total[..., 0], place[..., 0]
        cells, ids = place // votes.shape[-1], place % votes.shape[-1]
        filled = torch.where((total > 0)[..., None], clues.add(filled, cells, ids), filled)
    return filled


def _weights(votes: Tensor) -> Tensor:
    """n_d (n^2 - sum of n_d^2) for n_d of n votes on a cell: (puzzle, cell, vocabulary) int64."""
    found = votes.long()
    return found * (found.sum(-1, keepdim=True).square() - found.square().sum(-1, keepdim=True))


def _draw(weights: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """The sum of the weights (..., choice), and the choices at these shares: (..., draw) both."""
    upto = weights.cumsum(-1)
    total = upto[..., -1:]
    wanted = (uniform * total).long()
    place = torch.searchsorted(upto, wanted, right=True).clamp(max=weights.shape[-1] - 1)
    return total.expand_as(place), place
