"""The frontier's numbers where folds are uneven, and its words where ours is dearer."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tiltrm.diagnose.ranking import wilson
from tiltrm.evaluate.paired import by_puzzle
from tiltrm.evaluate.store import Store
from tiltrm.evaluate.summary import Spread, groups, identity
from tiltrm.report import frontier, frontier_points
from tiltrm.report.evidence import MAZE, SUDOKU, Evidence, interval
from tiltrm.tasks import SUDOKU as SUDOKUS

from . import mock


def test_every_puzzle_counts_the_same_in_uneven_folds(tmp_path: Path) -> None:
    """Seven puzzles in five folds: a share is of seven, and so is its interval."""
    subject = mock.subject(mock.data(tmp_path, SUDOKUS, 7), SUDOKUS)
    evidence = Evidence(Store(tmp_path / "store"), "full", {SUDOKU: subject}, {}, frontier=7)
    jobs = frontier_points.plan(evidence, SUDOKU)
    assert {len(job.rows(7)) for job in jobs} == {1, 2}
    mock.fill(evidence.store, jobs, {"sudoku": 7})
    by_row = {identity(own[0].job)[2:4]: own for own in groups(evidence.read(jobs))}
    found = frontier_points.points(evidence, SUDOKU)
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
    full = Evidence(Store(tmp_path / "store"), "full", {SUDOKU: subject}, {MAZE: ""}, frontier=7)
    jobs = frontier_points.plan(full, SUDOKU)
    half = replace(full, partial=True)
    peers = [job for job in jobs if job.method in ("ptrm", "deterministic")]
    mock.fill(full.store, peers, {"sudoku": 7})
    assert frontier_points.plan(half, SUDOKU) == []  # nothing of ours to compare them with
    ours = [job for job in jobs if job.method in frontier_points.OURS]
    mock.fill(full.store, ours, {"sudoku": 7})
    assert set(frontier_points.plan(half, SUDOKU)) == {*peers, *ours}
    assert frontier_points.plan(full, SUDOKU) == jobs  # this must be computed all the same
    sheet = frontier.sheet(half)
    lacking = len({(job.method, job.settings) for job in {*jobs} - {*peers, *ours}})
    (note,) = (note for note in sheet.notes if "not computed yet" in note)
    assert (
        note == f"Sudoku-Extreme, 7 puzzles of Test: {lacking} more settings are not computed yet."
    )
    first = [job for job in jobs if job.fold == 0]
    mock.fill(full.store, first, {"sudoku": 7})
    assert frontier_points.plan(half, SUDOKU) == first  # all methods are better than all folds


@pytest.mark.parametrize(
    ("spent", "said"),
    [(100, "4 times fewer."), (399, "about as many."), (400, "about as many."),
     (401, "about as many."), (1600, "4 times more."), (500_000, "1,250 times more.")],
)  # fmt: skip
def test_a_point_that_costs_more_is_said_to(evidence: Evidence, spent: int, said: str) -> None:
    found = frontier_points.points(evidence, SUDOKU)

    def at(variant: str, evaluations: float) -> frontier_points.Point:
        point = next(point for point in found if point.variant == variant)
        own = Spread(evaluations, None)
        return point._replace(row=replace(point.row, exact=Spread(0.5, None), evaluations=own))

    (note,) = frontier._cheaper(SUDOKU, [at("ptrm", 400), at("adaptive", spent)])
    assert note.endswith(f"at {spent:,}, {said}")
