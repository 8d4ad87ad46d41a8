"""TensorBoard: every number once if the package is installed; one sentence if it is not."""

import importlib.util
import math
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest

from tiltrm.errors import SettingsError
from tiltrm.train import tensorboard
from tiltrm.train.log import METRICS, RunLog, current_lines
from tiltrm.train.tensorboard import TensorBoardWriter
from tiltrm.train.trainer import Trainer

from . import toys

package = pytest.mark.skipif(
    importlib.util.find_spec("tensorboard") is None, reason="tensorboard is not installed"
)


def test_numbers_are_found_in_groups() -> None:
    values = {"loss": 1, "val": {"exact": {"3": 0.5}, "auroc": math.nan}, "name": "x", "none": None}
    assert dict(tensorboard.flatten("train", values)) == {
        "train/loss": 1.0,
        "train/val/exact/3": 0.5,
    }


class Writer:
    """Stands for the package's writer; drops points as TensorBoard does when it reads the files."""

    points: ClassVar[list[tuple[str, float, int]]] = []

    def __init__(self, _: str, purge_step: int | None = None) -> None:
        if purge_step is not None:
            self.points[:] = [point for point in self.points if point[2] < purge_step]

    def add_scalar(self, name: str, value: float, step: int) -> None:
        self.points.append((name, value, step))

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float, int]]:
    """The points that TensorBoard would show, by a writer that needs no package."""
    module = SimpleNamespace(SummaryWriter=Writer)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    Writer.points.clear()
    return Writer.points


def test_the_log_goes_to_tensorboard_too(
    tmp_path: Path, points: list[tuple[str, float, int]]
) -> None:
    RunLog(tmp_path, True, TensorBoardWriter(tmp_path)).write("train", 7, loss=0.5)
    assert points == [("train/loss", 0.5, 7)]


def observed(run: Trainer, *marks: int) -> None:
    """Points at these steps."""
    for mark in marks:
        toys.advance(run, mark - run.clock.step)
        run.log.write("train", mark, loss=float(mark))


def begun(folder: Path) -> Trainer:
    """A run with TensorBoard that begins, or goes on if it can."""
    run = toys.trainer(folder)
    run.log.tensorboard = TensorBoardWriter(folder)
    if not run.resume():
        run.log.begin(0, {})
    return run


def killed_and_resumed(folder: Path) -> list[int]:
    """Lost before its first save, then at step 13; the steps of points that must be left."""
    observed(begun(folder), 2, 5)
    run = begun(folder)
    observed(run, 3, 6)
    run.save()
    observed(run, 9, 13)
    observed(begun(folder), 11, 12)
    return [3, 6, 11, 12]


def test_points_that_were_lost_are_taken_back(
    tmp_path: Path, points: list[tuple[str, float, int]]
) -> None:
    """As the log drops its lines, also those between the saved step and the first new one."""
    left = killed_and_resumed(tmp_path)
    assert [step for name, _, step in points if name == "train/loss"] == left
    assert [line.step for line in current_lines(tmp_path / METRICS, "train")] == left


@package
def test_tensorboard_reads_what_is_left(tmp_path: Path) -> None:
    """Its own reader, on the files as they are."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    left = killed_and_resumed(tmp_path)
    found = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    curve = [(point.step, point.value) for point in found.Scalars("train/loss")]
    assert curve == [(step, float(step)) for step in left]


def test_without_the_package_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(SettingsError, match=r"pip install tiltrm\[train\]"):
        TensorBoardWriter(tmp_path)


@package
def test_a_run_writes_curves(tmp_path: Path) -> None:
    run = toys.trainer(tmp_path, steps=3)
    run.log.tensorboard = TensorBoardWriter(tmp_path)
    run.run()
    assert list((tmp_path / "tensorboard").glob("events*"))
