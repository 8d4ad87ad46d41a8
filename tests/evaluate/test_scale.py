"""A cluster gives the shards of one process, whatever workers it loses on the way."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch

from tiltrm.cli import main
from tiltrm.data import Puzzles
from tiltrm.errors import DeviceError, PuzzleError, SettingsError
from tiltrm.evaluate import Job, Store, eval_target, plans, run, scale, worker_pool
from tiltrm.evaluate.scale import RAY_ENVIRONMENT
from tiltrm.model import save
from tiltrm.model.trm import TRM, TRMConfig
from tiltrm.tasks import adopt, registry

from .test_run import table, write_csv

ray = pytest.importorskip("ray", reason="needs the extra [scale]")

THIS = sys.modules[__name__]
LATIN = Path(__file__).parents[2] / "examples/latin.py"
ONCE = "__import__('pathlib').Path(__file__).unlink(missing_ok=True)"  # who comes later finds none


class Marked(Job):
    """A job that leaves a line in a file whenever somebody begins it, and then goes wrong."""

    marks: ClassVar[Path]

    def rows(self, count: int) -> torch.Tensor:
        marks = self.marks / self.key
        with marks.open("a") as file:
            file.write(f"{os.getpid()}\n")
        self.go_wrong(len(marks.read_text().splitlines()))
        return super().rows(count)

    def go_wrong(self, time: int) -> None:
        pass


class DiesOnce(Marked):
    def go_wrong(self, time: int) -> None:
        if time == 1:
            os.kill(os.getpid(), signal.SIGKILL)


class Dies(Marked):
    def go_wrong(self, time: int) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class Mistaken(Marked):
    def go_wrong(self, time: int) -> None:
        raise PuzzleError("a puzzle is wrong")


def altered(job: Job, kind: type[Job]) -> Job:
    return kind(**{name: getattr(job, name) for name in job.__dataclass_fields__})


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of two machines, as far as Ray can tell, with a core each."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        for name, value in RAY_ENVIRONMENT.items():
            patch.setenv(name, value)
        machine = {"num_cpus": 1, "num_gpus": 0, "object_store_memory": 80 * 2**20}
        made = Cluster(initialize_head=True, head_node_args={**machine, "include_dashboard": False})
        made.add_node(**machine)
        yield made.address
        made.shutdown()


@pytest.fixture(scope="module")
def todo(toy: TRM, puzzles: Puzzles, tmp_path_factory: pytest.TempPathFactory) -> list[Job]:
    where = tmp_path_factory.mktemp("files")
    folder = str(save(toy, where / "toy", dtype=None))
    target = eval_target(folder, write_csv(where / "test.csv", puzzles), "Test")
    settings = {"outer_steps": 3, "particles": 3, "cells": True, "by_step": True}
    return [
        *plans.jobs(target, "deterministic", {"outer_steps": 3}, folds=2),
        *plans.jobs(target, "guided", settings, folds=2, seeds=2),
    ]


@pytest.fixture(scope="module")
def alone(todo: list[Job], tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What one process makes of it."""
    folder = tmp_path_factory.mktemp("alone")
    run(todo, Store(folder), torch.device("cpu"))
    return table(todo, folder)


