"""Votes: our ranking and the peers', by hand."""

from collections import Counter

import pytest
import torch
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.solving.arc_votes import NOTHING, Ballot
from tiltrm.solving.final_clouds import FinalCloud
from tiltrm.tasks.arc.grids import ColourGrid


def read(answers: Tensor) -> list[ColourGrid | None]:
    """Answers of one cell; 0 is no grid."""
    return [((cell,),) if cell else None for cell in answers[:, 0].tolist()]


def cloud(
    answers: list[int], weights: list[float], halting: list[float], **earlier: int
) -> FinalCloud:
    before = Counter({bytes([int(name[1:])]): count for name, count in earlier.items()})
    return FinalCloud(
        torch.tensor(answers, dtype=torch.uint8)[:, None], torch.tensor(weights).double(),
        torch.tensor(halting).double(), before,
    )  # fmt: skip


def own(answer: int) -> Tensor:
    return torch.tensor([answer], dtype=torch.uint8)


def test_weights_and_confidence_make_our_ranking() -> None:
    ballot = Ballot()
    ballot.add(cloud([1, 1, 2], [0.2, 0.2, 0.6], [0.5, 0.5, 0.5]), read, own(2), 0.5)
    first, second = ballot.ranked()
    assert (first.grid, second.grid) == (((2,),), ((1,),))
    assert first.weight == pytest.approx(0.5 + 0.5 * 0.6)
    assert second.weight == pytest.approx(0.5 * 0.4)
    ballot.add(cloud([1], [1.0], [0.1]), read, own(1), 0.9)  # another question: a whole vote
    assert ballot.attempts() == (((1,),), ((2,),))
    assert sum(one.weight for one in ballot.ranked()) == pytest.approx(ballot.questions)


def test_particles_then_halting_make_the_peers_ranking() -> None:
    ballot = Ballot()
    ballot.add(cloud([1, 1, 2], [0.05, 0.05, 0.9], [0.2, 0.2, 0.9]), read, own(2), 0.9)
    assert ballot.attempts("votes") == (((1,),), ((2,),))  # two particles before one
    assert ballot.attempts("weighted") == (((2,),), ((1,),))
    ballot.add(cloud([2, 3, 3], [0.4, 0.3, 0.3], [0.3, 0.9, 0.8]), read, own(2), 0.4)
    order = ballot.ranked("votes")  # 2 votes each: mean halting .85, .6, .2
    assert [one.grid[0][0] for one in order] == [3, 2, 1]
    assert [one.votes for one in order] == [2, 2, 2]
    assert order[1].mean_halting == pytest.approx((0.9 + 0.3) / 2)


def test_dead_particles_and_no_rectangles_do_not_vote() -> None:
    ballot = Ballot()
    ballot.add(cloud([0, 5, 6], [0.7, 0.3, 0.0], [0.9, 0.1, 0.9]), read, own(0), 0.7)
    assert [one.grid for one in ballot.ranked()] == [((5,),)]
    ballot.add(cloud([6], [0.0], [0.9]), read, own(0), 0.0)
    assert [one.grid for one in ballot.ranked("votes")] == [((5,),)]
    assert ballot.attempts() == (((5,),), ((5,),))
    assert Ballot().attempts() == (NOTHING, NOTHING)


def test_earlier_answers_fill_the_second_attempt_and_never_the_first() -> None:
    ballot = Ballot()
    ballot.add(cloud([4], [1.0], [0.0], n7=9, n8=3), read, own(4), 0.0)
    for ranking in ("weighted", "votes"):
        assert ballot.attempts(ranking) == (((4,),), ((7,),))


def test_an_unknown_ranking_is_refused() -> None:
    with pytest.raises(SettingsError, match="ranking must be one of weighted, votes, got 'best'"):
        Ballot().ranked("best")
