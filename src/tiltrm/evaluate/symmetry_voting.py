"""Symmetry voting: the same puzzle seen several ways, answered without noise, and put to a vote.

All puzzles share the symmetries, which depend on the seed alone, so that a puzzle's answer depends
on neither the batch nor the fold it is in.
"""

import torch
from torch import Tensor

from tiltrm.evaluate.measure import Judge, Measurement
from tiltrm.explore import Exploration, Result, explore
from tiltrm.explore.choices import SELECTORS
from tiltrm.explore.inputs import device_of
from tiltrm.explore.search import UNDECIDED, Progress
from tiltrm.explore.select import Candidates, same_answer
from tiltrm.model.base import RecursiveModel
from tiltrm.tasks.base import views


def symmetry_vote(
    model: RecursiveModel, judge: Judge, settings: Exploration, *,
    copies: int, select: str, seed: int, progress: Progress | None = None,
) -> Measurement:  # fmt: skip
    """The puzzles of the judge; `settings` are of one noise-free trajectory.

    Proved by tests/evaluate/test_symmetry_voting.py.
    """
    tokens = judge.tokens
    device = device_of(model, tokens)
    seen = views(judge.task, copies, seed)
    turned = seen.apply(tokens.expand(copies, -1, -1))  # (copy, puzzle, cell)
    result = explore(model, turned.flatten(0, 1), settings, seed=seed, progress=progress)
    answers = seen.undo(result.answers.view(turned.shape)).transpose(0, 1).to(device)
    cloud = _cloud(result, answers, copies)
    chosen = SELECTORS[select](cloud)[:, None]
    agree = same_answer(answers).gather(1, chosen[..., None].expand(-1, 1, copies))[:, 0]
    right = judge.right(answers) & cloud.alive  # (puzzle, copy)
    halt = _by_copy(result.halt_probability, copies).gather(1, chosen.cpu())[:, 0]
    share = (agree & cloud.alive).double().mean(-1).float().cpu()
    spent = _by_copy(result.evaluations, copies).sum(-1)
    return Measurement(
        answers=answers[torch.arange(len(answers), device=device), chosen[:, 0]].cpu(),
        confidence=share if select == "majority" else halt,
        halt_probability=halt,
        evaluations=spent,
        outer_steps=torch.full_like(spent, settings.outer_steps),
        decided_by=(UNDECIDED,) * len(spent),
        oracle=right.any(-1).cpu(),
    )


def _cloud(result: Result, answers: Tensor, copies: int) -> Candidates:
    """The copies as particles of even weight; one whose state was not finite has none."""
    dead = _by_copy(result.degenerate, copies).to(answers.device)
    score = _by_copy(result.score, copies).to(answers.device)
    return Candidates(answers, torch.where(dead, -torch.inf, 0.0).log_softmax(-1), score)


def _by_copy(values: Tensor, copies: int) -> Tensor:
    """(copy x puzzle,) -> (puzzle, copy)."""
    return values.view(copies, -1).T
