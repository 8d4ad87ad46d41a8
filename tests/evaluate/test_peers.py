"""The methods give what the solver gives, whatever fold or chunk a puzzle is in."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

from tiltrm.data import Puzzles
from tiltrm.evaluate import do, peers
from tiltrm.evaluate.measure import Judge, Measurement
from tiltrm.evaluate.measure import columns as measured
from tiltrm.evaluate.options import complete
from tiltrm.evaluate.peers import Case, evaluate_method, exploration
from tiltrm.explore import algorithm, cloud, explore, guides, running
from tiltrm.explore.plan import Adaptive, Stage
from tiltrm.model.trm import TRM
from tiltrm.solving import plan_views, solve
from tiltrm.solving.confidence import StopFeatures
from tiltrm.tasks import Maze

from .toys import TASK, Countdown, Wells, a_job

SMALL: dict[str, dict[str, Any]] = {
    "deterministic": {"outer_steps": 4, "by_step": True},
    "guided": {"particles": 5, "noise": 0.4, "outer_steps": 6, "by_step": True, "cells": True},
    "unguided": {"particles": 5, "noise": 0.4, "outer_steps": 6, "by_step": True},
    "ptrm": {"particles": 6, "outer_steps": 6, "noise": 0.5, "by_step": True},
    "halt_first": {"particles": 3, "noise": 0.5, "outer_steps": 9, "halt_above": 3.0},
    "symmetry": {"copies": 3, "outer_steps": 3},
    "c_voting": {"particles": 3, "noise": 0.5, "outer_steps": 3},
    "adaptive": {"stages": [[1, 2], [4, 5]], "halt_above": 3.0},
    "adaptive_rules": {"stages": [[1, 2], [4, 5]]},
}
FIXED = ("deterministic", "guided", "unguided", "ptrm")


def settings(method: str, **more: Any) -> dict[str, Any]:
    return complete(method, {**SMALL[method], **more}, "sudoku4")


def columns(
    model: Any, puzzles: Puzzles, method: str, rows: Tensor | None = None, **more: Any
) -> Mapping[str, Any]:
    rows = torch.arange(len(puzzles)) if rows is None else rows
    part = puzzles.take(rows)
    own = settings(method, **more)
    return evaluate_method(method, Case(model, TASK, part.questions, part.labels(), own, 7, rows))


def equal(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor):
        return one.dtype == other.dtype and torch.equal(one.cpu(), other.cpu())
    return bool(one == other)


@pytest.mark.parametrize("method", FIXED)
def test_fixed_methods_are_the_exploration(
    model: Wells, toy: TRM, puzzles: Puzzles, method: str
) -> None:
    for own in (model, toy):
        found = columns(own, puzzles, method)
        fixed = exploration(method, settings(method))
        labels = puzzles.labels()
        result = explore(own, puzzles.questions, fixed, seed=7,
                         keys=torch.arange(len(puzzles)), labels=labels)  # fmt: skip
        assert torch.equal(found["exact"], (result.answers == labels).all(-1))
        assert torch.equal(found["confidence"], result.solution_columns(fixed)["confidence"])
        assert torch.equal(found["halt_probability"], result.halt_probability)
        assert torch.equal(found["evaluations"], result.evaluations)
        if method == "deterministic":
            assert found["oracle"] is None
        else:
            assert torch.equal(found["oracle"], result.oracle)
        if method == "guided":
            assert torch.equal(found["terminal_entropy"], result.terminal_entropy.half())
            assert torch.equal(found["path_entropy"], result.path_entropy.half())
            assert torch.equal(found["off"] + labels, result.answers.short())
            assert torch.equal(found["cell_right"], result.answers == labels)
            assert torch.equal(found["free"], puzzles.questions == 1)


def test_the_toy_is_worth_testing_with(model: Wells, puzzles: Puzzles) -> None:
    """Deterministic solves those without a hard cell; noise solves more, but not all."""
    alone = columns(model, puzzles, "deterministic")["exact"]
    assert alone.tolist() == [place % 3 == 0 for place in range(12)]
    for method in ("guided", "unguided", "ptrm", "halt_first", "adaptive"):
        assert 0 < int(columns(model, puzzles, method)["exact"].sum()) < 12, method
    assert int(columns(model, puzzles, "guided")["oracle"].sum()) > 4


@pytest.mark.parametrize("method", SMALL)
def test_neither_fold_nor_chunk_matters(
    model: Wells, toy: TRM, puzzles: Puzzles, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for own in (model, toy):
        if method == "symmetry" and own is model:
            continue  # it knows its puzzles from one side only
        whole = columns(own, puzzles, method)
        with monkeypatch.context() as patch:
            for module in (algorithm, running):
                patch.setattr(module, "chunk_size", lambda *_: 2)
            again = columns(own, puzzles, method)
        assert all(equal(again[name], whole[name]) for name in whole)
        for fold in range(3):
            job = a_job(method, settings=SMALL[method], seed=7, folds=3, fold=fold)
            rows = job.rows(12)
            part = do(job, own, puzzles)
            for name, column in whole.items():
                if isinstance(column, Tensor):
                    assert equal(part[name], column.cpu()[rows]), (name, fold)
                elif column is not None:
                    assert list(part[name]) == [column[row] for row in rows], (name, fold)


def test_adaptive_is_solve(model: Wells, puzzles: Puzzles, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the root of a puzzle's randomness, which is its row."""
    monkeypatch.setattr(cloud, "puzzle_keys", lambda tokens: torch.arange(len(tokens)))
    for method, rules in (("adaptive", False), ("adaptive_rules", True)):
        above = {} if rules else {"halt_above": 5.0}
        own = complete(method, {"particles": 4, "outer_steps": 30, **above}, "sudoku4")
        part = (model, TASK, puzzles.questions, puzzles.labels())
        found = evaluate_method(method, Case(*part, own, 7, torch.arange(12)))
        solution = solve(
            model, puzzles.questions, seed=7, particles=4, outer_steps=30, rules=rules, **above
        )  # fmt: skip
        assert torch.equal(found["evaluations"], solution.evaluations)
        told = StopFeatures(
            found["decided_by"], found["confidence"], found["halt_probability"],
            found["outer_steps"], found["valid"],
        )  # fmt: skip
        assert torch.equal(told.own().float(), solution.confidence)  # shards keep the rule's own
        assert tuple(found["decided_by"]) == solution.decided_by
        assert torch.equal(found["exact"], (solution.answers == puzzles.labels()).all(-1))
    assert "rules" in solution.decided_by


