"""Workers that take jobs from a queue, one each at a time; the lost are replaced."""

from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tiltrm.errors import DeviceError, TiltrmError
from tiltrm.evaluate.job import Job
from tiltrm.evaluate.run import Progress
from tiltrm.evaluate.store import Store
from tiltrm.evaluate.worker import Done
from tiltrm.provenance import release

ATTEMPTS = 3  # workers that a job may cost, and that may fail to start one after the other
PATIENCE = 1.0  # seconds between two reports of progress
LONGEST = 200  # characters of another library's message


class Failure(NamedTuple):
    """A job that was given up, and why."""

    job: Job
    error: TiltrmError


class Hand(NamedTuple):
    """A worker, and what it is at: a job, or None while it starts."""

    actor: Any
    job: Job | None


class Crew:
    """`Crew(ray, hire, size, store).work(todo)`: the jobs that could not be done.

    A worker holds one job and is given the next when its result is here, so there are never more
    results in memory than workers. A job whose worker is lost, or that raised what no job should,
    is done again by a new worker, since a broken device breaks every job after it; at the third
    such end it is given up, and the others go on. `ray` is the module, connected.
    Proved by tests/evaluate/test_crew.py.
    """

    def __init__(self, ray: Any, hire: Callable[[], Any], size: int, store: Store) -> None:
        self.ray, self.hire, self.size, self.store = ray, hire, size, store
        self.at: dict[Any, Hand] = {}  # by the reference of what is awaited
        self.idle: list[Any] = []
        self.queue: deque[Job] = deque()
        self.lost: Counter[str] = Counter()  # workers, by the job's key
        self.failures: list[Failure] = []
        self.false_starts, self.reason = 0, ""  # since a worker last got ready; the last one's

    def work(self, todo: Iterable[Job], progress: Progress | None = None) -> list[Failure]:
        """Do all of it, each shard written by this process as it comes."""
        self.queue.extend(todo)
        places = {job.key: place for place, job in enumerate(self.queue)}
        total, written = len(places), 0
        try:
            for _ in range(min(self.size, total)):
                self._start()
            while self.queue or any(hand.job for hand in self.at.values()):
                for job, done in self._collect():
                    self.store.write(job, done.columns, done.about)
                    written += 1
                if progress is not None:
                    progress(written + len(self.failures), total)
        finally:
            for actor in (*self.idle, *(hand.actor for hand in self.at.values())):
                self.ray.kill(actor)
        return sorted(self.failures, key=lambda failure: places[failure.job.key])

    def _collect(self) -> list[tuple[Job, Done]]:
        """Wait for something, and take all there is; every free worker has its next job by then."""
        if not self.at:
            raise DeviceError(
                f"expected a worker for {len(self.queue)} shards, but {self.false_starts} could "
                f"not start ({self.reason}); mend the cluster and run the same command again"
            )
        self.ray.wait(list(self.at), num_returns=1, timeout=PATIENCE)
        ready, _ = self.ray.wait(list(self.at), num_returns=len(self.at), timeout=0)
        found = [self._settle(reference) for reference in ready]
        while self.idle and self.queue:
            self._give(self.idle.pop())
        return [each for each in found if each is not None]

    def _settle(self, reference: Any) -> tuple[Job, Done] | None:
        """Take what came: a result, a failure, or the news that a worker is ready, or lost."""
        actor, job = self.at.pop(reference)
        try:
            result = self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            self.ray.kill(actor)
            self._replace(job, reason(error))
            return None
        if job is None:
            self._check(result)
        elif isinstance(result, TiltrmError):
            self.failures.append(Failure(job, result))
        self._give(actor)
        return (job, result) if job is not None and isinstance(result, Done) else None

    def _check(self, version: str | TiltrmError) -> None:
        """A worker got ready; results of another version must not be mixed in."""
        if isinstance(version, TiltrmError):
            raise version
        if version != release():
            raise DeviceError(
                f"expected {release()} on every machine of the cluster, got {version} on one; "
                "install the same version everywhere"
            )
        self.false_starts = 0

    def _replace(self, job: Job | None, why: str) -> None:
        """A worker is gone. One that never got ready is not replaced for ever."""
        if job is None:
            self.false_starts, self.reason = self.false_starts + 1, why
        else:
            self._again(job, why)
        if self.queue and not self.idle and self.false_starts < ATTEMPTS:
            self._start()

    def _again(self, job: Job, why: str) -> None:
        self.lost[job.key] += 1
        if self.lost[job.key] < ATTEMPTS:
            self.store.tell(f"a worker was lost at {named(job)} ({why}); another does it again")
            self.queue.append(job)
        else:
            error = DeviceError(f"given up after {ATTEMPTS} tries ({why})")
            self.failures.append(Failure(job, error))

    def _start(self) -> None:
        actor = self.hire()
        self.at[actor.ready.remote()] = Hand(actor, None)

    def _give(self, actor: Any) -> None:
        """The next job to a free worker. Those without one wait for what others may lose."""
        if not self.queue:
            self.idle.append(actor)
            return
        job = self.queue.popleft()
        self.at[actor.do.remote(job)] = Hand(actor, job)


def named(job: Job) -> str:
    """What a person calls it, and its shard's name."""
    return f"{job.method}, seed {job.seed}, fold {job.fold} of {job.folds} [{job.key}]"


def reason(error: Exception) -> str:
    """Why a worker is gone, in a few words of Ray's many."""
    cause = getattr(error, "cause", None)  # what the worker's own code raised
    if isinstance(cause, Exception):
        text = f"{type(cause).__name__}: {' '.join(str(cause).split())}"
    else:
        *_, last = str(error).strip().splitlines() or [type(error).__name__]
        text = last.strip().partition(". ")[0]
    return text[:LONGEST].rstrip(".")
