"""The missing shards spread over a Ray cluster, with the results of one process."""

import importlib
import io
import os
import socket
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from types import ModuleType
from typing import Any, TextIO

from tiltrm.errors import DeviceError, SettingsError, TiltrmError
from tiltrm.evaluate.crew import LONGEST, Crew, Failure, named
from tiltrm.evaluate.job import Job
from tiltrm.evaluate.run import Progress
from tiltrm.evaluate.store import Store
from tiltrm.evaluate.worker import Worker, parcels, sources

LOCAL, AUTO = "local", "auto"
ANSWER_WITHIN = 5.0  # seconds for a cluster to take a connection; Ray itself waits for minutes
TOLD = 3  # failed jobs that a message names
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent to anybody
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else a warning on machines with a GPU
}


def run(
    jobs: Iterable[Job], store: Store, address: str | None = None, *, gpus: int | None = None,
    progress: Progress | None = None,
) -> None:  # fmt: skip
    """Compute the shards that the store lacks on the cluster at `address`.

    address: HOST:PORT of a running cluster, of which this machine is a part; 'auto', the one that
    runs here; 'local', a new one on this machine alone. Unless given it is RAY_ADDRESS, or local.
    gpus: so many workers with a GPU each, waited for until the cluster has them; 0 for workers
    with a CPU core each; unless given, all GPUs, or all cores where the cluster has no GPU.
    The shards are those of one process on the same kind of device, whatever workers are lost, and
    this process writes them: the machines need the package, but share no files. A task of one's
    own, brought by `tiltrm.tasks.adopt`, travels as the text of its file.
    Proved by tests/evaluate/test_scale.py.
    """
    if gpus is not None and gpus < 0:
        raise SettingsError(f"gpus must be 0 or more, got {gpus}")
    todo = store.missing(jobs)
    if not todo:
        return
    ray = _ray()
    where = address or os.environ.get("RAY_ADDRESS") or LOCAL
    if where not in (LOCAL, AUTO):
        _probe(where)
    packed, brought = parcels(todo), sources(todo)
    with _cluster(ray, where):
        had = ray.cluster_resources()
        wanted = int(had.get("GPU", 0)) if gpus is None else gpus
        device = "cuda" if wanted else "cpu"
        # Lost workers are replaced by the crew, which knows when to give a job up.
        needs = {"num_gpus": 1, "num_cpus": 0} if wanted else {"num_cpus": 1}
        actor = ray.remote(Worker).options(**needs, max_restarts=0, max_task_retries=0)
        sent = {name: ray.put(parcel) for name, parcel in packed.items()}

        def hire() -> Any:
            return actor.remote(device, sent, brought)

        crew = Crew(ray, hire, wanted or max(1, int(had.get("CPU", 1))), store)
        failures = crew.work(todo, progress)
    if failures:
        raise _told(failures, len(todo))


def _ray() -> ModuleType:
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        importlib.import_module("ray.exceptions")
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"a Ray cluster needs {error.name}, which is not here; pip install 'tiltrm[scale]'"
        ) from error


@contextmanager
def _cluster(ray: ModuleType, address: str) -> Iterator[None]:
    """Joined to a cluster, and parted from it again; one that the caller has joined is kept."""
    if ray.is_initialized():
        yield
        return
    settings: dict[str, Any] = {"include_dashboard": False} if address == LOCAL else {}
    with redirect_stdout(Ours(sys.stdout)):
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", **settings)
        except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
            why = " ".join(str(error).split())[:LONGEST].rstrip(".")
            raise DeviceError(
                f"expected a Ray cluster at {address!r}, got: {why}; start one with ray start, or "
                f"give {LOCAL} as the address to use this machine alone"
            ) from error
        try:
            yield
        finally:
            with redirect_stdout(io.StringIO()):  # what its threads have kept back, it prints here
                ray.shutdown()


class Ours(io.TextIOBase):
    """Standard output without what Ray's own threads print there, whatever it is told.

    They print a paragraph for every lost worker, in the midst of a table or of JSON.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Of the other threads only."""
        foreign = threading.current_thread().name.startswith("ray_")
        return len(text) if foreign else self.stream.write(text)

    def flush(self) -> None:
        self.stream.flush()


def _probe(address: str) -> None:
    """Raise where nobody listens."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise SettingsError(
            f"the address of a Ray cluster must be HOST:PORT, {AUTO} or {LOCAL}, got {address!r}"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_WITHIN).close()
    except OSError as error:
        raise DeviceError(
            f"expected a Ray cluster at {address}, got no answer ({error.strerror or error}); "
            "check the address, or start one with ray start --head"
        ) from error


def _told(failures: Sequence[Failure], total: int) -> TiltrmError:
    """One error for all of them, of the kind of the first."""
    told = "; ".join(f"{named(job)}: {error}" for job, error in failures[:TOLD])
    more = f"; and {len(failures) - TOLD} more" if len(failures) > TOLD else ""
    return type(failures[0].error)(
        f"{len(failures)} of {total} shards could not be computed: {told}{more}; the others are "
        "stored, and the same command does what is missing"
    )
