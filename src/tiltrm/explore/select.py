"""Which particle of a cloud gives the answer. All batched, none random."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

PAIRS = 1 << 26  # cell comparisons at once
LARGE = 1024  # particles beyond which answers are grouped, since pairs would not fit in memory
TIE = 1e-6  # masses closer than what float32 log-weights can tell apart are equal


class Candidates(NamedTuple):
    """A finished cloud, decoded."""

    answers: Tensor  # (puzzle, particle, cell) uint8
    log_weights: Tensor  # (puzzle, particle)
    score: Tensor  # (puzzle, particle)

    @property
    def alive(self) -> Tensor:
        """Which particles hold weight: (puzzle, particle)."""
        return self.log_weights > -torch.inf


Selector = Callable[[Candidates], Tensor]  # -> the particle whose answer is given, (puzzle,)


def same_answer(answers: Tensor) -> Tensor:
    """Which particles agree in every cell: (puzzle, particle, cell) -> (puzzle, one, other)."""
    particles, cells = answers.shape[1:]
    size = max(1, PAIRS // (particles * particles * cells))
    parts = [(part[:, :, None] == part[:, None]).all(-1) for part in answers.split(size)]
    return torch.cat(parts)


def agrees_with(answers: Tensor, particle: Tensor) -> Tensor:
    """Which particles agree with the given one: (puzzle, particle, cell), (puzzle,) -> bool."""
    rows = torch.arange(len(answers), device=answers.device)
    return (answers == answers[rows, particle][:, None]).all(-1)


def _mass(answers: Tensor, weights: Tensor) -> Tensor:
    """The weight on each particle's answer: (puzzle, particle)."""
    if answers.shape[1] <= LARGE:
        return (same_answer(answers) * weights[:, None, :]).sum(-1)
    found = []
    for own, weight in zip(answers, weights, strict=True):
        groups, which = own.unique(dim=0, return_inverse=True)
        found.append(weight.new_zeros(len(groups)).index_add_(0, which, weight)[which])
    return torch.stack(found)


def first_best(value: Tensor, among: Tensor) -> Tensor:
    """The lowest index with the highest value among those marked; 0 where none is marked."""
    value = torch.where(among, value, -torch.inf)
    best = among & (value == value.amax(-1, keepdim=True))
    return best.int().mul_(torch.arange(value.shape[-1], 0, -1, device=value.device)).argmax(-1)


def _heaviest(cloud: Candidates, weights: Tensor) -> Tensor:
    """The answer with most of `weights`; ties go to the best score, then to the lower index."""
    mass = _mass(cloud.answers, weights)
    return first_best(cloud.score, cloud.alive & (mass >= mass.amax(-1, keepdim=True) - TIE))


def weighted_map(cloud: Candidates) -> Tensor:
    """argmax_a of the weight on answer a (Algorithm 1, line 20); its best-scored particle."""
    return _heaviest(cloud, cloud.log_weights.double().exp())


def unguided_map(cloud: Candidates) -> Tensor:
    """The weighted MAP of a cloud that no guide has tilted: none breaks its ties either."""
    return weighted_map(cloud._replace(score=torch.zeros_like(cloud.score)))


def majority(cloud: Candidates) -> Tensor:
    """The answer that most living particles give, whatever they weigh."""
    return _heaviest(cloud, cloud.alive.double())


def best_score(cloud: Candidates) -> Tensor:
    """The living particle with the best score."""
    return first_best(cloud.score, cloud.alive)


def oracle(labels: Tensor) -> Selector:
    """The living particle with most cells right, then the best score: an upper bound (Table 1)."""

    def select(cloud: Candidates) -> Tensor:
        right = (cloud.answers == labels[:, None]).sum(-1)
        right = torch.where(cloud.alive, right, -1)
        return first_best(cloud.score, cloud.alive & (right == right.amax(-1, keepdim=True)))

    return select
