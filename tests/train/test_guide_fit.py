"""Fitting a guide: the losses against loops, the streaming record, and a blind head that sees."""

import math
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import torch
from tests.diagnose.wells import EASY, HARD, AllOnes, Wells
from torch import Tensor

from tiltrm.data import Puzzles
from tiltrm.errors import DataError, SettingsError
from tiltrm.explore import Exploration, explore
from tiltrm.explore.learned import learned
from tiltrm.tasks import Maze, Task
from tiltrm.train import guide_fit
from tiltrm.train.guide_clouds import (
    Sampling,
    judge_of,
    label_costs,
    record_states,
    rule_costs,
    soft_targets,
)
from tiltrm.train.guide_fit import FitSettings, GuideFitter, Scores, losses

SAMPLING = Sampling(particles=6, outer_steps=6, noises=(0.3,), kept_steps=3)


class Blind(Wells):
    """Wells whose halting head says the same of every state."""

    def halt_logit(self, answer: Tensor) -> Tensor:
        return 0.0 * answer[..., 0, 0]


class Ones(AllOnes):
    """The task of Wells, as far as a fit asks for it."""

    name, side, cells, vocabulary = "ones", 1, 6, 3

    def is_solved(self, puzzle: Tensor, answer: Tensor) -> Tensor:
        return self.violations(puzzle, answer) == 0


def wells_puzzles(count: int, *, labels: bool = True) -> Puzzles:
    generator = torch.Generator().manual_seed(3)
    tokens = torch.full((count, 6), EASY, dtype=torch.uint8)
    for cell in torch.randint(0, 6, (2, count), generator=generator):
        tokens[torch.arange(count), cell] = HARD
    return Puzzles(cast(Task, Ones()), tokens, torch.ones_like(tokens) if labels else None)


def test_losses_by_loops() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(4, 5, generator=generator).double()
    costs = torch.randint(0, 3, (4, 5), generator=generator).double()
    costs[0] = 0.0  # a cloud without pairs
    costs[1, 0] = torch.inf
    alive = torch.ones(4, 5, dtype=torch.bool)
    alive[2, 1] = alive[3, :4] = False
    entropy, clouds = [], []
    for cloud in range(4):
        pairs = []
        for one in range(5):
            if not alive[cloud, one]:
                continue
            p = 1 / (1 + math.exp(-float(logits[cloud, one])))
            t = math.exp(-float(costs[cloud, one]))
            entropy.append(-(t * math.log(p) + (1 - t) * math.log(1 - p)))
            for other in range(5):
                if alive[cloud, other] and costs[cloud, one] < costs[cloud, other]:
                    behind = float(logits[cloud, other] - logits[cloud, one])
                    pairs.append(math.log1p(math.exp(behind)))
        if pairs:
            clouds.append(sum(pairs) / len(pairs))
    found = losses(logits, costs, alive)
    assert float(found[0]) == pytest.approx(sum(entropy) / len(entropy))
    assert float(found[1]) == pytest.approx(sum(clouds) / len(clouds))


def test_losses_without_pairs_have_finite_gradients() -> None:
    logits = torch.zeros(2, 3, requires_grad=True)
    entropy, ranking = losses(logits, torch.zeros(2, 3), torch.ones(2, 3, dtype=torch.bool))
    (entropy + ranking).backward()
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()
    assert ranking.item() == 0.0


def test_a_head_of_nan_is_never_chosen() -> None:
    states = record_states(Wells(), wells_puzzles(2).questions, rule_costs(cast(Task, Ones())),
                           SAMPLING, 0)  # fmt: skip
    scores = Scores()
    scores.add(torch.full(states.cost.shape, torch.nan), states)
    assert scores.quality(1.0).loss == math.inf


def test_recorded_costs_are_those_of_the_last_answers() -> None:
    puzzles, model = wells_puzzles(5), Wells()
    states = record_states(model, puzzles.questions, label_costs(puzzles.labels()), SAMPLING, 2)
    run = explore(model, puzzles.questions, SAMPLING.exploration(2), seed=2 << 20)
    right = (run.particle_answers == 1).all(-1)
    assert 0 < int(right.sum()) < right.numel()
    steps = SAMPLING.steps(2)
    assert states.step.tolist() == [step for step in steps for _ in range(5)]
    assert torch.equal(states.cost == 0, right.repeat(3, 1))
    assert set(states.cost.unique().tolist()) == {0.0, math.inf}
    assert states.state.shape == (15, 6, 6, 2)
    assert states.alive.all()


