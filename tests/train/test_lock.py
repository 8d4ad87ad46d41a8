"""One run in a folder at a time, and none that cannot fit in memory."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tiltrm.errors import SettingsError
from tiltrm.folders import LOCK, locked
from tiltrm.train import trainer
from tiltrm.train.trainer import require_fitting

from . import toys

HOLD = """
import sys, time
from pathlib import Path
from tiltrm.folders import locked
with locked(Path(sys.argv[1]), "train"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    """However it ends: the lock goes with a process that is killed."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(SettingsError, match="got another process"), locked(tmp_path, "train"):
            raise AssertionError
    finally:
        holder.kill()
        holder.communicate()
    with locked(tmp_path, "train"):
        assert (tmp_path / LOCK).exists()


def test_the_command_takes_the_lock(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tiltrm.cli import main

    data = toys.write_csv(tmp_path / "data.csv", toys.puzzles())
    run = ["train", "--task", "sudoku4", "--preset", "toy", "--data", str(data), "--out",
           str(tmp_path / "run"), "--steps", "1", "--set", "batch=4"]  # fmt: skip
    with locked(tmp_path / "run", "train"):
        assert main(run) == 2
    assert "got another process that does" in capsys.readouterr().err


@pytest.mark.parametrize(
    "changes",
    [{"batch": 2_000_000_000}, {"model": toys.TINY["model"] | {
        "width": 32768, "heads": 4, "expansion": 64.0, "layers": 64}}],
)  # fmt: skip
def test_what_cannot_fit_is_refused_beforehand(changes: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match=r"must fit in .* GB of memory"):
        require_fitting(toys.settings(**changes), 1, torch.device("cpu"))
    require_fitting(toys.settings(), 1, torch.device("cpu"))


def test_carry_and_activations_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """4,480 bytes a row: 4 states of 17 x 16 numbers, and 2 x 16 token ids."""
    monkeypatch.setattr(trainer, "total_memory", lambda: 2_000_000)
    require_fitting(toys.settings(batch=440), 1, torch.device("cpu"))
    require_fitting(toys.settings(batch=880), 2, torch.device("cpu"))
    with pytest.raises(SettingsError, match="a batch of 450 must fit"):
        require_fitting(toys.settings(batch=450), 1, torch.device("cpu"))