def test_adaptive_may_be_turned(puzzles: Puzzles) -> None:
    """How many steps a Countdown wants depends on the ids, so each view wants another number."""
    own = {"stages": [[1, 1], [4, 6]], "halt_above": 0.0, "noise": 0.0, "beta": 0.0}
    plain, turned = (
        columns(Countdown(), puzzles, "adaptive", **own, turned=choice) for choice in (False, True)
    )
    assert int(plain["outer_steps"].sum()) > int(turned["outer_steps"].sum())  # the luckiest of 4
    plan = Adaptive((Stage(1, 1), Stage(4, 6)), symmetric_views=True)
    seen = plan_views(plan, TASK, Countdown(), torch.device("cpu"))[1]
    wanted = Countdown().wanted(seen.apply(puzzles.questions.expand(4, -1, -1)).flatten(0, 1))
    least = wanted.view(4, -1).amin(0) + 1  # fresh ones begin after the first step
    steps = torch.where(Countdown().wanted(puzzles.questions) <= 1, 1, least).clamp(max=7)
    assert torch.equal(turned["outer_steps"], steps)


def test_halt_first_pays_for_all_until_the_first_supervision_end_that_passes(
    puzzles: Puzzles,
) -> None:
    """The logit after n steps is n + 1/2 - wanted: it passes 0 at n = wanted, and the answer is
    given at the next multiple of 3, or at the end."""
    found = columns(Countdown(), puzzles, "halt_first", noise=0.0, halt_above=0.0)
    wanted = Countdown().wanted(puzzles.questions)
    steps = torch.minimum(torch.tensor(9), (wanted + 2) // 3 * 3)
    assert steps.unique().tolist() == [3, 6, 9]
    assert int(wanted.max()) > 9
    assert torch.equal(found["outer_steps"], steps)
    assert torch.equal(found["evaluations"], 3 * 3 * steps)  # 3 trajectories, M + 1 = 3
    passed = steps >= wanted
    assert [why == "halting" for why in found["decided_by"]] == passed.tolist()


@pytest.mark.parametrize("method", ["guided", "unguided", "ptrm", "halt_first", "adaptive"])
def test_only_the_seed_and_the_row_are_random(model: Wells, puzzles: Puzzles, method: str) -> None:
    rows = torch.arange(12)
    part = (model, TASK, puzzles.questions, puzzles.labels())
    one = evaluate_method(method, Case(*part, settings(method), 0, rows))
    for seed, moved in ((1, 0), (0, 12)):
        other = evaluate_method(method, Case(*part, settings(method), seed, rows + moved))
        assert not torch.equal(one["halt_probability"], other["halt_probability"])


def test_mazes_are_judged_three_ways() -> None:
    task = Maze(4)
    question = task.encode("S   " + " ## " + "    " + " G  ")
    answers = torch.stack([
        task.encode("S   " + "o## " + "o   " + "oG  ", answer=True),  # the label
        task.encode("S   " + "o## " + "oo  " + " G  ", answer=True),  # as short
        task.encode("Sooo" + " ##o" + "  oo" + " Go ", answer=True),  # longer
        task.encode("S   " + " ## " + "oo  " + " G  ", answer=True),  # no path
    ])  # fmt: skip
    zeros = torch.zeros(4)
    outcome = Measurement(answers, zeros, zeros, zeros, zeros, ("budget",) * 4)
    found = measured(
        outcome, Judge(task, question.expand(4, -1), answers[:1].expand(4, -1)), torch.arange(4),
        torch.device("cpu"),
    )  # fmt: skip
    assert found["exact"].tolist() == [True, False, False, False]
    assert found["shortest"].tolist() == [True, True, False, False]
    assert found["valid"].tolist() == [True, True, True, False]
    assert found["cell_right"].shape == (4, 0)


def test_halt_first_waits_for_its_threshold(puzzles: Puzzles) -> None:
    wanted = Countdown().wanted(puzzles.questions)
    for above in (0, 2):
        found = columns(Countdown(), puzzles, "halt_first", noise=0.0, halt_above=float(above),
                        outer_steps=18)  # fmt: skip
        steps = [3 * math.ceil((int(n) + above) / 3) for n in wanted]
        assert found["outer_steps"].tolist() == steps


def test_symmetry_goes_as_deep_as_it_is_told(toy: TRM, puzzles: Puzzles) -> None:
    found = columns(toy, puzzles, "symmetry", copies=2, outer_steps=5)
    assert found["evaluations"].tolist() == [2 * 5 * 3] * 12


def test_what_the_growing_clouds_are_asked_with(
    model: Wells, puzzles: Puzzles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Adaptive with the guide that is named; halt-first without tilt and resampling."""
    seen: list[Any] = []
    real, guide = peers.adaptive_search, guides.residual()

    def search(*given: Any) -> Any:
        seen.append((given[1], given[3] if len(given) > 3 else None))
        return real(*given)

    monkeypatch.setattr(peers, "adaptive_search", search)
    monkeypatch.setattr(peers, "parse_guide", lambda *_: guide)
    columns(model, puzzles, "adaptive")
    assert seen.pop()[1] is guide
    columns(model, puzzles, "halt_first")
    assert (seen[0][0].beta, seen[0][0].resample_below) == (0.0, 0.0)


def test_c_voting_is_the_most_confident_of_random_starts(toy: TRM, puzzles: Puzzles) -> None:
    """Against the trajectories one by one: noise on the first state only, then the best mean."""
    found = columns(toy, puzzles, "c_voting")
    assert set(found["evaluations"].tolist()) == {3 * 3 * (toy.inner_steps + 1)}
    own = algorithm.Exploration(
        particles=3, noise=0.5, outer_steps=3, beta=0.0, trigger="never", entropy_every=0,
        placement=peers.first_state, select="oracle",
    )  # fmt: skip
    keys = torch.arange(len(puzzles))
    cloud_ = explore(toy, puzzles.questions, own, seed=7, keys=keys, labels=puzzles.labels(),
                     trace=True)  # fmt: skip
    assert cloud_.trace is not None
    assert len(cloud_.particle_answers.unique(dim=1)[0]) > 1  # the starts differ
    quiet = explore(toy, puzzles.questions, dataclasses.replace(own, noise=0.0), seed=7,
                    labels=puzzles.labels())  # fmt: skip
    same = (quiet.particle_answers == quiet.particle_answers[:, :1]).all()
    assert bool(same)  # and nothing else does
