"""kill -9 at any moment costs the shard being made and nothing else, and no table can tell."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from tiltrm.cli import main
from tiltrm.data import Puzzles
from tiltrm.evaluate import Store, run
from tiltrm.model import save
from tiltrm.model.trm import TRM

from . import kill_loop
from .test_run import table, write_csv

LOOP = Path(kill_loop.__file__)
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}


@pytest.fixture
def files(toy: TRM, puzzles: Puzzles, tmp_path: Path) -> tuple[str, str]:
    folder = save(toy, tmp_path / "toy", dtype=None)
    return str(folder), write_csv(tmp_path / "test.csv", puzzles)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_no_kill_costs_more_than_a_shard(files: tuple[str, str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, LOOP, *files, tmp_path / "store"],
        env=ENVIRONMENT, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    kills, half_written = map(int, done.stdout.split())
    assert kills >= 8
    assert half_written >= 1
    jobs = kill_loop.wanted(*files)
    run(jobs, Store(tmp_path / "whole"), torch.device("cpu"))
    assert Store(tmp_path / "store", kill_loop.fail).missing(jobs) == []
    assert table(jobs, tmp_path / "store") == table(jobs, tmp_path / "whole")


def test_the_killed_command_goes_on_and_prints_the_same(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], no_progress: None
) -> None:
    words = [
        "evaluate", "--model", files[0], "--data", files[1], "--device", "cpu", "--folds", "3",
        "--seeds", "8", "--method", "deterministic", "guided", "unguided", "--set",
        "outer_steps=4", "particles=4", "--by-step", "--json",
    ]  # fmt: skip
    store = tmp_path / "store"
    child = subprocess.Popen(
        [sys.executable, "-m", "tiltrm.cli", *words, "--store", store],
        env=ENVIRONMENT, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        while child.poll() is None and len(list(store.glob("*.parquet"))) < 3:
            time.sleep(0.005)
    finally:
        child.kill()
    printed, _ = child.communicate()
    assert (child.returncode, printed) == (-9, b"")
    kept = {path: path.stat().st_mtime_ns for path in store.glob("*.parquet")}
    assert 3 <= len(kept) < 3 + 2 * 24
    assert main([*words, "--store", str(store)]) == 0
    resumed, complaints = capsys.readouterr()
    assert complaints == ""
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert main(words) == 0
    assert capsys.readouterr().out == resumed
