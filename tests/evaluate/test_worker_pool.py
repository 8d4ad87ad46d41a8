"""No job is lost with its worker: the pool on a simulated Ray, whose failures can be arranged."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tiltrm.errors import DeviceError, PuzzleError
from tiltrm.evaluate import Job, Store
from tiltrm.evaluate.worker import JobResult
from tiltrm.evaluate.worker_pool import ATTEMPTS, WorkerPool, short_reason
from tiltrm.provenance import release

from .toys import a_job, a_shard

JOBS = [a_job(seed=seed) for seed in range(8)]
DONE = JobResult(dict(a_shard(JOBS[0], [0], [1]).columns), {})
NEVER = object()  # what is still awaited when all else is done


class Lost(Exception):  # noqa: N818
    """As Ray says it."""


class Reference:
    """To what a call gave."""

    def __init__(self, result: Any) -> None:
        self.result = result


class FakeRay:
    """Workers that do what `does(worker, job)` says, and start as `starts(worker)` says."""

    exceptions = SimpleNamespace(RayError=Lost)

    def __init__(
        self, does: Callable[..., Any], starts: Callable[[int], Any] | None = None
    ) -> None:
        self.does, self.starts = does, starts or (lambda worker: release())
        self.started, self.killed = 0, list[int]()
        self.given: list[tuple[int, int]] = []  # (worker, seed of its job)
        self.awaited = 0  # calls of `compute` whose result was not taken
        self.most_awaited = 0

    def start(self) -> Any:
        number, self.started = self.started, self.started + 1

        def compute(job: Job) -> Reference:
            assert number not in self.killed, "a job was given to a dead worker"
            self.given.append((number, job.seed))
            self.awaited += 1
            self.most_awaited = max(self.most_awaited, self.awaited)
            return Reference((self.does(number, job),))

        return SimpleNamespace(
            number=number,
            ready=SimpleNamespace(remote=lambda: Reference(self.starts(number))),
            compute=SimpleNamespace(remote=compute),
        )

    def wait(self, references: list[Reference], **_: Any) -> tuple[list[Reference], None]:
        return [each for each in references if each.result is not NEVER], None

    def get(self, reference: Reference) -> Any:
        result = reference.result
        if isinstance(result, tuple) and not isinstance(result, JobResult):
            self.awaited -= 1
            (result,) = result
        if isinstance(result, Lost):
            raise result
        return result

    def kill(self, actor: Any) -> None:
        self.killed.append(actor.number)

    def pool(self, size: int, folder: Path) -> WorkerPool:
        return WorkerPool(self, self.start, size, Store(folder, lambda sentence: None))


def test_every_job_once_and_one_at_a_time(tmp_path: Path) -> None:
    ray = FakeRay(lambda worker, job: DONE)
    ticks: list[tuple[float, int]] = []
    pool = ray.pool(3, tmp_path)
    assert pool.run(JOBS, lambda done, of: ticks.append((done, of))) == []
    assert sorted(seed for _, seed in ray.given) == list(range(8))
    assert pool.store.missing(JOBS) == []
    assert ray.most_awaited <= 3
    assert (ray.started, sorted(ray.killed)) == (3, [0, 1, 2])
    assert ticks[-1] == (8, 8)


def test_no_more_workers_than_jobs(tmp_path: Path) -> None:
    ray = FakeRay(lambda worker, job: DONE)
    ray.pool(50, tmp_path).run(JOBS[:2])
    assert ray.started == 2


def test_a_job_that_kills_its_workers_is_given_up(tmp_path: Path) -> None:
    ray = FakeRay(lambda worker, job: Lost("died") if job.seed == 1 else DONE)
    pool = ray.pool(2, tmp_path)
    (failure,) = pool.run(JOBS)
    assert failure.job == JOBS[1]
    assert isinstance(failure.error, DeviceError)
    workers = [worker for worker, seed in ray.given if seed == 1]
    assert len(set(workers)) == len(workers) == ATTEMPTS
    assert pool.store.missing(JOBS) == [JOBS[1]]


def test_a_tiltrm_error_is_not_tried_again(tmp_path: Path) -> None:
    wrong = PuzzleError("wrong")
    ray = FakeRay(lambda worker, job: wrong if job.seed == 1 else DONE)
    assert ray.pool(2, tmp_path).run(JOBS) == [(JOBS[1], wrong)]
    assert len(ray.given) == len(JOBS)
    assert ray.started == 2


def test_a_broken_worker_spoils_one_job_only(tmp_path: Path) -> None:
    ray = FakeRay(lambda worker, job: Lost("device") if worker == 0 else DONE)
    assert ray.pool(2, tmp_path).run(JOBS) == []
    assert [worker for worker, _ in ray.given].count(0) == 1
    assert ray.started == 3


def test_an_idle_worker_takes_a_lost_job(tmp_path: Path) -> None:
    """Where a machine is gone there is no room for a new worker: it would wait for ever."""
    failing = iter([DONE, Lost("machine"), DONE])
    ray = FakeRay(
        lambda worker, job: next(failing), lambda worker: release() if worker < 2 else NEVER
    )
    pool = ray.pool(2, tmp_path)
    assert pool.run(JOBS[:2]) == []
    assert pool.store.missing(JOBS[:2]) == []


def test_a_machine_where_no_worker_starts_is_left_alone(tmp_path: Path) -> None:
    ray = FakeRay(
        lambda worker, job: DONE, lambda worker: release() if worker == 0 else Lost("broken")
    )
    assert ray.pool(2, tmp_path).run(JOBS) == []
    assert ray.started <= 2 + ATTEMPTS


def test_no_worker_starts(tmp_path: Path) -> None:
    ray = FakeRay(lambda worker, job: DONE, lambda worker: Lost("no\nmodule"))
    with pytest.raises(DeviceError, match=r"expected a worker for 8 shards, .* start \(module\)"):
        ray.pool(2, tmp_path).run(JOBS)
    assert ray.started <= 2 + ATTEMPTS


@pytest.mark.parametrize(
    ("start", "sentence"),
    [
        ("tiltrm 0.0.1", "on every machine of the cluster, got tiltrm 0.0.1 on one"),
        (DeviceError("expected a CUDA device"), "expected a CUDA device"),
    ],
)
def test_workers_that_must_not_be_used(start: Any, sentence: str, tmp_path: Path) -> None:
    ray = FakeRay(lambda worker, job: DONE, lambda worker: start)
    with pytest.raises(DeviceError, match=sentence):
        ray.pool(2, tmp_path).run(JOBS)
    assert ray.given == []
    assert len(set(ray.killed)) >= 1


def test_reasons_are_short() -> None:
    assert short_reason(
        Lost("The actor died.\n\tpid: 1\nIts process has died. Worker exit: x.")
    ) == ("Its process has died")
    crashed = Lost("a traceback\nof many lines")
    crashed.cause = RuntimeError("the device\nis broken.")  # type: ignore[attr-defined]
    assert short_reason(crashed) == "RuntimeError: the device is broken"
    assert short_reason(Lost()) == "Lost"
    assert len(short_reason(Lost("x" * 10_000))) <= 200
