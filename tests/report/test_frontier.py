"""The frontier's numbers where folds are uneven, and its words where ours is dearer."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tiltrm.diagnose.ranking import wilson
from tiltrm.evaluate.compare import by_puzzle
from tiltrm.evaluate.options import complete
from tiltrm.evaluate.store import Store
from tiltrm.evaluate.summary import Spread, Stopped, groups, identity, stopped
from tiltrm.report import frontier, frontier_plot
from tiltrm.report.results import BENCHMARKS, MAZE, SUDOKU, StoredResults, interval
from tiltrm.tasks import SUDOKU as SUDOKUS
from tiltrm.tasks.registry import defaults_of

from . import mock


def test_every_puzzle_counts_the_same_in_uneven_folds(tmp_path: Path) -> None:
    """Seven puzzles in five folds: a share is of seven, and so is its interval."""
    subject = mock.subject(mock.data(tmp_path, SUDOKUS, 7), SUDOKUS)
    results = StoredResults(Store(tmp_path / "store"), "full", {SUDOKU: subject}, {}, frontier=7)
    jobs = frontier.jobs(results, SUDOKU)
    assert {len(job.rows(7)) for job in jobs} == {1, 2}
    mock.fill(results.store, jobs, {"sudoku": 7})
    by_row = {identity(own[0].job)[2:4]: own for own in groups(results.read(jobs))}
    found = frontier.read_frontier(results, SUDOKU).points
    (ours,) = (point for point in found if point.against is None)
    for point in found:
        shards = by_row[point.row.method, point.row.settings]
        right = sum(by_puzzle(shards).values())
        bounds = wilson(int(right), 7)
        assert interval(point.row) == pytest.approx([100 * x for x in (right / 7, *bounds)])
        spent = np.concatenate([shard["evaluations"] for shard in shards])
        assert point.evaluations == pytest.approx(spent.mean())
        if point.against is not None:
            gap = ours.row.exact.mean - point.row.exact.mean
            assert point.against.difference == pytest.approx(gap)


def test_without_a_whole_fold_the_settings_that_are_whole_are_drawn(tmp_path: Path) -> None:
    subject = mock.subject(mock.data(tmp_path, SUDOKUS, 7), SUDOKUS)
    full = StoredResults(
        Store(tmp_path / "store"), "full", {SUDOKU: subject}, {MAZE: ""}, frontier=7
    )
    jobs = frontier.jobs(full, SUDOKU)
    half = replace(full, partial=True)
    peers = [job for job in jobs if job.method in ("ptrm", "deterministic")]
    mock.fill(full.store, peers, {"sudoku": 7})
    assert frontier.jobs(half, SUDOKU) == []  # nothing of ours to compare them with
    ours = [job for job in jobs if job.method in frontier_plot.OURS]
    mock.fill(full.store, ours, {"sudoku": 7})
    assert set(frontier.jobs(half, SUDOKU)) == {*peers, *ours}
    assert frontier.jobs(full, SUDOKU) == jobs  # this must be computed all the same
    section = frontier.section(half)
    lacking = len({(job.method, job.settings) for job in {*jobs} - {*peers, *ours}})
    (note,) = (note for note in section.notes if "not computed yet" in note)
    assert (
        note == f"Sudoku-Extreme, 7 puzzles of Test: {lacking} more settings are not computed yet."
    )
    first = [job for job in jobs if job.fold == 0]
    mock.fill(full.store, first, {"sudoku": 7})
    assert frontier.jobs(half, SUDOKU) == first  # all methods are better than all folds


@pytest.mark.parametrize(
    ("spent", "said"),
    [(100, "4 times fewer."), (399, "about as many."), (400, "about as many."),
     (401, "about as many."), (1600, "4 times more."), (500_000, "1,250 times more.")],
)  # fmt: skip
def test_a_point_that_costs_more_is_said_to(results: StoredResults, spent: int, said: str) -> None:
    found = frontier.read_frontier(results, SUDOKU).points

    def at(variant: str, evaluations: float) -> frontier_plot.FrontierPoint:
        point = next(point for point in found if point.series == variant)
        own = Spread(evaluations, None)
        return point._replace(row=replace(point.row, exact=Spread(0.5, None), evaluations=own))

    (note,) = frontier._cheaper(SUDOKU, [at("ptrm", 400), at("adaptive", spent)], [])
    assert note.endswith(f"at {spent:,}, {said}")
    early = [Stopped(9, 0.49, 5.0), Stopped(10, 0.505, 50.0), Stopped(11, 0.6, 400.0)]
    (note,) = frontier._cheaper(SUDOKU, [at("ptrm", 400), at("adaptive", spent)], early)
    assert note.endswith("adaptive, stopped after 10 steps, has at least 50.50 % at 50, "
                         "8 times fewer.")  # fmt: skip
    same = [Stopped(12, 0.5, spent - 1e-9)]
    (note,) = frontier._cheaper(SUDOKU, [at("ptrm", 400), at("adaptive", spent)], same)
    assert "adaptive has 50.00 %" in note  # a run of its own tells more than a bound


@pytest.mark.parametrize(("part", "name"), BENCHMARKS.items())
def test_what_lies_between_the_runs_of_ours_is_in_the_table(
    results: StoredResults, part: str, name: str
) -> None:
    """Of the frontier's own plan: not of shorter ones, of those by noise alone or by the rules."""
    data = frontier.section(results).data
    lines = [dict(zip(data.head, row, strict=True)) for row in data.rows]
    found = [x for x in lines if x["benchmark"] == name and x["method"] == frontier.STOPPED]
    (own,) = (p.row for p in frontier.read_frontier(results, part).points if p.against is None)
    plan = defaults_of(part).frontier_stages  # mazes: by exact match; Sudokus: without guesses
    turned = {"turned": True} if part == SUDOKU else {}
    usual = complete("adaptive", {"stages": plan} | turned, part)
    assert dict(own.settings) == usual
    jobs = frontier.jobs(results, part)
    whole = [job for job in jobs if job.method == "adaptive" and job.options == usual]
    wanted = stopped(results.read(whole))
    assert len(wanted) > 2
    assert [(x["setting"], x["exact"], x["evaluations"]) for x in found] == [
        (f"steps = {each.steps}", 100 * each.exact, each.evaluations) for each in wanted
    ]
    assert {x["puzzles"] for x in found} == {own.puzzles}
    assert {x["p"] for x in found} == {None}
