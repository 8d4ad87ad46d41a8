"""What README and docs/results.md say about Test is in the shards of evidence/."""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tiltrm.evaluate import plans
from tiltrm.evaluate.estimate import CostEstimator
from tiltrm.evaluate.job import Job
from tiltrm.evaluate.options import PLANNED, PRECISION
from tiltrm.evaluate.shards import Shard
from tiltrm.evaluate.store import Store
from tiltrm.evaluate.summary import stopped
from tiltrm.evaluate.target import EvalTarget, fingerprint
from tiltrm.model import load
from tiltrm.report import fig6_settings, frontier
from tiltrm.report.results import MAZE, SUDOKU, StoredResults
from tiltrm.tasks.registry import defaults_of

pytest.importorskip("pyarrow")
ROOT = Path(__file__).parents[1]
MODELS = {"sudoku": "sudoku-extreme", "maze": "maze-hard"}
PAGES = (  # page, section, task
    ("README.md", "## Results: Sudoku-Extreme", "sudoku"),
    ("docs/results.md", "## Sudoku-Extreme", "sudoku"),
    ("docs/results.md", "## Maze-Hard", "maze"),
)
PUZZLES = {("sudoku", "Test"): 10_000, ("sudoku", "val"): 500, ("maze", "Test"): 1000}
RESTARTS = {"stages": defaults_of("sudoku").frontier_stages, "turned": True}
MEASURES = {"sudoku": ("exact",), "maze": ("exact", "shortest", "valid")}


@pytest.fixture(scope="module")
def store() -> Store:
    return Store(ROOT / "evidence")


@pytest.fixture(scope="module")
def targets(store: Store) -> dict[tuple[str, str], EvalTarget]:
    """By task and split, as the shards know them."""
    weights = {task: fingerprint(load(name)) for task, name in MODELS.items()}
    jobs = {(job.task, job.split): job for job in store.jobs()}
    assert set(jobs) == set(PUZZLES)
    return {
        key: EvalTarget(job.model, weights[job.task], job.task, job.data, job.split, job.checksum,
                     PUZZLES[key])
        for key, job in jobs.items()
    }  # fmt: skip


def test_it_was_computed_with_the_weights_that_ship(store: Store) -> None:
    """Nothing lies there that no command would find."""
    here = {fingerprint(load(name)) for name in MODELS.values()}
    assert {job.weights for job in store.jobs()} == here


def test_all_that_is_called_whole_is_whole(
    store: Store, targets: dict[tuple[str, str], EvalTarget]
) -> None:
    """The frontiers, Table 1, the sweeps, the diagnostics, and adaptive and PTRM on all of Test."""
    mazes = StoredResults(store, "full", {MAZE: targets["maze", "Test"]}, {})
    wanted = plans.sweep(targets["sudoku", "val"]) + fig6_settings.jobs(mazes, MAZE)
    for rollouts in (4, 16, 100):
        wanted += plans.jobs(targets["sudoku", "Test"], "ptrm", {"particles": rollouts}, folds=5)
    for task in MODELS:
        own = targets[task, "Test"]
        wanted += [*plans.frontier(own), *plans.table1(own), *plans.diagnostics(own)]
        wanted += _adaptive(own)
    assert store.missing(wanted) == []


@pytest.mark.parametrize(("page", "heading", "task"), PAGES)
def test_the_tables_say_what_the_shards_say(
    store: Store, targets: dict[tuple[str, str], EvalTarget], page: str, heading: str, task: str
) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    section = text.partition(f"\n{heading}\n")[2].partition("\n#")[0]
    for words, jobs in _rows(targets[task, "Test"], page).items():
        shards = store.read(jobs)
        (line,) = re.findall(rf"^\| {re.escape(words)}.*$", section, re.MULTILINE)
        _, _, *said = [part.strip(" *") for part in line.split("|")]
        for measure, share in zip(MEASURES[task], said, strict=False):
            assert share == f"{100 * _mean(shards, measure):.2f} %", (words, measure)
        spent = said[len(MEASURES[task])].replace(",", "")
        assert float(spent) == pytest.approx(_mean(shards, "evaluations"), abs=0.05)


