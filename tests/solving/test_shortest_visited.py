"""Adaptive solving of mazes: valid paths only, and the shortest of all that were visited."""

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.evaluate.options import complete
from tiltrm.explore.bank import Bank
from tiltrm.explore.cloud import Cloud
from tiltrm.explore.plan import Adaptive, Stage
from tiltrm.explore.running import run_search
from tiltrm.explore.search import UNDECIDED, adaptive_search
from tiltrm.explore.stopping import Decision, by_shortest, if_best_visited
from tiltrm.model.base import State
from tiltrm.solving import build_search, solve
from tiltrm.solving.methods import Stopping, adaptive_plan, path_values, stopping_rules
from tiltrm.tasks import Maze

MAZE = Maze(4)
PUZZLE = MAZE.encode("S   " + " ## " + "    " + "G## ")[None]
SHORT, LONG, TORN = (
    MAZE.encode(text, answer=True)
    for text in ("S   o## o   G## ", "Sooo ##oooooG## ", "S    ## o   G## ")
)


@dataclass
class Scripted:
    """Gives one answer after another, an outer step each, all as sure as the script says."""

    answers: list[Tensor]
    halts: list[float]
    task: str = "maze4"
    vocabulary: int = 6
    cells: int = 16
    inner_steps: int = 1
    cycles: int = 1
    decide_above: float = 2.0
    seen: list[int] = field(default_factory=list)

    def embed(self, tokens: Tensor) -> Tensor:
        return torch.zeros(*tokens.shape, 1)

    def start(self, inputs: Tensor) -> State:
        return State(torch.full_like(inputs, -1.0), torch.zeros_like(inputs))

    def refine(self, inputs: Tensor, state: State) -> Tensor:
        return torch.zeros_like(state.latent)

    def answer(self, state: State) -> Tensor:
        return state.answer + 1.0  # the number of the step, counted from 0

    def _place(self, answer: Tensor) -> Tensor:
        return answer[..., 0, 0].round().long().clamp(0, len(self.answers) - 1)

    def decode(self, answer: Tensor) -> Tensor:
        given = torch.stack(self.answers)[self._place(answer)]
        return 9.0 * torch.nn.functional.one_hot(given.long(), 6).float()

    def halt_logit(self, answer: Tensor) -> Tensor:
        return torch.tensor(self.halts)[self._place(answer)]


def run(model: Scripted, steps: int, particles: int = 1) -> Any:
    own = Stopping(2.0, False, shortest_visited=True)
    plan = Adaptive((Stage(particles, steps),), noise=0.0)
    rules = stopping_rules(model, stopping=own)
    search = adaptive_search(model, plan, rules, visited=path_values(MAZE))
    return run_search(search, PUZZLE)


def test_a_sure_but_broken_path_does_not_stop_the_search() -> None:
    found = run(Scripted([TORN, TORN, SHORT], [5.0, 5.0, 5.0]), 6)
    assert found.decided_by == ("halting",)
    assert int(found.outer_steps[0]) == 3
    assert torch.equal(found.answers[0], SHORT)


def test_a_longer_path_than_one_visited_before_does_not_stop_it_either() -> None:
    found = run(Scripted([SHORT, LONG, LONG], [0.0, 5.0, 5.0]), 3)
    assert found.decided_by == (UNDECIDED,)
    assert torch.equal(found.answers[0], SHORT)  # left behind, and still the answer
    assert float(found.confidence[0]) == pytest.approx(0.5)  # as sure as it was then


def test_where_no_path_is_valid_the_least_broken_one_answers() -> None:
    worse = TORN.clone()
    worse[PUZZLE[0] == 1] = 2
    assert MAZE.violations(PUZZLE[0], worse) > MAZE.violations(PUZZLE[0], TORN) > 0
    found = run(Scripted([worse, TORN, worse], [0.0, 0.0, 0.0]), 3)
    assert torch.equal(found.answers[0], TORN)
    assert found.decided_by == (UNDECIDED,)


def test_a_plain_search_stops_at_the_broken_path() -> None:
    """What the rule changes."""
    model = Scripted([TORN, TORN, SHORT], [5.0, 5.0, 5.0])
    plan = Adaptive((Stage(1, 6),), noise=0.0)
    rules = stopping_rules(model, stopping=Stopping(2.0, False))
    found = run_search(adaptive_search(model, plan, rules), PUZZLE)
    assert torch.equal(found.answers[0], TORN)


def clouds(visited: list[list[float]], best: list[float], score: Tensor | None = None) -> Cloud:
    values = torch.tensor(visited)
    bank = Bank(torch.tensor(best), torch.zeros(len(best), 1), torch.zeros(len(best)), values)
    weights = torch.log_softmax(torch.zeros_like(values), -1)
    return Cloud(None, weights, torch.zeros_like(values) if score is None else score, bank)  # type: ignore[arg-type]


def test_agreement_on_the_length() -> None:
    """Three of four have the shortest visited; two of four; all, but a shorter one was visited."""
    cloud = clouds([[-9, -9, -9, -11], [-9, -9, -11, -1e7], [-9, -9, -9, -9]], [-9, -9, -8])
    decided = by_shortest(0.75, 4)(cloud, None)  # type: ignore[arg-type]
    assert decided.decided.tolist() == [True, False, False]
    assert decided.probability.tolist()[:2] == [0.75, 0.5]
    assert not by_shortest(0.75, 5)(cloud, None).decided.any()  # type: ignore[arg-type]
    broken = clouds([[-1e6 - 2, -1e6 - 2]], [-1e6 - 2])
    assert not by_shortest(0.5, 2)(broken, None).decided.any()  # type: ignore[arg-type]


def test_only_the_best_visited_may_stop() -> None:
    def rule(cloud: Cloud, context: object) -> Decision:
        count = len(cloud.log_weights)
        return Decision(torch.ones(count) > 0, torch.ones(count).long(), torch.ones(count))

    cloud = clouds([[-9, -9], [-9, -11], [-1e6 - 1, -1e6 - 1]], [-9, -9, -1e6 - 1])
    decided = if_best_visited(rule)(cloud, None)  # type: ignore[arg-type]
    assert decided.decided.tolist() == [True, False, False]


def test_the_setting(toy: Any) -> None:
    model = Scripted([SHORT], [0.0])
    found = adaptive_plan(model, MAZE, shortest_visited=True)
    assert found.plan.symmetric_views
    assert found.settings()["shortest_visited"] is True
    assert "shortest_visited" not in adaptive_plan(model, MAZE).settings()
    search = build_search(model, MAZE, shortest_visited=True, outer_steps=3)
    assert search.visited is not None
    assert build_search(model, MAZE).visited is None
    solved = solve(model, PUZZLE, task=MAZE, shortest_visited=True, outer_steps=3)
    assert torch.equal(solved.answers[0], SHORT)
    with pytest.raises(SettingsError, match="for mazes"):
        build_search(toy, "sudoku4", shortest_visited=True)
    with pytest.raises(SettingsError, match="got both"):
        build_search(model, MAZE, shortest_visited=True, rules=True)


def test_jobs_of_an_evaluation() -> None:
    plain = complete("adaptive", {}, "maze")
    own = complete("adaptive", {"shortest_visited": True}, "maze")
    assert "shortest_visited" not in plain
    assert complete("adaptive", {"shortest_visited": False}, "maze") == plain
    assert own == {**plain, "shortest_visited": True, "turned": True}
    assert complete("adaptive", own, "maze") == own
    with pytest.raises(SettingsError, match="shortest_visited"):
        complete("adaptive_rules", {"shortest_visited": True}, "maze")
