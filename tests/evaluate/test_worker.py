"""What a worker of a cluster receives, and its errors if that is not enough."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tiltrm.errors import SettingsError
from tiltrm.evaluate.options import PRECISION
from tiltrm.evaluate.target import fingerprint
from tiltrm.evaluate.worker import Worker, task_sources
from tiltrm.model import load, save
from tiltrm.model.int8 import is_int8
from tiltrm.model.trm import TRM
from tiltrm.provenance import release
from tiltrm.tasks import adopt, by_name, registry
from tiltrm.tasks.registry import TaskSource

from .toys import a_job

FILE = b"from tiltrm.tasks import Grid\nTILES = Grid('tiles', 3, '.ab')\n"


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})


def test_only_tasks_that_this_process_loaded_are_sent(tmp_path: Path) -> None:
    """A job's task is a name that may come from anybody's checkpoint or store."""
    path = tmp_path / "tiles.py"
    path.write_bytes(FILE)
    foreign = [a_job(task=name) for name in ("sudoku", f"{path}:TILES", "tiles")]
    assert task_sources(foreign) == []
    adopt(f"{path}:TILES")
    assert task_sources(foreign) == [TaskSource(str(path), "TILES", FILE)]


def test_a_worker_registers_the_tasks_it_was_sent() -> None:
    assert Worker("cpu", {}, [TaskSource("tiles.py", "TILES", FILE)]).ready() == release()
    assert by_name("tiles").side == 3


def test_a_worker_loads_a_model_once_for_each_precision(
    toy: TRM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = save(toy, tmp_path / "toy", dtype=None)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    job = replace(a_job(task="sudoku4"), weights=fingerprint(load(folder), "sudoku4"), settings=())
    worker, cpu = Worker("cpu", {}), torch.device("cpu")
    monkeypatch.setattr(worker, "_fetch", lambda _: files)
    exact = worker._model(job, cpu)
    assert worker._model(job, cpu) is exact
    rounded = worker._model(replace(job, settings=((PRECISION, "int8"),)), cpu)
    assert [is_int8(model) for model in (exact, rounded)] == [False, True]
    assert len(worker.models) == 2


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            TaskSource("nowhere", "TASK", None),
            "nowhere: expected Python with a task, got ModuleNot",
        ),
        (
            TaskSource("far.py", "TASK", b"open('/nowhere/table')"),
            "far.py: expected Python with a ta",
        ),
    ],
)
def test_a_machine_that_lacks_something_says_so(source: TaskSource, said: str) -> None:
    error = Worker("cpu", {}, [source]).ready()
    assert isinstance(error, SettingsError)
    assert str(error).startswith(said)
    assert "on a machine of the cluster; a task there is one file that needs no others" in str(
        error
    )
