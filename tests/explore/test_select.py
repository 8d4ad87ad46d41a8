"""Selection: exact winners, exact ties."""

import pytest
import torch
from torch import Tensor

from tiltrm.explore import select as selecting
from tiltrm.explore.choices import make_select
from tiltrm.explore.select import (
    Candidates,
    agrees_with,
    best_score,
    majority,
    oracle,
    same_answer,
    unguided_map,
    weighted_map,
)
from tiltrm.settings import Exploration


def cloud(answers: list[list[int]], weights: list[float], score: list[float]) -> Candidates:
    return Candidates(
        torch.tensor([answers], dtype=torch.uint8),
        torch.tensor([weights]).log(),
        torch.tensor([score]),
    )


def test_the_weight_of_equal_answers_adds_up() -> None:
    split = cloud([[1, 2], [3, 4], [1, 2], [5, 6]], [0.3, 0.4, 0.2, 0.1], [0.0, 9.0, 1.0, 2.0])
    assert weighted_map(split).item() == 2  # of the two that say [1, 2], the better scored
    assert best_score(split).item() == 1


def test_map_ties_go_to_the_best_score_then_to_the_lower_index() -> None:
    answers = [[1], [2], [1], [2]]
    even = [0.25] * 4
    assert weighted_map(cloud(answers, even, [0.0, 1.0, 0.5, 0.0])).item() == 1
    assert weighted_map(cloud(answers, even, [0.0, 1.0, 1.0, 0.0])).item() == 1
    assert weighted_map(cloud(answers, even, [1.0, 1.0, 1.0, 1.0])).item() == 0
    near = [0.50001, 0.49999]  # the heavier one, by little
    assert weighted_map(cloud([[1], [2]], near, [0.0, 9.0])).item() == 0
    # Not powers of two: three thirds summed in any order are still a tie.
    six = [1 / 6] * 6
    assert weighted_map(cloud([[1], [2], [2], [1], [1], [2]], six, [0, 0, 0, 0, 0, 1])).item() == 5


def test_without_a_tilt_the_guide_breaks_no_ties() -> None:
    even = [0.25, 0.25, 0.25, 0.25]
    split = cloud([[1], [2], [3], [4]], even, [0.0, 0.0, 5.0, 0.0])
    assert weighted_map(split).item() == 2
    assert unguided_map(split).item() == 0
    assert make_select(Exploration(beta=0.0), None) is unguided_map
    assert make_select(Exploration(beta=0.1), None) is weighted_map


def test_majority_counts_heads_and_map_weighs_them() -> None:
    split = cloud([[1], [1], [2]], [0.2, 0.2, 0.6], [0.0, 1.0, 0.5])
    assert majority(split).item() == 1
    assert weighted_map(split).item() == 2


def test_the_dead_are_never_chosen() -> None:
    dead = cloud([[1], [1], [1], [2]], [0.0, 0.0, 0.0, 1.0], [9.0, 9.0, 9.0, 0.0])
    for select in (weighted_map, majority, best_score, oracle(torch.tensor([[1]]))):
        assert select(dead).item() == 3


def test_oracle_takes_the_closest_particle() -> None:
    near = cloud([[1, 1, 1], [2, 2, 1], [2, 2, 2]], [0.8, 0.1, 0.1], [0.0, 5.0, 1.0])
    assert oracle(torch.tensor([[2, 2, 3]]))(near).item() == 1
    assert oracle(torch.tensor([[2, 2, 2]]))(near).item() == 2


def test_batches_are_their_puzzles() -> None:
    """Against a dictionary of answers, puzzle by puzzle, with many ties."""
    draw = torch.Generator().manual_seed(0)
    answers = torch.randint(0, 2, (200, 9, 3), generator=draw).to(torch.uint8)
    weights = torch.randint(1, 4, (200, 9), generator=draw).double()
    score = torch.randint(0, 3, (200, 9), generator=draw).float()
    log_weights = (weights / weights.sum(-1, keepdim=True)).log().float()
    chosen = weighted_map(Candidates(answers, log_weights, score))
    for p in range(200):
        mass: dict[tuple[int, ...], float] = {}
        for s in range(9):
            key = tuple(answers[p, s].tolist())
            mass[key] = mass.get(key, 0.0) + weights[p, s].item()
        tied = [s for s in range(9) if mass[tuple(answers[p, s].tolist())] == max(mass.values())]
        best = max(tied, key=lambda s: (score[p, s].item(), -s))
        assert chosen[p] == best


def test_sameness_is_exact_in_pieces() -> None:
    answers: Tensor = torch.randint(0, 2, (50, 4, 5), generator=torch.Generator().manual_seed(0))
    whole = same_answer(answers)
    assert torch.equal(whole, torch.cat([same_answer(part) for part in answers.split(7)]))
    assert torch.equal(whole, whole.transpose(1, 2))
    assert whole.diagonal(dim1=1, dim2=2).all()


def test_large_clouds_are_grouped_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs of 65,536 particles would take 300 GB."""
    chance = torch.Generator().manual_seed(0)
    answers = torch.randint(0, 3, (20, 40, 2), dtype=torch.uint8, generator=chance)
    weights = torch.rand(20, 40, generator=chance).log_softmax(-1)
    some = Candidates(answers, weights, torch.rand(20, 40, generator=chance))
    by_pairs = weighted_map(some), majority(some)
    monkeypatch.setattr(selecting, "LARGE", 8)
    assert torch.equal(weighted_map(some), by_pairs[0])
    assert torch.equal(majority(some), by_pairs[1])


def test_agreement_with_one_particle() -> None:
    answers = torch.randint(0, 2, (5, 9, 3), dtype=torch.uint8)
    chosen = torch.tensor([0, 8, 3, 3, 1])
    rows = torch.arange(5)
    assert torch.equal(agrees_with(answers, chosen), same_answer(answers)[rows, chosen])
