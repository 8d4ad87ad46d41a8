"""Adaptive solving of mazes: valid paths only, and the shortest of all that were visited."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tiltrm.data import Puzzles
from tiltrm.errors import SettingsError
from tiltrm.evaluate.options import complete
from tiltrm.evaluate.titles import title
from tiltrm.explore.bank import Bank
from tiltrm.explore.cloud import Cloud
from tiltrm.explore.plan import Adaptive, Stage
from tiltrm.explore.running import run_search
from tiltrm.explore.search import UNDECIDED, adaptive_search
from tiltrm.explore.stopping import by_shortest
from tiltrm.model.base import State
from tiltrm.model.trm import TRM, TRMConfig
from tiltrm.solving import build_search, solve
from tiltrm.solving.methods import Stopping, adaptive_plan, path_values, stopping_rules
from tiltrm.solving.plans import plan_views
from tiltrm.solving.tune import Tuner
from tiltrm.solving.tune_store import PartStore
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


def run(model: Scripted, steps: int, particles: int = 2) -> Any:
    own = Stopping(2.0, False, agree_share=1.0, agree_among=2, shortest_visited=True)
    plan = Adaptive((Stage(particles, steps),), noise=0.0)
    rules = stopping_rules(model, stopping=own)
    search = adaptive_search(model, plan, rules, visited=path_values(MAZE))
    return run_search(search, PUZZLE)


def test_agreement_on_a_broken_path_does_not_stop_the_search() -> None:
    found = run(Scripted([TORN, TORN, SHORT], [5.0, 5.0, 5.0]), 6)
    assert found.decided_by == ("agreement",)
    assert int(found.outer_steps[0]) == 3
    assert torch.equal(found.answers[0], SHORT)


def test_a_longer_path_than_one_visited_before_does_not_stop_it_either() -> None:
    found = run(Scripted([SHORT, LONG, LONG], [0.0, 5.0, 5.0]), 3, particles=1)
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


def test_a_path_of_the_unchanged_maze_answers() -> None:
    """Other views come later and are as short; the model's own choice among equal paths counts."""
    open_ = MAZE.encode("S" + " " * 14 + "G")[None]
    along_top = MAZE.encode("Sooo" + "   o" * 2 + "   G", answer=True)
    model = Scripted([along_top], [0.0])
    plan = Adaptive((Stage(2, 1), Stage(8, 2)), noise=0.0, symmetric_views=True)
    own = Stopping(2.0, False, agree_share=0.25, agree_among=3, shortest_visited=True)
    views = plan_views(plan, MAZE, model, torch.device("cpu"))
    rules = stopping_rules(model, stopping=own)
    search = adaptive_search(model, plan, rules, None, views, path_values(MAZE))
    clouds: list[Tensor] = []
    found = run_search(search, open_, watch=lambda info: clouds.append(info.context.answers[0]))
    assert found.decided_by == ("agreement",)
    assert int(found.outer_steps[0]) == 2
    assert torch.equal(found.answers[0], along_top)
    solved = [one for one in clouds[-1] if MAZE.violations(open_[0], one) == 0]
    assert not torch.equal(solved[0], along_top)  # the first that agrees has another path
    assert float(found.confidence[0]) == 0.25
    assert float(found.cell_confidence[0, 3]) > 0.25  # of the answer, too


def test_the_first_of_the_shortest_gives_the_marginals() -> None:
    score = torch.tensor([[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
    cloud = clouds([[-9.0, -9.0, -9.0], [-11.0, -9.0, -9.0]], [-9.0, -9.0], score)
    decided = by_shortest(0.5, 2)(cloud, None)  # type: ignore[arg-type]
    assert decided.particle.tolist() == [0, 1]


def test_it_is_how_mazes_are_solved(toy: Any) -> None:
    model = Scripted([SHORT], [0.0])
    found = adaptive_plan(model, MAZE)
    assert found.plan.symmetric_views
    assert found.stopping.shortest_visited
    assert found.settings()["shortest_visited"] is True
    assert found == adaptive_plan(model, MAZE, shortest_visited=True)
    assert build_search(model, MAZE).visited is not None
    solved = solve(model, PUZZLE, task=MAZE)
    assert torch.equal(solved.answers[0], SHORT)  # of the first; turned back, the others' are torn
    assert solved.decided_by == (UNDECIDED,)
    with pytest.raises(SettingsError, match="for mazes"):
        build_search(toy, "sudoku4", shortest_visited=True)
    with pytest.raises(SettingsError, match="got both"):
        build_search(model, MAZE, shortest_visited=True, rules=True)


def test_a_calibration_runs_the_same_search(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = TRMConfig(
        cells=16, vocabulary=6, width=16, layers=1, heads=2, prefix=1, inner_steps=1, cycles=1
    )
    model = TRM(config).eval().requires_grad_(False)
    drawn = [MAZE.generate(seed, 3) for seed in range(60)]
    puzzles = Puzzles(MAZE, *(torch.stack(column) for column in zip(*drawn, strict=True)))
    store = PartStore(tmp_path, "weights", {})
    found, checked = Tuner(model, puzzles, store, evaluations=100_000).calibrate()
    assert found.settings == adaptive_plan(model, MAZE).settings()
    assert found.judge == "rules"  # a label is one of many shortest paths
    assert checked.puzzles == 60


@pytest.mark.parametrize(
    "other", [{"rules": True}, {"halt_above": 1.0}, {"shortest_visited": False}]
)
def test_another_stopping_rule_takes_its_place(other: dict[str, Any]) -> None:
    model = Scripted([SHORT], [0.0])
    found = adaptive_plan(model, MAZE, **other)
    assert not found.stopping.shortest_visited
    assert "shortest_visited" not in found.settings()
    assert found.stopping.agree_among == 16
    assert build_search(model, MAZE, **other).visited is None


def test_jobs_of_an_evaluation() -> None:
    own = complete("adaptive", {}, "maze")
    assert own["shortest_visited"] is own["turned"] is True
    assert complete("adaptive", {"shortest_visited": True}, "maze") == own
    assert complete("adaptive", own, "maze") == own
    assert title("adaptive", own.items(), "maze") == "adaptive"
    for other in ({"halt_above": 3.0}, {"shortest_visited": False}, {"stages": [[1, 24]]}):
        plain = complete("adaptive", other, "maze")
        assert "shortest_visited" not in plain
        assert complete("adaptive", plain, "maze") == plain
        assert "shortest_visited False" in title("adaptive", plain.items(), "maze")
    with pytest.raises(SettingsError, match="shortest_visited"):
        complete("adaptive_rules", {"shortest_visited": True}, "maze")