@pytest.fixture
def marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the marked jobs leave their marks; their classes travel to the workers."""
    folder = tmp_path / "marks"
    folder.mkdir()
    monkeypatch.setattr(Marked, "marks", folder, raising=False)
    ray.cloudpickle.register_pickle_by_value(THIS)
    yield folder
    ray.cloudpickle.unregister_pickle_by_value(THIS)


def begun_by(marks: Path, job: Job) -> list[str]:
    return (marks / job.key).read_text().split()


def test_a_worker_killed_in_mid_run_changes_nothing(
    todo: list[Job], alone: bytes, cluster: str, marks: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    jobs = [altered(job, DiesOnce if place == 2 else Marked) for place, job in enumerate(todo)]
    ticks: list[tuple[float, int]] = []
    store = Store(tmp_path / "store")
    scale.run(jobs, store, cluster, progress=lambda done, of: ticks.append((done, of)))
    victim, *rest = begun_by(marks, jobs[2])
    assert len(rest) == 1
    assert [len(begun_by(marks, job)) for job in jobs] == [1, 1, 2, 1, 1, 1]
    assert all(begun_by(marks, job)[-1] != victim for job in jobs[3:])
    assert ticks == sorted(ticks)
    assert ticks[-1] == (len(jobs), len(jobs))
    assert table(todo, tmp_path / "store") == alone
    assert capsys.readouterr().out == ""  # Ray has much to say about lost workers
    assert not ray.is_initialized()
    scale.run(todo, store, "nowhere:1")  # nothing is missing, so nobody is asked


def test_what_cannot_be_done_is_named_and_the_rest_is_done(
    todo: list[Job], cluster: str, marks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_pool, "ATTEMPTS", 2)  # a worker takes seconds to start
    bad = [altered(todo[0], Dies), altered(todo[1], Mistaken)]
    told: list[str] = []
    store = Store(tmp_path / "store", told.append)
    with pytest.raises(DeviceError, match="2 of 6 shards could not be computed") as caught:
        scale.run([*bad, *todo[2:]], store, cluster)
    sentence = str(caught.value)
    for job, why in zip(bad, ("worker process has died", "a puzzle is wrong"), strict=True):
        place = f"{job.method}, seed {job.seed}, fold {job.fold} of {job.folds} [{job.key}]: "
        assert why in sentence.partition(place)[2]
    assert "\n" not in sentence
    assert [len(begun_by(marks, job)) for job in bad] == [2, 1]
    assert len(told) == 1
    assert f"a worker was lost at deterministic, seed 0, fold 0 of 2 [{todo[0].key}]" in told[0]
    assert store.missing(todo) == todo[:2]


class CannotStart:
    def __init__(self, *_: Any) -> None:
        raise RuntimeError("no torch here")

    def ready(self) -> None:
        pass


def test_workers_that_cannot_start(
    todo: list[Job], cluster: str, marks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale, "Worker", CannotStart)
    sentence = (
        r"expected a worker for 6 shards, but \d could not start \(RuntimeError: no torch here"
    )
    with pytest.raises(DeviceError, match=sentence) as caught:
        scale.run(todo, Store(tmp_path / "store"), cluster)
    assert "\n" not in str(caught.value)


def test_a_cluster_of_ones_own_by_the_command(
    todo: list[Job], capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "evaluate", "--model", todo[0].model, "--data", todo[0].data, "--folds", "2", "--seeds",
        "2", "--method", "deterministic", "guided", "--set", "outer_steps=3", "particles=3",
        "--device", "cpu",
    ]  # fmt: skip
    assert main(words) == 0
    one, _ = capsys.readouterr()
    # In a process of its own, since a driver that changes clusters loses its workers.
    command = [sys.executable, "-m", "tiltrm.cli", *words, "--ray", "local"]
    other = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (other.returncode, other.stdout) == (0, one)
    assert all(line.startswith("evaluating: ") for line in other.stderr.splitlines())  # progress


def test_a_task_of_ones_own_travels_as_the_text_of_its_file(
    cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], no_progress: None,
) -> None:  # fmt: skip
    monkeypatch.setattr(registry, "_registered", {})
    torch.manual_seed(0)
    sizes = TRMConfig(cells=25, vocabulary=7, width=16, layers=1, heads=2, prefix=0, inner_steps=2)
    folder = str(save(TRM(sizes), tmp_path / "model", task="latin5", dtype=None))
    own = adopt(f"{LATIN}:LATIN")
    pairs = [own.generate(seed) for seed in range(6)]
    puzzles = Puzzles(own, torch.stack([q for q, _ in pairs]), torch.stack([a for _, a in pairs]))
    data = write_csv(tmp_path / "test.csv", puzzles)
    printed: list[str] = []
    stores = tmp_path / "alone", tmp_path / "spread"
    for store, more in zip(stores, ([], ["--ray", cluster]), strict=True):
        monkeypatch.setattr(registry, "_registered", {})
        (tmp_path / "mine.py").write_text(f"{LATIN.read_text()}\n{ONCE}\n")
        words = [
            "evaluate", "--task", f"{tmp_path / 'mine.py'}:LATIN", "--model", folder,
            "--data", data, "--folds", "2", "--seeds", "1", "--method", "adaptive_rules",
            "symmetry:copies=2", "--set", "outer_steps=2", "--device", "cpu", "--store",
            str(store), *more,
        ]  # fmt: skip
        code = main(words)
        out, err = capsys.readouterr()
        assert (code, err) == (0, "")
        assert not (tmp_path / "mine.py").exists()
        printed.append(out)
    assert printed[0] == printed[1]
    jobs = Store(stores[0]).jobs()
    assert len(jobs) == 4
    assert table(jobs, stores[0]) == table(jobs, stores[1])


def test_addresses_that_lead_nowhere(todo: list[Job], tmp_path: Path) -> None:
    store = Store(tmp_path)
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(DeviceError, match=r"Ray cluster at 127.0.0.1:\d+, got no answer"):
            scale.run(todo, store, f"127.0.0.1:{taken.getsockname()[1]}")
    for address in ("rubbish", "ray://host:1", "host:", "host:99999"):
        with pytest.raises(SettingsError, match="must be HOST:PORT, auto or local"):
            scale.run(todo, store, address)
    with pytest.raises(SettingsError, match="gpus must be 0 or more, got -1"):
        scale.run(todo, store, gpus=-1)


def test_wrong_jobs_are_told_before_a_cluster_is_asked(
    todo: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray, "init", None)
    settings = tuple({**todo[-1].options, "guide": "magic"}.items())
    with pytest.raises(SettingsError, match="guide must be"):
        scale.run([*todo, replace(todo[-1], settings=settings)], Store(tmp_path))


def test_a_cluster_that_cannot_be_joined(
    todo: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise RuntimeError("Version mismatch:\n  Ray: 2.0.")

    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(DeviceError, match=r"got: Version mismatch: Ray: 2.0; start one"):
        scale.run(todo, Store(tmp_path), "auto")


def test_without_ray(todo: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        SettingsError, match=r"needs ray, which is not installed; .*tiltrm\[scale\]"
    ):
        scale.run(todo, Store(tmp_path))
