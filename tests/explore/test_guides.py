"""Guides: their formulas, their sums and schedules, and what they cost."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from tiltrm.explore import Clock, Context, Exploration, explore, make_problem
from tiltrm.explore.guides import (
    Guide,
    confidence,
    from_step,
    halting,
    residual,
    rules,
    shortest,
    until_step,
)
from tiltrm.model.base import State
from tiltrm.model.trm import TRM


def count_ones(puzzle: Tensor, answer: Tensor) -> Tensor:
    return ((answer == 1) & (puzzle != 1)).sum(-1)


@pytest.fixture
def scene(model: TRM, tokens: Tensor) -> tuple[State, Context]:
    draw = torch.Generator().manual_seed(0)
    old, new = (State(*torch.randn(2, 6, 3, 17, 32, generator=draw)) for _ in range(2))
    return new, Context(make_problem(model, tokens, 3), Clock(5, 9), old, new, model)


def test_formulas(model: TRM, tokens: Tensor, scene: tuple[State, Context]) -> None:
    state, context = scene
    logit = model.halt_logit(state.answer)
    assert torch.allclose(halting(model)(*scene), torch.sigmoid(logit).log(), atol=1e-5)
    top = model.decode(state.answer).softmax(-1).amax(-1).log().mean(-1)
    assert torch.allclose(confidence(model)(*scene), top, atol=1e-5)
    both = torch.stack(state) - torch.stack(context.previous)
    rms = both.square().mean((0, 3, 4)).sqrt()
    assert torch.allclose(residual()(*scene), -rms)
    answers = model.decode(state.answer).argmax(-1)
    ones = ((answers == 1) & (tokens[:, None] != 1)).sum(-1)
    assert torch.equal(rules(count_ones)(*scene), -ones.float())


def test_shortest_prefers_faultless_then_shorter_paths(scene: tuple[State, Context]) -> None:
    """Faults 0 0 0: lengths 14 10 99; faults 0 3 1: length 7 alone counts; all broken: as rules."""
    faults = torch.tensor([[0, 0, 0], [0, 3, 1], [2, 3, 1]]).repeat(2, 1)
    cells = torch.tensor([[14, 10, 99], [7, 2, 2], [5, 5, 5]]).repeat(2, 1)
    guide = shortest(lambda puzzle, answer: faults, lambda puzzle, answer: cells)
    wanted = torch.tensor([[-0.4, 0.0, -1.0], [0.0, -3.0, -1.0], [-2.0, -3.0, -1.0]]).repeat(2, 1)
    assert torch.allclose(guide(*scene), wanted)


def test_guides_add_and_scale(model: TRM, scene: tuple[State, Context]) -> None:
    both = halting(model) + 2.0 * rules(count_ones) + residual() * 0.5
    separate = [guide(*scene) for guide in (halting(model), rules(count_ones), residual())]
    assert torch.allclose(both(*scene), separate[0] + 2.0 * separate[1] + 0.5 * separate[2])


def test_schedules_do_not_ask_when_they_are_off(scene: tuple[State, Context]) -> None:
    def never(state: State, context: Context) -> Tensor:
        raise AssertionError("asked")

    one = Guide(lambda state, context: torch.ones(6, 3))
    assert from_step(one, 5)(*scene).sum() == 18
    assert until_step(one, 5)(*scene).sum() == 18
    assert from_step(never, 6)(*scene).sum() == 0
    assert until_step(never, 4)(*scene).sum() == 0


def test_an_answer_is_decoded_once_a_step_and_only_if_needed(model: TRM, tokens: Tensor) -> None:
    calls: list[int] = []

    class Counting:
        def __getattr__(self, name: str) -> object:
            return getattr(model, name)

        def decode(self, answer: Tensor) -> Tensor:
            calls.append(len(answer))
            return model.decode(answer)

    settings = Exploration(particles=16, outer_steps=3, entropy_every=0)
    explore(Counting(), tokens[:1], settings)
    assert len(calls) == 1  # the final answer
    calls.clear()
    twice = rules(count_ones) + rules(count_ones)
    explore(Counting(), tokens[:1], replace(settings, entropy_every=1), guide=twice, trace=True)
    assert len(calls) == 3


def test_the_guide_steers(model: TRM, tokens: Tensor) -> None:
    """A strong rule guide leaves fewer broken rules than no guide."""
    settings = Exploration(particles=32, outer_steps=6, noise=0.5, beta=0.0)
    guide = rules(count_ones)
    idle = explore(model, tokens, settings, guide=guide)
    tilted = explore(model, tokens, replace(settings, beta=2.0), guide=guide)
    mean = [(r.log_weights.exp() * r.scores).sum(-1).mean() for r in (idle, tilted)]
    assert mean[1] > mean[0] + 0.5
