"""A store of shards made by hand, and the results in it."""

import json
from pathlib import Path

import pytest

from tiltrm.evaluate.store import Store
from tiltrm.report.items import ITEMS
from tiltrm.report.results import MAZE, SUDOKU, SWEEP, StoredResults
from tiltrm.tasks import MAZE as MAZES
from tiltrm.tasks import SUDOKU as SUDOKUS

from . import mock

COUNTS = {"sudoku": 120, "maze": 40}


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a training run leaves: two evaluations, a loss, and four scans."""
    folder = tmp_path_factory.mktemp("run")
    val = {"halt_bce": 0.3, "halt_accuracy": 0.9}
    lines = [
        {"kind": "evaluation", "step": 1, "val": val},
        {"kind": "start", "step": 0, "settings": {"task": "sudoku"}},
        {"kind": "train", "step": 5, "loss": 2.0},
        {"kind": "evaluation", "step": 10, "val": val},
        {"kind": "evaluation", "step": 20, "val": {"halt_bce": None, "halt_accuracy": 1.0}},
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    scans = [
        {"kind": "scan", "step": 10 * n, "guided": {"exact": 0.25 * n},
         "unguided": {"exact": 0.15 * n}, "deterministic": {"exact": 0.12 * n}}
        for n in range(1, 5)
    ]  # fmt: skip
    (folder / "scan.jsonl").write_text("".join(json.dumps(line) + "\n" for line in scans))
    return folder


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory, run_folder: Path) -> StoredResults:
    """Every item's shards on both benchmarks."""
    folder = tmp_path_factory.mktemp("mock")
    targets = {
        task.name: mock.subject(mock.data(folder, task, COUNTS[task.name]), task)
        for task in (SUDOKUS, MAZES)
    }
    targets[SWEEP] = targets[SUDOKU]
    assert set(targets) == {SUDOKU, MAZE, SWEEP}
    metrics = (run_folder / "metrics.jsonl",)
    found = StoredResults(
        Store(folder / "store"), "quick", targets, {}, metrics, run_folder / "scan.jsonl"
    )
    for item in ITEMS.values():
        mock.fill(found.store, item.jobs(found), COUNTS)
    return found