def _rows(own: EvalTarget, page: str) -> dict[str, list[Job]]:
    """The rows of a table by their first words, and the jobs behind each."""
    table = plans.table1(own)
    rows = {
        words: [job for job in table if job.method == method]
        for words, method in {
            "deterministic, N=48": "deterministic",
            "unguided, S=16": "unguided",
            "the paper's method": "guided",
        }.items()
    }
    rows["**adaptive**"] = _adaptive(own)
    if own.task == "sudoku" and page != "README.md":
        rows["adaptive without guesses"] = plans.jobs(own, "adaptive", RESTARTS, folds=5)
    if own.task == "maze":
        stages = {"stages": [[1, 24], [16, 24]]}
        rows["adaptive, stopped by the halting head"] = plans.jobs(own, "adaptive", stages, folds=5)
    if own.task == "sudoku":
        rows["PTRM, 100 rollouts"] = plans.jobs(own, "ptrm", folds=5)
    if own.task == "sudoku" and page != "README.md":
        copies = plans.jobs(own, "symmetry", {"copies": 16}, folds=5)
        rows["symmetry voting, 16 copies"] = copies
    return rows


def test_a_tenth_of_the_evaluations_is_enough(
    store: Store, targets: dict[tuple[str, str], EvalTarget]
) -> None:
    """At every budget of PTRM, as docs/results.md says and the page that it names."""
    evidence = StoredResults(store, "full", {SUDOKU: targets["sudoku", "Test"]}, {MAZE: ""},
                        frontier=10_000, partial=True)  # fmt: skip
    notes = [note for note in frontier.section(evidence).notes if note.startswith("PTRM")]
    times = [re.findall(r"([\d.]+) times fewer", note)[0] for note in notes]
    assert len(times) == 3
    assert min(map(float, times)) > 10
    said = " ".join((ROOT / "docs/results.md").read_text(encoding="utf-8").split())
    assert "{} times fewer against 4 rollouts, {} against 16, {} against 100".format(*times) in said


def test_a_stopped_run_is_what_the_whole_one_shows(
    store: Store, targets: dict[tuple[str, str], EvalTarget]
) -> None:
    """Runs of their own, on 2,000 and on 10,000 puzzles; they may know a little more."""
    own, seen = targets["sudoku", "Test"], 0
    for limit in (2000, None):
        whole = store.read(plans.jobs(own, "adaptive", RESTARTS, folds=5, limit=limit))
        for steps in (12, 20, 36, 52, 84, 148):
            cut = {**RESTARTS, "outer_steps": steps}
            jobs = plans.jobs(own, "adaptive", cut, folds=5, limit=limit)
            if store.missing(jobs):
                continue
            found = max(s for s in stopped(whole) if s.steps <= steps)
            run = store.read(jobs)
            assert found.evaluations == pytest.approx(_mean(run, "evaluations"), rel=0.01)
            assert -0.0005 < _mean(run, "exact") - found.exact < 0.01
            seen += 1
    assert seen == 8


def test_what_a_plan_is_said_to_cost_is_what_it_cost(
    store: Store, targets: dict[tuple[str, str], EvalTarget]
) -> None:
    """Seconds of an H200: all in all within a tenth, and nothing off by more than three times."""
    prices, said, took = CostEstimator(targets.values()), Counter[str](), Counter[str]()
    for shard in store.read(store.jobs()):
        job = shard.job
        if PRECISION in job.options:  # of a CPU
            continue
        assert shard.about["device"] == "NVIDIA H200"
        large = "large" if len(job.rows(PUZZLES[job.task, job.split])) > 500 else "small"
        kind = f"{job.kind} {job.task} {large} {job.method in PLANNED}"
        said[kind] += prices.of(job).seconds
        took[kind] += shard.about["seconds"]
    assert said.total() == pytest.approx(took.total(), rel=0.1)
    for kind, seconds in took.items():
        assert 1 / 3 < said[kind] / seconds < 3, kind


def test_the_card_says_what_the_shards_say(
    store: Store, targets: dict[tuple[str, str], EvalTarget]
) -> None:
    for task, name in MODELS.items():
        card = (ROOT / "src/tiltrm/weights" / name / "CARD.md").read_text(encoding="utf-8")
        shards = store.read(_adaptive(targets[task, "Test"]))
        exact, spent = 100 * _mean(shards, "exact"), _mean(shards, "evaluations")
        assert f"adaptive **{exact:.2f} %** at **{spent:.1f}**" in card


def _mean(shards: list[Shard], column: str) -> float:
    """Over folds, which are equally large here."""
    return float(np.mean([shard[column].mean() for shard in shards]))


def _adaptive(target: EvalTarget) -> list[Job]:
    """They were computed on a CPU."""
    return plans.jobs(target, "adaptive", {PRECISION: "bfloat16"}, folds=5)
