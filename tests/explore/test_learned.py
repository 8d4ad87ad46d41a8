"""The learned guide: before its fit it is the halting head, and no batch changes its scores."""

import math
from importlib import import_module

import pytest
import torch
from torch import Tensor

from tiltrm.explore import Exploration, explore
from tiltrm.explore.cloud import Clock, Context, make_problem
from tiltrm.explore.guides import halting
from tiltrm.explore.learned import GuideHead, HeadSizes, cell_statistics, learned
from tiltrm.model.base import State
from tiltrm.model.trm import TRM

WIDTH = 32


def some_head(seed: int = 0) -> GuideHead:
    """A head with opinions of its own."""
    torch.manual_seed(seed)
    head = GuideHead(HeadSizes(WIDTH, 16, 8, outer_steps=10)).eval().requires_grad_(False)
    torch.nn.init.normal_(head.out.weight)
    return head


def context(model: TRM, puzzles: int, particles: int, step: int = 3) -> Context:
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(1, 6, (puzzles, 16), generator=generator)
    problem = make_problem(model, tokens, particles)
    shape = (puzzles, particles, 17, WIDTH)
    state = State(*(torch.randn(shape, generator=generator) for _ in range(2)))
    return Context(problem, Clock(step, 10), state, state, model)


def test_an_unfitted_head_is_the_halting_head(toy: TRM) -> None:
    case = context(toy, 3, 5)
    head = GuideHead(HeadSizes(WIDTH, 16, 8)).requires_grad_(False)
    assert torch.equal(learned(toy, head)(case.state, case), halting(toy)(case.state, case))
    assert not torch.equal(
        learned(toy, some_head())(case.state, case), halting(toy)(case.state, case)
    )


def test_scores_do_not_depend_on_the_batch(toy: TRM, one_thread: None) -> None:
    case, guide = context(toy, 5, 7), learned(toy, some_head())
    whole = guide(case.state, case)
    for row in range(5):
        part = State(case.state.answer[row : row + 1], case.state.latent[row : row + 1])
        assert torch.equal(guide(part, case), whole[row : row + 1])


def test_pieces_do_not_change_scores(toy: TRM, monkeypatch: pytest.MonkeyPatch) -> None:
    case, guide = context(toy, 5, 7), learned(toy, some_head())
    whole = guide(case.state, case)
    monkeypatch.setattr(import_module("tiltrm.explore.learned"), "PIECE", 1)
    assert torch.equal(guide(case.state, case), whole)


def test_both_halves_and_the_step_matter_unless_the_search_is_staged(toy: TRM) -> None:
    early, late = context(toy, 2, 3, step=1), context(toy, 2, 3, step=9)
    plain, staged = (learned(toy, some_head(), staged=each) for each in (False, True))
    assert not torch.equal(plain(early.state, early), plain(early.state, late))
    assert torch.equal(staged(early.state, early), staged(early.state, late))
    for half in ("answer", "latent"):
        other = early.state._replace(**{half: early.state.latent.flip(-1)})
        assert not torch.equal(plain(other, early), plain(early.state, early))


def test_positions_are_normed() -> None:
    head = some_head()
    torch.nn.init.normal_(head.norm.weight)
    torch.nn.init.normal_(head.norm.bias)
    state, cells = torch.randn(3, 17, 2 * WIDTH) + 0.3, torch.rand(3, 17, 3)
    truth = head.position(head.norm(torch.cat((state, cells), -1)))
    torch.testing.assert_close(head._normed_positions(state, cells), truth, atol=1e-4, rtol=1e-4)


def test_statistics_of_a_cell() -> None:
    logits = torch.tensor([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]]).log()
    entropy = (0.5 * math.log(2) + 0.5 * math.log(4)) / math.log(3)
    truth = torch.tensor([[0.5, entropy, 0.25], [1.0, 0.0, 1.0]])
    torch.testing.assert_close(cell_statistics(logits), truth)


def test_a_broken_particle_gets_no_weight(toy: TRM) -> None:
    def guide(state: State, case: Context) -> Tensor:
        answer = state.answer.clone()
        answer[:, 1] = torch.nan
        return learned(toy, some_head())(State(answer, state.latent), case)

    tokens = torch.ones(2, 16, dtype=torch.uint8)
    found = explore(toy, tokens, Exploration(particles=3, outer_steps=1, trigger="never"),
                    guide=guide)  # fmt: skip
    assert (found.log_weights[:, 1] == -torch.inf).all()
    assert (found.log_weights[:, [0, 2]] > -torch.inf).all()
