"""The best on val is chosen, and written down with what it was chosen from."""

import json
from pathlib import Path

import pytest

from tiltrm.errors import DataError
from tiltrm.evaluate import Job, Store
from tiltrm.evaluate.plans import choose

from .toys import a_job, a_shard

RIGHT = {  # (noise, beta) -> exact answers, evaluations of each puzzle
    (0.1, 0.25): ([1, 0, 0, 0], 7),
    (0.3, 0.25): ([1, 1, 1, 0], 9),
    (0.3, 0.5): ([1, 1, 0, 1], 8),
    (0.5, 0.5): ([0, 1, 1, 1], 8),
}


def fill(folder: Path) -> tuple[Store, list[Job]]:
    store, jobs = Store(folder), []
    for (noise, beta), (right, cost) in RIGHT.items():
        for fold in range(2):
            job = a_job(settings={"noise": noise, "beta": beta}, fold=fold, folds=2, split="val")
            puzzles, part = [fold, fold + 2], [right[fold], right[fold + 2]]
            shard = a_shard(job, puzzles, part)
            columns = {**shard.columns, "evaluations": shard["evaluations"] * 0 + cost}
            store.write(job, columns, {})
            jobs.append(job)
    return store, jobs


def test_most_right_then_cheapest_then_first(tmp_path: Path) -> None:
    store, jobs = fill(tmp_path / "store")
    assert choose(store, jobs) == {"noise": 0.3, "beta": 0.5}
    written = json.loads((tmp_path / "store" / "chosen-sudoku4.json").read_text())
    assert written["chosen"] == {"noise": 0.3, "beta": 0.5}
    assert (written["exact"], written["puzzles"], written["split"]) == (0.75, 4, "val")
    assert [row["exact"]["mean"] for row in written["table"]] == [0.25, 0.75, 0.75, 0.75]
    assert [row["settings"]["noise"] for row in written["table"]] == [0.1, 0.3, 0.3, 0.5]


def test_where_it_is_written(tmp_path: Path) -> None:
    store, jobs = fill(tmp_path / "store")
    choose(store, jobs[:2], tmp_path / "mine.json")
    assert json.loads((tmp_path / "mine.json").read_text())["chosen"] == {}
    with pytest.raises(DataError, match="expected to write"):
        choose(store, jobs, tmp_path / "no" / "such" / "folder.json")


def test_only_like_is_compared_with_like(tmp_path: Path) -> None:
    store, jobs = fill(tmp_path / "store")
    with pytest.raises(DataError, match="one method on one split"):
        choose(store, [*jobs, a_job("deterministic")])
    with pytest.raises(DataError, match="expected the shard"):
        choose(store, [*jobs, a_job(settings={"noise": 0.7})])
