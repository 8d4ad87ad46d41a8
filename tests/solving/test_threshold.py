"""The threshold by brute force, on curves that are drawn and on a model that is known."""

import copy
import math

import pytest
import torch
from torch import Tensor

from tiltrm.model.trm import TRM
from tiltrm.solving.threshold import FEWEST, PRICE, Threshold, follow, threshold, where_settled


def draw(puzzles: int, seed: int) -> tuple[Tensor, Tensor]:
    """Halt logits that rise and fall, and answers that are likelier right where they are high."""
    torch.manual_seed(seed)
    halt = torch.randn(puzzles, 8).cumsum(1) + torch.randn(puzzles, 1)
    return halt, torch.rand(puzzles, 8) < torch.sigmoid(2 * halt)


def stopped(halt: Tensor, right: Tensor, above: float) -> tuple[int, int]:
    """Decided, and wrong of them, by every puzzle's first step above."""
    exceeded = halt > above
    first = exceeded.int().argmax(1, keepdim=True)
    wrong = exceeded.any(1) & ~right.gather(1, first)[:, 0]
    return int(exceeded.any(1).sum()), int(wrong.sum())


@pytest.mark.parametrize("seed", range(8))
def test_no_other_threshold_leaves_more_right(seed: int) -> None:
    halt, right = draw(300, seed)
    found = threshold(halt, right)
    assert found is not None
    ended = int(right[:, -1].sum())

    def score(above: float) -> float:
        decided, wrong = stopped(halt, right, above)
        return decided - wrong + (300 - decided) * (ended / 300 - PRICE)

    assert (found.puzzles, found.wrong_in_the_end) == (300, 300 - ended)
    assert (found.decided, found.wrong) == stopped(halt, right, found.above)
    tried = [hundredth / 100 for hundredth in range(-1500, 1500)]
    assert score(found.above) == pytest.approx(max(map(score, tried)))
    assert all(score(t) < score(found.above) - 1e-9 for t in tried if t < found.above - 0.005)


def test_a_head_that_is_sure_too_early_is_not_believed_early() -> None:
    """At 2 every answer is taken at once, and wrong; above 3.5 all are right."""
    halt = torch.tensor([3.0, 3.5, 4.5]).expand(200, 3)
    right = torch.tensor([False, False, True]).expand(200, 3)
    assert threshold(halt, right) == Threshold(3.5, 200, 200, 0, 0)


def test_a_head_that_is_wrong_now_and_then_is_still_asked() -> None:
    """Ten of 200 are as sure as can be and wrong; the others must not pay for them."""
    halt = torch.linspace(1.005, 5.0, 200)[:, None].repeat(1, 2)
    right = torch.ones(200, 2, dtype=torch.bool)
    halt[:10], right[:10] = 9.0, False
    assert threshold(halt, right) == Threshold(1.2, 200, 200, 10, 10)


def test_a_head_that_knows_nothing_is_not_asked() -> None:
    """It is sure of all that is wrong, and the trajectory is right in the end."""
    halt = torch.tensor([5.0, 1.0]).expand(200, 2)
    right = torch.tensor([False, True]).expand(200, 2)
    assert threshold(halt, right) == Threshold(5.0, 200, 0, 0, 0)


@pytest.mark.parametrize(("early", "decided"), [(9, 1000), (11, 0)])
def test_a_wrong_answer_is_worth_a_hundred_clouds(early: int, decided: int) -> None:
    """All are sure at once; some of them would be right if they were left to go on."""
    right = torch.ones(1000, 2, dtype=torch.bool)
    right[:early, 0] = False
    found = threshold(torch.full((1000, 2), 2.005), right)
    assert found is not None
    assert found.decided == decided


def test_settled_is_the_answer_of_one_step_before() -> None:
    answers = torch.tensor([[1, 2], [1, 2], [1, 3], [1, 3], [1, 3]])[None]
    found = where_settled(torch.arange(5.0)[None], answers)
    assert found.tolist() == [[-math.inf, 1.0, -math.inf, 3.0, 4.0]]


@pytest.mark.parametrize("puzzles", [0, FEWEST - 1])
def test_few_puzzles_say_nothing(puzzles: int) -> None:
    halt, right = draw(FEWEST, 0)
    assert threshold(halt, right) is not None
    assert threshold(halt[:puzzles], right[:puzzles]) is None


def test_what_cannot_be_decided_has_no_threshold() -> None:
    halt, right = draw(200, 0)
    assert threshold(halt, torch.zeros_like(right)) is None  # nothing is right
    assert threshold(torch.full_like(halt, math.nan), right) is None  # nobody may be asked
    assert threshold(torch.full_like(halt, -math.inf), right) is None
    sometimes = halt.masked_fill(torch.rand(halt.shape) < 0.1, math.nan)
    assert threshold(sometimes, right) == threshold(
        sometimes.masked_fill(sometimes.isnan(), -math.inf), right
    )


@pytest.mark.parametrize("still", [False, True])
def test_a_trajectory_is_followed_as_the_model_goes(
    model: TRM, tokens: Tensor, still: bool
) -> None:
    """One whose answers go on changing may never be asked, one that always says the same may."""
    model = copy.deepcopy(model)
    model.token_head.weight *= not still
    asked, answers = follow(model, tokens, 4)
    assert asked.isfinite().sum(1).tolist() == [3 if still else 0] * len(tokens)
    inputs = model.embed(tokens)
    state = model.start(inputs)
    for n in range(4):
        state = model.step(inputs, state)
        assert torch.equal(answers[:, n], model.decode(state.answer).argmax(-1).to(torch.uint8))
        if still and n > 0:
            assert torch.allclose(asked[:, n], model.halt_logit(state.answer), atol=1e-4)


def test_in_words() -> None:
    assert Threshold(3.5, 1200, 1100, 2, 30).words() == (
        "a settled answer is decided above a halt logit of 3.5: one trajectory decides 1,100 of "
        "1,200 puzzles, 2 of them wrongly, where 30 are wrong at its end"
    )
