"""A pool of Ray workers that take jobs from a queue; lost workers are replaced."""

from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tiltrm.errors import DeviceError, TiltrmError
from tiltrm.evaluate.job import Job
from tiltrm.evaluate.run import Progress
from tiltrm.evaluate.store import Store
from tiltrm.evaluate.worker import JobResult
from tiltrm.provenance import release

ATTEMPTS = 3  # workers that one job may lose, and that may fail to start in a row
POLL_SECONDS = 1.0  # between two reports of progress
LONGEST_REASON = 200  # characters of another library's message


class Failure(NamedTuple):
    """A job that was given up, and why."""

    job: Job
    error: TiltrmError


class Assignment(NamedTuple):
    """A worker and its current job; None while the worker starts."""

    actor: Any
    job: Job | None


class WorkerPool:
    """`WorkerPool(ray, start_worker, size, store).run(jobs)` returns the jobs that failed.

    A worker has one job at a time and gets the next one when its result has arrived, so memory
    never holds more results than workers. If a worker is lost, or raises anything but a
    TiltrmError, its job is repeated by a new worker, since a broken device breaks every later job.
    After three such losses the job is given up, and the others go on.
    ray: the module, connected to a cluster. start_worker: makes one actor of `worker.Worker`.
    Proved by tests/evaluate/test_worker_pool.py.
    """

    def __init__(self, ray: Any, start_worker: Callable[[], Any], size: int, store: Store) -> None:
        self.ray, self.start_worker, self.size, self.store = ray, start_worker, size, store
        self.pending: dict[Any, Assignment] = {}  # by the reference of the awaited result
        self.idle: list[Any] = []
        self.queue: deque[Job] = deque()
        self.losses: Counter[str] = Counter()  # lost workers by the key of their job
        self.failures: list[Failure] = []
        self.failed_starts, self.start_error = 0, ""  # in a row; the reason of the last one

    def run(self, jobs: Iterable[Job], progress: Progress | None = None) -> list[Failure]:
        """Compute all jobs; this process writes each shard when it arrives."""
        self.queue.extend(jobs)
        order = {job.key: place for place, job in enumerate(self.queue)}
        total, written = len(order), 0
        try:
            for _ in range(min(self.size, total)):
                self._add_worker()
            while self.queue or any(assigned.job for assigned in self.pending.values()):
                for job, result in self._collect():
                    self.store.write(job, result.columns, result.about)
                    written += 1
                if progress is not None:
                    progress(written + len(self.failures), total)
        finally:
            for actor in (*self.idle, *(assigned.actor for assigned in self.pending.values())):
                self.ray.kill(actor)
        return sorted(self.failures, key=lambda failure: order[failure.job.key])

    def _collect(self) -> list[tuple[Job, JobResult]]:
        """Wait for at least one result, take all that are ready, and give free workers a job."""
        if not self.pending:
            raise DeviceError(
                f"expected a worker for {len(self.queue)} shards, but {self.failed_starts} could "
                f"not start ({self.start_error}); repair the cluster and run the same command again"
            )
        self.ray.wait(list(self.pending), num_returns=1, timeout=POLL_SECONDS)
        ready, _ = self.ray.wait(list(self.pending), num_returns=len(self.pending), timeout=0)
        results = [self._receive(reference) for reference in ready]
        while self.idle and self.queue:
            self._assign(self.idle.pop())
        return [result for result in results if result is not None]

    def _receive(self, reference: Any) -> tuple[Job, JobResult] | None:
        """Handle a result, a failure, a worker that is ready, or a worker that is lost."""
        actor, job = self.pending.pop(reference)
        try:
            result = self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            self.ray.kill(actor)
            self._replace_worker(job, short_reason(error))
            return None
        if job is None:
            self._check_version(result)
        elif isinstance(result, TiltrmError):
            self.failures.append(Failure(job, result))
        self._assign(actor)
        return (job, result) if job is not None and isinstance(result, JobResult) else None

    def _check_version(self, version: str | TiltrmError) -> None:
        """Refuse a worker of another version, whose results must not be mixed with ours."""
        if isinstance(version, TiltrmError):
            raise version
        if version != release():
            raise DeviceError(
                f"expected {release()} on every machine of the cluster, got {version} on one; "
                "install the same version everywhere"
            )
        self.failed_starts = 0

    def _replace_worker(self, job: Job | None, reason: str) -> None:
        """Start another worker, unless too many in a row have failed to start."""
        if job is None:
            self.failed_starts, self.start_error = self.failed_starts + 1, reason
        else:
            self._retry(job, reason)
        if self.queue and not self.idle and self.failed_starts < ATTEMPTS:
            self._add_worker()

    def _retry(self, job: Job, reason: str) -> None:
        self.losses[job.key] += 1
        if self.losses[job.key] < ATTEMPTS:
            self.store.tell(f"a worker was lost at {describe(job)} ({reason}); trying again")
            self.queue.append(job)
        else:
            error = DeviceError(f"given up after {ATTEMPTS} tries ({reason})")
            self.failures.append(Failure(job, error))

    def _add_worker(self) -> None:
        actor = self.start_worker()
        self.pending[actor.ready.remote()] = Assignment(actor, None)

    def _assign(self, actor: Any) -> None:
        """Give a worker the next job; without one it stays idle, in case another job is lost."""
        if not self.queue:
            self.idle.append(actor)
            return
        job = self.queue.popleft()
        self.pending[actor.compute.remote(job)] = Assignment(actor, job)


def describe(job: Job) -> str:
    """A job in words, with the name of its shard."""
    return f"{job.method}, seed {job.seed}, fold {job.fold} of {job.folds} [{job.key}]"


def short_reason(error: Exception) -> str:
    """The important line of one of Ray's long messages."""
    cause = getattr(error, "cause", None)  # the exception of the worker's own code
    if isinstance(cause, Exception):
        text = f"{type(cause).__name__}: {' '.join(str(cause).split())}"
    else:
        *_, last = str(error).strip().splitlines() or [type(error).__name__]
        text = last.strip().partition(". ")[0]
    return text[:LONGEST_REASON].rstrip(".")
