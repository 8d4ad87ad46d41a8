"""kill -9 at any moment: what was saved is whole, and training goes on from it."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from tiltrm import folders
from tiltrm.cli import main
from tiltrm.model import load
from tiltrm.train import state
from tiltrm.train.log import RunLog

from . import toys

LOOP = Path(__file__).with_name("kill_loop.py")
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_no_kill_breaks_or_loses_a_saved_state(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, LOOP, tmp_path / "run", "40"],
        env=ENVIRONMENT, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10  # many trials got somewhere


def test_a_killed_run_is_resumed_by_the_same_command(tmp_path: Path) -> None:
    data = toys.write_csv(tmp_path / "data.csv", toys.puzzles())
    out = tmp_path / "run"
    command = [
        "train", "--task", "sudoku4", "--preset", "toy", "--data", str(data), "--out", str(out),
        "--set", "save_every=0.0", "--set", "evaluate_every=0.0", "--set", "model.width=16",
        "--set", "restart_every=10",
        "--set", "batch=4", "--device", "cpu", "--resume",
    ]  # fmt: skip
    child = subprocess.Popen(
        [sys.executable, "-m", "tiltrm.cli", *command, "--steps", "1000000"],
        env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        while child.poll() is None and state.latest(out) is None:
            time.sleep(0.05)
        time.sleep(0.3)
    finally:
        child.kill()
    assert child.wait() == -9
    saved = state.latest(out)
    assert saved is not None
    step = int(saved.stem)
    assert main([*command, "--steps", str(step + 3)]) == 0
    assert state.latest(out) == out / "state" / f"{step + 3:08d}"
    load(out / "best")
    evaluated = [each.step for each in RunLog(out, True).evaluations()]
    assert evaluated == sorted(set(evaluated))  # none was lost and done again


def test_a_folder_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "best"

    def interrupted() -> None:
        with folders.replacing(target) as fresh:
            (fresh / "file").write_text("half")
            raise OSError("no space")

    for text in ("one", "two"):
        with folders.replacing(target) as fresh:
            (fresh / "file").write_text(text)
        assert (target / "file").read_text() == text
        with pytest.raises(OSError, match="no space"):
            interrupted()
        assert (target / "file").read_text() == text
        assert [path.name for path in tmp_path.iterdir()] == ["best"]


def test_best_weights_are_put_back_after_a_kill_between_two_names(tmp_path: Path) -> None:
    run = toys.trainer(tmp_path, steps=2)
    run.run()
    before = load(tmp_path / "best").state_dict()
    (tmp_path / "best").rename(tmp_path / "best.old")
    toys.trainer(tmp_path, steps=2).resume()
    after = load(tmp_path / "best").state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert not (tmp_path / "best.old").exists()
