"""TensorBoard: every number once, where the package is there; a clear word where it is not."""

import importlib.util
import math
import sys
from pathlib import Path

import pytest

from tiltrm.errors import SettingsError
from tiltrm.train import board
from tiltrm.train.board import Board
from tiltrm.train.log import Log

from . import toys


def test_numbers_are_found_in_groups() -> None:
    values = {"loss": 1, "val": {"exact": {"3": 0.5}, "auroc": math.nan}, "name": "x", "none": None}
    assert dict(board.numbers("train", values)) == {"train/loss": 1.0, "train/val/exact/3": 0.5}


class Writer:
    def __init__(self) -> None:
        self.points: list[tuple[str, float, int]] = []

    def add_scalar(self, name: str, value: float, step: int) -> None:
        self.points.append((name, value, step))

    def flush(self) -> None:
        pass


def test_the_record_goes_to_the_board_too(tmp_path: Path) -> None:
    made = object.__new__(Board)
    made.writer = Writer()
    Log(tmp_path, True, made).write("train", 7, loss=0.5)
    assert made.writer.points == [("train/loss", 0.5, 7)]


def test_without_the_package_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(SettingsError, match=r"pip install tiltrm\[train\]"):
        Board(tmp_path)


@pytest.mark.skipif(
    importlib.util.find_spec("tensorboard") is None, reason="tensorboard is not installed"
)
def test_a_run_writes_curves(tmp_path: Path) -> None:
    run = toys.trainer(tmp_path, steps=3)
    run.log.board = Board(tmp_path)
    run.run()
    assert list((tmp_path / "tensorboard").glob("events*"))
