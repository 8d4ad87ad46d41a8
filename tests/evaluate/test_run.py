"""Whatever is killed, resumed or reordered, the tables are the same to the byte."""

import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tiltrm.data import Puzzles
from tiltrm.data.splits import checksum
from tiltrm.diagnose import diagnose
from tiltrm.errors import CheckpointError, DataError, SettingsError
from tiltrm.evaluate import Job, Store, eval_target, plans, run, summarise
from tiltrm.evaluate.job import ALGORITHM
from tiltrm.evaluate.run import Sources, check, do
from tiltrm.evaluate.target import fingerprint
from tiltrm.explore import Exploration
from tiltrm.model import load, save
from tiltrm.model.trm import TRM

from .toys import Wells, a_target

CPU = torch.device("cpu")


@pytest.fixture
def known(model: Wells, puzzles: Puzzles, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Job]]:
    """Jobs of several methods; their model and their puzzles are the toys."""
    monkeypatch.setattr(Sources, "model", lambda self, job: model)
    monkeypatch.setattr(Sources, "puzzles", lambda self, job: puzzles)
    target = a_target(12)
    settings = {"outer_steps": 4, "by_step": True}
    return iter([[
        *plans.jobs(target, "deterministic", settings, folds=3),
        *plans.jobs(target, "guided", {**settings, "particles": 4}, folds=3, seeds=2),
        *plans.jobs(target, "halt_first", {"outer_steps": 6}, folds=3, seeds=2),
    ]])  # fmt: skip


def table(jobs: list[Job], folder: Path) -> bytes:
    """Everything that a table is made of."""
    shards = Store(folder).read(jobs)
    text = json.dumps([row.as_dict() for row in summarise(shards)]).encode()
    for shard in shards:
        for name, column in sorted(shard.columns.items()):
            if column is not None:
                text += name.encode() + column.tobytes() if column.dtype != object else b""
    return text


class Killed(BaseException):
    """As a signal would."""


