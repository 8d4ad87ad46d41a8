"""The halting carry as published: q > 0 halts, exploration sets a minimum, 16 is the most."""

import itertools

import pytest
import torch

from tiltrm.model.base import State
from tiltrm.train import carry


def blank(rows: int) -> carry.Carry:
    start = State(torch.full((1, 2, 4), 7.0), torch.full((1, 2, 4), 8.0))
    tokens = torch.arange(rows * 3).view(rows, 3)
    return carry.empty(tokens, tokens + 100, start)


def other_state(rows: int) -> State:
    return State(torch.rand(rows, 2, 4, requires_grad=True), torch.rand(rows, 2, 4))


def published(steps: int, logit: float, explores: bool, minimum: int, most: int) -> bool:
    """The rule of TinyRecursiveModels and nano-trm, `steps` counted after this one."""
    halted = steps >= most or logit > 0
    return halted and steps >= (minimum if explores else 0)


def test_halting_rule_case_by_case() -> None:
    most, exploration = 4, 0.1
    logits, chances = (-2.0, 0.0, 1e-6, 3.0), (0.0, 0.0999, 0.1, 0.9)
    cases = list(itertools.product(range(most), logits, chances, range(2, most + 1)))
    taken, logit, chance, minimum = (torch.tensor(column) for column in zip(*cases, strict=True))
    before = blank(len(cases))._replace(steps=taken.int())
    draws = carry.HaltingDraws(chance, minimum.int())
    after = carry.advance(
        before, other_state(len(cases)), logit, draws, max_steps=most, exploration=exploration
    )
    expected = [published(t + 1, q, c < exploration, m, most) for t, q, c, m in cases]
    assert after.halted.tolist() == expected
    assert after.steps.tolist() == [t + 1 for t, *_ in cases]
    assert not after.state.answer.requires_grad


def test_refill_resets_only_halted_rows() -> None:
    rows = 6
    held = other_state(rows)
    live = blank(rows)._replace(
        state=held, steps=torch.arange(1, 7).int(), halted=torch.tensor([True, False] * 3)
    )
    new = torch.full((rows, 3), 50)
    start = State(torch.full((1, 2, 4), 7.0), torch.full((1, 2, 4), 8.0))
    filled = carry.refill(live, new, new + 1, start)
    for row in range(rows):
        fresh = row % 2 == 0
        question = new[row] if fresh else live.questions[row]
        assert torch.equal(filled.questions[row], question)
        assert torch.equal(filled.labels[row], new[row] + 1 if fresh else live.labels[row])
        assert torch.equal(filled.state.answer[row], start.answer[0] if fresh else held.answer[row])
        assert torch.equal(filled.state.latent[row], start.latent[0] if fresh else held.latent[row])
        assert filled.steps[row] == (0 if fresh else row + 1)
    assert not filled.halted.any()


@pytest.mark.parametrize("most", [1, 2, 3, 16])
def test_no_row_takes_more_than_the_most_steps(most: int) -> None:
    """Whatever the logits and however often it explores."""
    generator = torch.Generator().manual_seed(0)
    rows = 64
    live, start = blank(rows), State(torch.zeros(1, 2, 4), torch.zeros(1, 2, 4))
    seen = set()
    for _ in range(60):
        live = carry.refill(live, live.questions, live.labels, start)
        logit = torch.randn(rows, generator=generator) - 1
        live = carry.advance(
            live, live.state, logit, carry.draw(rows, most, generator), max_steps=most,
            exploration=0.5,
        )  # fmt: skip
        seen |= set(live.steps.tolist())
        assert live.halted[live.steps >= most].all()
    assert seen == set(range(1, most + 1))


def test_draws_are_uniform_over_2_to_16() -> None:
    chance, minimum = carry.draw(150_000, 16, torch.Generator().manual_seed(0))
    assert chance.min() >= 0
    assert chance.max() < 1
    counts = minimum.bincount()
    assert counts[:2].sum() == 0
    assert len(counts) == 17
    assert (counts[2:] - 10_000).abs().max() < 5 * 100  # five standard errors
    assert abs(float((chance < 0.1).double().mean()) - 0.1) < 5 * 0.3 / 150_000**0.5


def test_an_empty_carry_is_refilled_everywhere() -> None:
    live = blank(3)
    assert live.halted.all()
    new = torch.zeros(3, 3, dtype=torch.int64)
    start = State(torch.ones(1, 2, 4), torch.zeros(1, 2, 4))
    filled = carry.refill(live, new, new, start)
    assert (filled.state.answer == 1).all()
    assert (filled.questions == 0).all()