def test_steps_are_one_of_each_part_and_differ() -> None:
    sampling = Sampling(4, 48, (0.3,), kept_steps=4)
    drawn = [sampling.steps(number) for number in range(50)]
    for steps in drawn:
        assert [(step - 1) // 12 for step in steps] == [0, 1, 2, 3]
    assert {step for steps in drawn for step in steps} >= {1, 12, 13, 48}
    assert Sampling(4, 2, (0.3,)).steps(0) == [1, 2]


def test_dense_costs_of_paths() -> None:
    maze = Maze(4)
    puzzle = maze.encode("S   " + " ## " + "    " + "G## ")[None]
    short = maze.encode("S   " + "o## " + "o   " + "G## ", answer=True)
    long = maze.encode("Sooo" + " ##o" + "oooo" + "G## ", answer=True)
    torn = maze.encode("S   " + " ## " + "o   " + "G## ", answer=True)
    costs = rule_costs(maze)(puzzle, torch.stack((short, long, torn))[None])[0]
    assert costs[0] == 0.0
    assert costs[1] == pytest.approx(0.6)  # 10 cells where 4 are enough
    assert costs[2] >= 1.0
    assert soft_targets(costs)[0] == 1.0


def test_targets() -> None:
    known, unknown = wells_puzzles(4), wells_puzzles(4, labels=False)
    answers = torch.ones(4, 2, 6, dtype=torch.uint8)
    answers[:, 1, 0] = 2
    truth = torch.tensor([[0.0, math.inf]]).expand(4, 2)
    for puzzles in (known, unknown):
        assert torch.equal(judge_of(puzzles, "right")(puzzles.questions, answers), truth)
    dense = judge_of(known, "rules")(known.questions, answers)
    assert torch.equal(dense, torch.tensor([[0.0, 1.0]]).expand(4, 2))


@pytest.mark.parametrize("target", ["right", "rules"])
def test_a_guide_sees_where_the_halting_head_is_blind(target: str, one_thread: None) -> None:
    model = Blind()
    settings = FitSettings(SAMPLING, target, held_out=40, puzzles=480, learning_rate=1e-2,
                           hidden=16, mixed=16)  # fmt: skip
    found = GuideFitter(model, wells_puzzles(200, labels=target == "right"), settings).run()
    assert found.halting.in_cloud_auroc == 0.5
    assert found.quality.in_cloud_auroc > 0.9
    assert found.quality.loss < found.halting.loss
    assert found.clouds == 480
    assert found.held_out == 40
    assert found.evaluations == 520 * 6 * 6 * 3
    others = wells_puzzles(400).questions[200:]
    run = Exploration(particles=6, outer_steps=6, noise=0.3, beta=1.0, select="best_score",
                      trigger="never")  # fmt: skip
    right = (explore(model, others, run, guide=learned(model, found.head)).answers == 1).all(-1)
    blind = (explore(model, others, replace(run, select="map")).answers == 1).all(-1)
    assert right.float().mean() > blind.float().mean() + 0.1


def test_a_budget_in_minutes_ends_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 1.0
        return now

    seen: list[float] = []
    monkeypatch.setattr("tiltrm.train.guide_clouds.MOST_PUZZLES", 4)
    fitter = GuideFitter(
        Wells(), wells_puzzles(30), FitSettings(SAMPLING, minutes=0.5, hidden=4, mixed=4),
        lambda share, _: seen.append(share), clock,
    )  # fmt: skip
    found = fitter.run()
    assert 8 <= found.clouds <= 60
    assert found.seconds <= 40
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_few_snapshots_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guide_fit, "SNAPSHOTS", 4)
    monkeypatch.setattr("tiltrm.train.guide_clouds.MOST_PUZZLES", 2)
    fitter = GuideFitter(
        Wells(), wells_puzzles(20), FitSettings(SAMPLING, puzzles=17, hidden=4, mixed=4)
    )
    fitter.run()
    assert len(fitter.snapshots) <= 4
    assert fitter.snapshots[0][0] == 0
    assert fitter.snapshots[-1][0] == 17


def test_refusals() -> None:
    with pytest.raises(SettingsError, match="both or neither"):
        GuideFitter(Wells(), wells_puzzles(20), FitSettings(SAMPLING))
    with pytest.raises(DataError, match="at least 5"):
        GuideFitter(Wells(), wells_puzzles(3), FitSettings(SAMPLING, puzzles=3))
    alone = replace(SAMPLING, particles=1)
    with pytest.raises(SettingsError, match="at least 2"):
        GuideFitter(Wells(), wells_puzzles(20), FitSettings(alone, puzzles=3))


def test_a_fit_can_be_repeated_and_leaves_the_callers_random_numbers_alone() -> None:
    settings = FitSettings(SAMPLING, puzzles=20, hidden=4, mixed=4)
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    first = GuideFitter(Wells(), wells_puzzles(20), settings).run()
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(4)
    again = GuideFitter(Wells(), wells_puzzles(20), settings).run()
    assert first.quality == again.quality


def test_nothing_is_left_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    GuideFitter(Wells(), wells_puzzles(10), FitSettings(SAMPLING, puzzles=8)).run()
    assert not list(tmp_path.iterdir())