@pytest.mark.parametrize("after", [0, 1, 7])
def test_killed_and_resumed(
    known: Iterator[list[Job]], tmp_path: Path, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = next(known)
    run(jobs, Store(tmp_path / "one"), CPU)
    done: list[str] = []
    write = Store.write

    def dying(self: Store, job: Job, *rest: Any) -> None:
        if len(done) == after:
            raise Killed
        done.append(job.key)
        write(self, job, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "write", dying)
        with pytest.raises(Killed):
            run(jobs, Store(tmp_path / "two"), CPU)
    assert len(Store(tmp_path / "two").missing(jobs)) == len(jobs) - after
    again: list[str] = []
    monkeypatch.setattr(
        Store, "write", lambda self, job, *rest: (again.append(job.key), write(self, job, *rest))
    )
    run(list(reversed(jobs)), Store(tmp_path / "two"), CPU)
    assert set(done).isdisjoint(again)
    assert len(done) + len(again) == len(jobs)
    assert table(jobs, tmp_path / "one") == table(jobs, tmp_path / "two")


def test_a_second_run_computes_nothing(
    known: Iterator[list[Job]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = next(known)
    ticks: list[tuple[float, int]] = []
    run(jobs, Store(tmp_path), CPU, lambda done, of: ticks.append((done, of)))
    assert ticks == sorted(ticks)
    assert ticks[-1] == (len(jobs), len(jobs))
    monkeypatch.setattr(Sources, "model", None)
    run(jobs, Store(tmp_path), CPU)


def test_about_says_how_and_does_not_enter_the_table(
    known: Iterator[list[Job]], tmp_path: Path
) -> None:
    jobs = next(known)[:1]
    run(jobs, Store(tmp_path), CPU)
    (shard,) = Store(tmp_path).read(jobs)
    assert set(shard.about) == {"commit", "tiltrm", "algorithm", "torch", "device", "seconds"}
    assert shard.about["algorithm"] == ALGORITHM
    assert shard.about["seconds"] > 0


RESULTS = {1: "3f36203c415dc3d7"}  # of each ALGORITHM: what the jobs below give


def test_results_are_those_of_the_algorithm(known: Iterator[list[Job]], tmp_path: Path) -> None:
    """If this fails on purpose, raise ALGORITHM, so that stores name the shards computed before."""
    jobs = [
        *next(known),
        *plans.jobs(a_target(12), "adaptive", {"outer_steps": 30}, folds=1),
        *plans.jobs(a_target(12), "ptrm", {"outer_steps": 6, "particles": 5}, folds=1),
    ]
    run(jobs, Store(tmp_path), CPU)
    found = [
        shard[name].tolist()
        for shard in Store(tmp_path).read(jobs)
        for name in ("puzzle", "exact", "evaluations", "decided_by")
    ]
    digest = hashlib.sha256(json.dumps(found).encode()).hexdigest()[:16]
    assert RESULTS[ALGORITHM] == digest


def write_csv(path: Path, puzzles: Puzzles) -> str:
    decode = puzzles.task.decode
    rows = zip(puzzles.questions, puzzles.labels(), strict=True)
    path.write_text("question,answer\n" + "".join(f"{decode(q)},{decode(a)}\n" for q, a in rows))
    return str(path)


@pytest.fixture
def files(toy: TRM, puzzles: Puzzles, tmp_path: Path) -> tuple[str, str]:
    folder = save(toy, tmp_path / "toy", dtype=None)
    return str(folder), write_csv(tmp_path / "known.csv", puzzles)


def test_models_and_puzzles_are_known_by_their_content(
    files: tuple[str, str], toy: TRM, puzzles: Puzzles, tmp_path: Path
) -> None:
    folder, data = files
    target = eval_target(folder, data, "Test")
    assert (target.task, target.puzzles) == ("sudoku4", 12)
    assert target.checksum == checksum(puzzles)
    assert target.weights == fingerprint(toy) == fingerprint(load(folder))
    (job,) = plans.jobs(target, "deterministic", {"outer_steps": 1})
    copy = str(save(toy, tmp_path / "copy", dtype=None))
    (same,) = plans.jobs(eval_target(copy, data, "x"), "deterministic", {"outer_steps": 1})
    assert same.key == job.key
    other = str(save(toy, tmp_path / "other", dtype=None, decide_above=1.0))
    assert eval_target(other, data, "Test").weights != target.weights
    at_once = load(other)
    at_once.decide_settled = False
    assert fingerprint(at_once) != fingerprint(load(other))
    write_csv(Path(data), puzzles.take(slice(0, 11)))
    with pytest.raises(DataError, match="SHA-256"):
        run([job], Store(tmp_path / "s"), CPU)
    save(toy, folder, dtype=None, decide_above=1.0)
    with pytest.raises(CheckpointError, match="expected the weights"):
        run([job], Store(tmp_path / "s"), CPU)


def test_a_diagnosis_is_a_shard_too(files: tuple[str, str], tmp_path: Path) -> None:
    target = eval_target(*files, "Test")
    given = {"particles": 3, "outer_steps": 3, "noises": [0.2], "rooted": 1}
    (job,) = plans.jobs(target, "diagnose", given, limit=4)
    store = Store(tmp_path / "s")
    run([job], store, CPU)
    (shard,) = store.read([job])
    found = json.loads(shard["figures"][0])
    model, data = Sources(CPU).model(job), Sources(CPU).puzzles(job)
    small = Exploration(particles=3, outer_steps=3)
    wanted = diagnose(model, data.questions[:4], data.labels()[:4], task=data.task, settings=small,
                      noises=[0.2], rooted=1)  # fmt: skip
    assert found == json.loads(wanted.as_json())
    assert summarise([shard]) == []


def test_what_only_the_model_can_tell_is_told_before_anything_is_computed(
    files: tuple[str, str], tmp_path: Path
) -> None:
    target = eval_target(*files, "Test")
    good = plans.jobs(target, "deterministic", {"outer_steps": 1})
    for bad in (
        plans.jobs(target, "guided", {"guide": "magic"}),
        plans.jobs(target, "diagnose", {"guides": ["magic"]}),
    ):
        store = Store(tmp_path / "s")
        with pytest.raises(SettingsError, match="guide must be"):
            run([*good, *bad], store, CPU)
        assert store.jobs() == []


def test_too_many_views_are_told_before_anything_is_computed(
    files: tuple[str, str], model: Wells
) -> None:
    (job,) = plans.jobs(eval_target(*files, "Test"), "symmetry", {"copies": 9})
    check(job, model)
    with pytest.raises(SettingsError, match="symmetries of maze"):
        check(replace(job, task="maze"), model)


def test_do_is_a_function_of_the_job(
    known: Iterator[list[Job]], model: Wells, puzzles: Puzzles
) -> None:
    for job in next(known):
        one, other = do(job, model, puzzles), do(job, model, puzzles)
        for name, column in one.items():
            if isinstance(column, torch.Tensor):
                assert torch.equal(column, other[name]), name  # type: ignore[arg-type]


def test_a_shard_names_its_puzzles_by_their_rows(model: Wells, puzzles: Puzzles) -> None:
    job = plans.jobs(a_target(12), "deterministic", {"outer_steps": 2}, folds=3)[1]
    assert do(job, model, puzzles)["puzzle"].tolist() == [1, 4, 7, 10]  # type: ignore[union-attr]


def test_the_same_weights_stepped_otherwise_are_another_model(toy: TRM) -> None:
    other = TRM(replace(toy.config, inner_steps=3))
    other.load_state_dict(toy.state_dict())
    other.decide_above = toy.decide_above
    assert fingerprint(other) != fingerprint(toy)


def test_a_diagnosis_has_the_settings_of_its_job(
    model: Wells, puzzles: Puzzles, monkeypatch: pytest.MonkeyPatch
) -> None:
    class AskedError(Exception):
        """Carries nothing: the diagnosis is not made."""

    def diagnose(*_: Any, settings: Any, **more: Any) -> None:
        assert (settings.noise, settings.beta) == (0.7, 0.6)
        assert (settings.particles, settings.outer_steps) == (3, 5)
        assert (more["seed"], more["rooted"], more["noises"]) == (4, 1, (0.2,))
        assert list(more["guides"]) == ["halting", "residual"]
        raise AskedError

    own = {"particles": 3, "outer_steps": 5, "noise": 0.7, "beta": 0.6, "rooted": 1,
           "noises": [0.2], "guides": ["halting", "residual"]}  # fmt: skip
    job = replace(plans.jobs(a_target(12), "diagnose", own)[0], seed=4)
    monkeypatch.setattr(sys.modules["tiltrm.evaluate.run"], "diagnose", diagnose)
    with pytest.raises(AskedError):
        do(job, model, puzzles)
