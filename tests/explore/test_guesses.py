"""Guesses: what votes are counted, which cells are filled in, and that answers are judged alone."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.evaluate.options import complete, stages_as_lists, stages_from
from tiltrm.explore.cloud import StepInfo
from tiltrm.explore.guesses import GUESSING as GUESSING_KEY
from tiltrm.explore.guesses import add_votes, fill_in
from tiltrm.explore.keys import derive, puzzle_keys
from tiltrm.explore.plan import Adaptive, Stage, parse_stages
from tiltrm.explore.running import solve_adaptively as solve
from tiltrm.solving import plan_clues, plan_views, resized_plan
from tiltrm.tasks import MAZE, Sudoku
from tiltrm.tasks.grid import BLANK, CellClues

from .test_adaptive import same
from .test_symmetric_views import Echo, puzzles

TASK, CLUES = Sudoku(2), CellClues()
GUESSING = Adaptive(
    (Stage(1, 2), Stage(4, 2), Stage(6, 2, guesses=1)), noise=0.3, symmetric_views=True
)
VIEWS = plan_views(GUESSING, TASK, Echo(), torch.device("cpu"))


def voted(*counts: tuple[int, int, int], cells: int = 4, vocabulary: int = 6) -> Tensor:
    """Votes (1, cell, vocabulary) from (cell, id, number of votes)."""
    votes = torch.zeros(1, cells, vocabulary, dtype=torch.int64)
    for cell, token, number in counts:
        votes[0, cell, token] = number
    return votes


def guessed(votes: Tensor, particles: int, count: int = 1, seeds: int = 1) -> Tensor:
    """The (cell, id) pairs that particles filled in, over many keys: (seed, particle, cell)."""
    tokens = torch.full((seeds, votes.shape[1]), BLANK, dtype=torch.uint8)
    keys = torch.arange(seeds)
    return fill_in(tokens, votes.expand(seeds, -1, -1), keys, particles, count, CLUES)


def test_living_particles_vote_once_for_every_clue() -> None:
    said = torch.tensor([[[2, 3], [2, 4], [5, 4], [0, 3]]], dtype=torch.uint8)
    alive = torch.tensor([[True, True, False, True]])
    first = add_votes(None, said, alive, 6)
    assert first[0].tolist() == [[0, 0, 2, 0, 0, 0], [0, 0, 0, 2, 1, 0]]
    assert torch.equal(add_votes(first, said, alive, 6), 2 * first)


def test_answers_give_values_to_blank_cells() -> None:
    puzzles = torch.tensor([[BLANK, 3, BLANK, 0]], dtype=torch.uint8)
    answers = torch.tensor([[[2, 4, 3, 2], [BLANK, 3, 0, BLANK]]], dtype=torch.uint8)
    assert CLUES.in_answers(puzzles, answers).tolist() == [[[2, 0, 3, 0], [0, 0, 0, 0]]]


def test_a_value_is_drawn_by_its_votes_and_the_cells_disagreement() -> None:
    """Weights n_d (n^2 - sum of n_d^2): 3 x 6 and 1 x 6 in cell 0, 2 x 8 twice in cell 2."""
    votes = voted((0, 2, 3), (0, 3, 1), (1, 4, 4), (2, 3, 2), (2, 5, 2))
    expected = {(0, 2): 18, (0, 3): 6, (2, 3): 16, (2, 5): 16}
    filled = guessed(votes, particles=1, seeds=20000)[:, 0]
    chosen = (filled != BLANK).nonzero()
    assert len(chosen) == len(filled)  # one cell each
    found = [(int(cell), int(filled[row, cell])) for row, cell in chosen]
    assert set(found) == set(expected)
    for place, weight in expected.items():
        share = weight / sum(expected.values())
        error = 4 * (share * (1 - share) / len(found)) ** 0.5
        assert found.count(place) / len(found) == pytest.approx(share, abs=error)


def test_the_particles_of_a_cloud_guess_differently() -> None:
    """A systematic draw: every value gets its share of the particles, rounded up or down."""
    votes = voted((0, 2, 3), (0, 3, 1), (2, 3, 2), (2, 5, 2))
    expected = {(0, 2): 18, (0, 3): 6, (2, 3): 16, (2, 5): 16}
    for filled in guessed(votes, particles=8, seeds=50):
        chosen = [tuple(pair) for pair in (filled != BLANK).nonzero()[:, 1:].tolist()]
        found = [
            (int(cell), int(filled[k, cell])) for k, cell in (filled != BLANK).nonzero().tolist()
        ]
        assert len(chosen) == 8
        for place, weight in expected.items():
            assert abs(found.count(place) - 8 * weight / 56) < 1


def test_nothing_is_guessed_where_all_agree() -> None:
    tokens = torch.tensor([[3, BLANK, BLANK, BLANK]], dtype=torch.uint8)
    agreed = voted((1, 4, 6), (2, 3, 6))
    found = fill_in(tokens, agreed, torch.arange(1), 3, 2, CLUES)
    assert torch.equal(found[0], tokens.expand(3, -1))


def test_several_guesses_fill_several_cells() -> None:
    votes = voted(*((cell, token, 2) for cell in range(4) for token in (2, 3)))
    filled = guessed(votes, particles=6, count=3, seeds=20)
    assert ((filled != BLANK).sum(-1) == 3).all()
    assert guessed(votes, particles=6, count=9).ne(BLANK).all()  # no more cells than there are


def test_particles_see_their_guesses_and_are_judged_on_the_puzzle() -> None:
    tokens, infos = puzzles(3), list[StepInfo]()
    plan = replace(GUESSING, noise=1.0)
    solve(Echo(), tokens, {}, plan, views=VIEWS, clues=CLUES, watch=infos.append)
    votes = None
    for info in (infos[1], infos[3]):  # the last steps of the two stages before
        alive = torch.ones(info.score.shape, dtype=torch.bool)
        said = CLUES.in_answers(tokens, info.context.answers)
        votes = add_votes(votes, said, alive, Echo.vocabulary)
    assert votes is not None
    problem = infos[4].context.problem
    seen = problem.inputs.argmax(-1).transpose(0, 1)  # (particle, puzzle, cell)
    assert problem.views is not None
    found = problem.views.undo(seen).transpose(0, 1)
    expected = fill_in(tokens, votes, derive(problem.keys, GUESSING_KEY, 2), 6, 1, CLUES)
    assert torch.equal(found, expected.long())
    assert ((found != tokens[:, None]).sum(-1) == 1).all()
    assert torch.equal(problem.tokens, tokens)


def test_a_puzzle_is_guessed_alike_in_any_batch() -> None:
    tokens = puzzles(4)
    together = solve(Echo(), tokens, {}, GUESSING, views=VIEWS, clues=CLUES)
    for row in range(4):
        alone = solve(Echo(), tokens[row : row + 1], {}, GUESSING, views=VIEWS, clues=CLUES)
        assert same(alone, together, torch.tensor([row]))


def test_keys_change_the_guesses() -> None:
    votes = voted(*((cell, token, 2) for cell in range(4) for token in (2, 3)))
    tokens = torch.full((1, 4), BLANK, dtype=torch.uint8)
    keys = [puzzle_keys(torch.tensor([[k]])) for k in range(8)]
    made = [fill_in(tokens, votes, key, 4, 2, CLUES) for key in keys]
    assert len({tuple(each.flatten().tolist()) for each in made}) > 4


def test_a_plan_that_guesses_needs_votes_views_and_a_fitting_task() -> None:
    with pytest.raises(SettingsError, match="guesses need a plan with symmetric_views"):
        replace(GUESSING, symmetric_views=False)
    with pytest.raises(SettingsError, match="a stage before them that votes"):
        Adaptive((Stage(2, 2, guesses=1),), symmetric_views=True)
    with pytest.raises(SettingsError, match="maze does not allow"):
        plan_clues(GUESSING, MAZE)
    with pytest.raises(SettingsError, match="expected clues for a plan that guesses"):
        solve(Echo(), puzzles(1), {}, GUESSING, views=VIEWS)


def test_guesses_in_text_and_lists() -> None:
    stages = parse_stages("1x20 2x16@0.2*2 8x24?1 16x24@0.6?2*2")
    assert [stage.guesses for stage in stages] == [0, 0, 0, 1, 2, 2]
    plan = Adaptive(stages, symmetric_views=True)
    assert stages_as_lists(plan)[3:5] == ((8, 24, False, None, 1), (16, 24, False, 0.6, 2))
    assert stages_from([list(stage) for stage in stages_as_lists(plan)]) == stages
    assert not plan.without_guesses().guesses_from(0)
    assert plan.guesses_from(4)
    assert not Adaptive(stages[:3], symmetric_views=True).guesses_from(0)


def test_without_views_a_plan_of_sudoku_does_not_guess() -> None:
    assert any(len(stage) == 5 for stage in complete("adaptive", {}, "sudoku")["stages"])
    plain = complete("adaptive", {"turned": False}, "sudoku")
    assert not any(len(stage) == 5 for stage in plain["stages"])


def test_a_plan_that_shrinks_does_not_begin_with_a_guess() -> None:
    plan = Adaptive(parse_stages("4x20 2x16?1 8x16"), symmetric_views=True)
    assert resized_plan(plan, {"particles": 2}).stages[0] == Stage(2, 16)
