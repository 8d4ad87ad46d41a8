"""Compute missing shards on a Ray cluster; the results equal those of one process."""

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
from tiltrm.evaluate.job import Job
from tiltrm.evaluate.run import Progress
from tiltrm.evaluate.store import Store
from tiltrm.evaluate.worker import Worker, pack_inputs, task_sources
from tiltrm.evaluate.worker_pool import LONGEST_REASON, Failure, WorkerPool, describe

LOCAL, AUTO = "local", "auto"
CONNECT_SECONDS = 5.0  # for a cluster to accept a connection; Ray itself waits for minutes
NAMED_FAILURES = 3  # failed jobs that an error message lists
RAY_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # send no usage statistics
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # no warning on machines with a GPU
}


def run(
    jobs: Iterable[Job], store: Store, address: str | None = None, *, gpus: int | None = None,
    progress: Progress | None = None,
) -> None:  # fmt: skip
    """Compute the shards that the store lacks on the cluster at `address`.

    address: HOST:PORT of a running cluster that this machine belongs to; 'auto' for the cluster
    that runs here; 'local' for a new one on this machine alone. Default: RAY_ADDRESS, or local.
    gpus: the number of workers, one GPU each; it waits until the cluster has them. 0: workers with
    one CPU core each. Default: all GPUs, or all cores if the cluster has no GPU.
    The shards equal those of one process on the same kind of device, even if workers are lost.
    This process writes them: the machines need the package, but share no files. A task of one's
    own, registered by `tiltrm.tasks.adopt`, is sent as the text of its file.
    Proved by tests/evaluate/test_scale.py.
    """
    if gpus is not None and gpus < 0:
        raise SettingsError(f"gpus must be 0 or more, got {gpus}")
    missing = store.missing(jobs)
    if not missing:
        return
    ray = _import_ray()
    where = address or os.environ.get("RAY_ADDRESS") or LOCAL
    if where not in (LOCAL, AUTO):
        _check_address(where)
    inputs, tasks = pack_inputs(missing), task_sources(missing)
    with _connected(ray, where):
        resources = ray.cluster_resources()
        wanted = int(resources.get("GPU", 0)) if gpus is None else gpus
        device = "cuda" if wanted else "cpu"
        # Ray must not restart workers: the pool does, and knows when to give a job up.
        needs = {"num_gpus": 1, "num_cpus": 0} if wanted else {"num_cpus": 1}
        actor = ray.remote(Worker).options(**needs, max_restarts=0, max_task_retries=0)
        references = {name: ray.put(content) for name, content in inputs.items()}

        def start_worker() -> Any:
            return actor.remote(device, references, tasks)

        size = wanted or max(1, int(resources.get("CPU", 1)))
        failures = WorkerPool(ray, start_worker, size, store).run(missing, progress)
    if failures:
        raise _error_of(failures, len(missing))


def _import_ray() -> ModuleType:
    for name, value in RAY_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        importlib.import_module("ray.exceptions")
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"a Ray cluster needs {error.name}, which is not installed; pip install 'tiltrm[scale]'"
        ) from error


@contextmanager
def _connected(ray: ModuleType, address: str) -> Iterator[None]:
    """Connect to a cluster and disconnect again; a connection of the caller's is kept."""
    if ray.is_initialized():
        yield
        return
    settings: dict[str, Any] = {"include_dashboard": False} if address == LOCAL else {}
    with redirect_stdout(WithoutRayThreads(sys.stdout)):
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", **settings)
        except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
            why = " ".join(str(error).split())[:LONGEST_REASON].rstrip(".")
            raise DeviceError(
                f"expected a Ray cluster at {address!r}, got: {why}; start one with ray start, or "
                f"give {LOCAL} as the address to use this machine alone"
            ) from error
        try:
            yield
        finally:
            with redirect_stdout(io.StringIO()):  # Ray prints its buffered messages at shutdown
                ray.shutdown()


class WithoutRayThreads(io.TextIOBase):
    """Standard output that drops the text of Ray's own threads.

    Whatever its settings, Ray prints a paragraph for every lost worker, in the middle of a table
    or of JSON.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write the text, unless one of Ray's threads prints it."""
        foreign = threading.current_thread().name.startswith("ray_")
        return len(text) if foreign else self.stream.write(text)

    def flush(self) -> None:
        self.stream.flush()


def _check_address(address: str) -> None:
    """Raise if the address is malformed or nothing listens there."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise SettingsError(
            f"the address of a Ray cluster must be HOST:PORT, {AUTO} or {LOCAL}, got {address!r}"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except OSError as error:
        raise DeviceError(
            f"expected a Ray cluster at {address}, got no answer ({error.strerror or error}); "
            "check the address, or start one with ray start --head"
        ) from error


def _error_of(failures: Sequence[Failure], total: int) -> TiltrmError:
    """One error for all failures, of the class of the first."""
    named = "; ".join(f"{describe(job)}: {error}" for job, error in failures[:NAMED_FAILURES])
    unnamed = len(failures) - NAMED_FAILURES
    more = f"; and {unnamed} more" if unnamed > 0 else ""
    return type(failures[0].error)(
        f"{len(failures)} of {total} shards could not be computed: {named}{more}; the others are "
        "stored, and the same command computes those that are missing"
    )
