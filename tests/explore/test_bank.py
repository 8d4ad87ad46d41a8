"""The bank: the best of everything that was visited, against the whole trace."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.evaluate.options import complete
from tiltrm.explore import Exploration, explore
from tiltrm.explore.bank import Bank, banked, by_path
from tiltrm.explore.cloud import Clock, Cloud, Context, make_problem
from tiltrm.explore.plan import Adaptive, Stage
from tiltrm.explore.running import run_search
from tiltrm.explore.search import adaptive_search
from tiltrm.model.base import State
from tiltrm.model.trm import TRM
from tiltrm.tasks import Maze

TOKENS = torch.arange(16).remainder(4)[None].add(1).repeat(5, 1).to(torch.uint8)
for row in range(5):
    TOKENS[row, row] = 0
RUN = Exploration(particles=4, outer_steps=6, noise=0.8, beta=1.0, resample_below=0.9)


def best_visited(scores: Tensor, answers: Tensor) -> Tensor:
    """The answer with the best score of all steps and particles, the first of equal ones."""
    found = []
    for own, given in zip(scores.flatten(1), answers.flatten(1, 2), strict=True):
        place = min(range(len(own)), key=lambda index: (-float(own[index]), index))
        found.append(given[place])
    return torch.stack(found)


@pytest.mark.parametrize("trigger", ["ess", "never"])
@pytest.mark.parametrize("chunk", [1, 5])
def test_best_so_far_is_the_best_of_the_whole_trace(toy: TRM, trigger: str, chunk: int) -> None:
    settings = replace(RUN, select="best_so_far", trigger=trigger)
    found = explore(toy, TOKENS, settings, trace=True, chunk=chunk)
    assert found.trace is not None
    truth = best_visited(found.trace.scores, found.trace.answers)
    assert torch.equal(found.answers, truth)
    assert torch.equal(found.score, found.trace.scores.flatten(1).amax(-1))
    last = explore(toy, TOKENS, replace(settings, select="best_score"))
    assert (found.score >= last.score).all()
    assert (found.score > last.score).any()  # else nothing was tested


def test_the_guide_is_banked_only_where_it_is_asked(toy: TRM) -> None:
    settings = replace(RUN, select="best_so_far", trigger="never", score_every=3)
    found = explore(toy, TOKENS, settings, trace=True)
    assert found.trace is not None
    asked = found.trace.scores[:, [2, 5]], found.trace.answers[:, [2, 5]]
    assert torch.equal(found.answers, best_visited(*asked))
    terminal = explore(toy, TOKENS, replace(settings, score_every=1, potential="terminal"))
    last = explore(toy, TOKENS, replace(settings, select="best_score", potential="terminal"))
    assert torch.equal(terminal.answers, last.answers)


def test_a_search_of_several_stages_keeps_the_best_of_all(toy: TRM) -> None:
    plan = Adaptive((Stage(2, 3), Stage(4, 2), Stage(3, 2)), noise=0.9, beta=0.0)
    seen: dict[int, list[tuple[float, Tensor]]] = {row: [] for row in range(5)}

    def value(cloud: Cloud, context: Context) -> Tensor:
        return context.halt_logit()

    search = adaptive_search(toy, plan, {}, visited=value)

    def watch(info: object) -> None:
        context = info.context  # type: ignore[attr-defined]
        for row, tokens in enumerate(context.problem.tokens):
            place = int((tokens == TOKENS).all(-1).nonzero()[0, 0])
            logits = context.halt_logit()[row].tolist()
            seen[place] += list(zip(logits, context.answers[row], strict=True))

    found = run_search(search, TOKENS, watch=watch)
    for row, visited in seen.items():
        assert len(visited) == 2 * 3 + 4 * 2 + 3 * 2
        best = max(visited, key=lambda pair: pair[0])
        assert torch.equal(found.answers[row], best[1])
        assert float(found.confidence[row]) == pytest.approx(
            float(torch.sigmoid(torch.tensor(best[0])))
        )


def test_the_dead_are_not_banked_and_equal_answers_do_not_replace(toy: TRM) -> None:
    problem = make_problem(toy, TOKENS[:1], 3)
    state = State(*(torch.randn(1, 3, 17, 32) for _ in range(2)))
    context = Context(problem, Clock(1, 2), state, state, toy)
    cloud = Cloud(state, torch.tensor([[-torch.inf, -0.7, -0.7]]), torch.tensor([[9.0, 1.0, 1.0]]))
    bank = banked(cloud, context, lambda cloud, context: cloud.score)
    assert bank.value.tolist() == [1.0]
    assert torch.equal(bank.answers[0], context.answers[0, 1])
    other = Context(problem, Clock(2, 2), state, State(state.latent, state.answer), toy)
    held = cloud._replace(bank=bank)
    after = banked(held, other, lambda cloud, context: cloud.score)
    assert torch.equal(after.answers, bank.answers)
    none = banked(cloud, context, lambda cloud, context: None)
    assert none.value.tolist() == [-torch.inf]
    empty = cloud._replace(bank=none)
    assert banked(empty, context, lambda cloud, context: cloud.score).value.tolist() == [1.0]


def test_paths_by_length_and_valid_before_broken() -> None:
    maze = Maze(4)
    puzzle = maze.encode("S   " + " ## " + "    " + "G## ")
    texts = ["S   o## o   G## ", "Sooo ##oooooG## ", "S    ## o   G## "]
    answers = torch.stack([maze.encode(text, answer=True) for text in texts])

    class Given:
        problem = type("P", (), {"tokens": puzzle[None], "unchanged": torch.tensor([False] * 3)})
        answers = torch.stack([maze.encode(text, answer=True) for text in texts])[None]

    value = by_path(maze.violations, maze.path_length)(None, Given)  # type: ignore[arg-type]
    assert value is not None
    assert value[0].tolist()[:2] == [-4.0, -10.0]
    assert value[0, 2] < -(10**5)
    Given.problem.unchanged = torch.tensor([False, True, True])  # type: ignore[attr-defined]
    seen = by_path(maze.violations, maze.path_length)(None, Given)  # type: ignore[arg-type]
    assert seen is not None
    assert seen[0].tolist() == [-4.0, -9.5, float(value[0, 2])]
    assert len(answers) == 3


def test_parts_of_a_bank() -> None:
    bank = Bank(torch.arange(3.0), torch.arange(6).view(3, 2), torch.ones(3), torch.zeros(3, 4))
    part = bank.part(torch.tensor([2, 0]))
    assert part.value.tolist() == [2.0, 0.0]
    assert part.answers.tolist() == [[4, 5], [0, 1]]


def test_the_accuracy_by_step_needs_a_vote() -> None:
    with pytest.raises(SettingsError, match="best_so_far"):
        complete("guided", {"select": "best_so_far", "by_step": True}, "sudoku4")
