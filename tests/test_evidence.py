"""What the README says about Test is in the shards of evidence/, for the weights that ship."""

import re
from pathlib import Path

import numpy as np
import pytest

from tiltrm.evaluate import plans
from tiltrm.evaluate.job import Job
from tiltrm.evaluate.store import Store
from tiltrm.evaluate.subject import Subject, fingerprint
from tiltrm.model import load

pytest.importorskip("pyarrow")
ROOT = Path(__file__).parents[1]
CARD = "src/tiltrm/weights/sudoku-extreme/CARD.md"
PUZZLES = {"Test": 10_000, "val": 500}


@pytest.fixture(scope="module")
def store() -> Store:
    return Store(ROOT / "evidence")


@pytest.fixture(scope="module")
def sudoku(store: Store) -> dict[str, Subject]:
    """The subjects by split, as the shards know them."""
    weights = fingerprint(load("sudoku-extreme"))
    jobs = {job.split: job for job in store.jobs() if job.task == "sudoku"}
    return {
        split: Subject(
            job.model, weights, job.task, job.data, split, job.checksum, PUZZLES[split]
        )
        for split, job in jobs.items()
    }  # fmt: skip


def test_it_was_computed_with_the_weights_that_ship(store: Store) -> None:
    """Nothing lies there that no command would find."""
    here = {fingerprint(load(name)) for name in ("sudoku-extreme", "maze-hard")}
    assert {job.weights for job in store.jobs()} == here


def test_sudoku_is_whole(store: Store, sudoku: dict[str, Subject]) -> None:
    """The frontier, Table 1, the sweeps, the diagnostics, and adaptive on all of Test."""
    wanted = [
        *plans.frontier(sudoku["Test"]), *plans.table1(sudoku["Test"]), *plans.sweep(sudoku["val"]),
        *plans.diagnostics(sudoku["Test"]), *_adaptive(sudoku),
    ]  # fmt: skip
    assert store.missing(wanted) == []


def test_the_readme_says_what_the_shards_say(store: Store, sudoku: dict[str, Subject]) -> None:
    readme, card = (ROOT / "README.md").read_text(), (ROOT / CARD).read_text()
    table = [job for job in plans.table1(sudoku["Test"]) if job.method != "unguided"]
    for words, jobs in {
        "deterministic, N=48": [job for job in table if job.method == "deterministic"],
        "the paper's method": [job for job in table if job.method == "guided"],
        "**adaptive**": _adaptive(sudoku),
    }.items():
        shards = store.read(jobs)
        exact = 100 * np.mean([shard["exact"].mean() for shard in shards])
        spent = np.mean([shard["evaluations"].mean() for shard in shards])
        (line,) = re.findall(rf"^\| {re.escape(words)}.*$", readme, re.MULTILINE)
        said = [part.strip(" *") for part in line.split("|")]
        assert said[2] == f"{exact:.2f} %"
        assert float(said[3].replace(",", "")) == pytest.approx(spent, abs=0.05)
        if "adaptive" in words:
            assert f"adaptive **{exact:.2f} %** at **{spent:.1f}**" in card


def _adaptive(sudoku: dict[str, Subject]) -> list[Job]:
    return plans.jobs(sudoku["Test"], "adaptive", folds=5)
