"""A worker process of a Ray cluster: it receives models, puzzles and tasks, and computes jobs."""

import importlib
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tiltrm.data import Puzzles
from tiltrm.device import choose
from tiltrm.errors import SettingsError, TiltrmError
from tiltrm.evaluate.job import Job
from tiltrm.evaluate.measure import Columns
from tiltrm.evaluate.options import PRECISION
from tiltrm.evaluate.run import Sources, about, check, do
from tiltrm.model.build import Model
from tiltrm.model.native import save
from tiltrm.provenance import release
from tiltrm.tasks.registry import TaskSource, register_source, source_of

ModelFiles = dict[str, bytes]  # the files of a native model's folder, by name


class JobResult(NamedTuple):
    """The columns of a job's shard, and the record of how they were computed."""

    columns: Columns
    about: dict[str, Any]


class Worker:
    """The Ray actor.

    inputs: Ray references to models and puzzles, by fingerprint and checksum (`pack_inputs`).
    tasks: the Python sources of tasks that are not in the package (`task_sources`), run at start.
    A TiltrmError is returned as a value. Any other exception is raised and ends the process
    (tiltrm.evaluate.worker_pool).
    """

    def __init__(
        self, device: str, inputs: Mapping[str, Any], tasks: Sequence[TaskSource] = ()
    ) -> None:
        self.device, self.inputs, self.tasks = device, inputs, tasks
        self.models: dict[tuple[str, str | None], Model] = {}  # by weights and precision
        self.puzzles: dict[str, Puzzles] = {}

    def ready(self) -> str | TiltrmError:
        """The version of tiltrm here, after the tasks are registered and the device works."""
        try:
            self._register_tasks()
            torch.empty(1, device=choose(self.device))
        except TiltrmError as error:
            return error
        return release()

    def compute(self, job: Job) -> JobResult | TiltrmError:
        """The job's columns."""
        try:
            device = choose(self.device)
            begun = time.perf_counter()
            columns = do(job, self._model(job, device), self._puzzles(job))
            return JobResult(
                {n: v.cpu() if isinstance(v, Tensor) else v for n, v in columns.items()},
                about(device, time.perf_counter() - begun),
            )
        except TiltrmError as error:
            return error

    def _register_tasks(self) -> None:
        try:
            for source in self.tasks:
                register_source(source)
        except SettingsError as error:
            raise SettingsError(
                f"{error} on a machine of the cluster; a task there is one file that needs no "
                "others, or a module that is installed everywhere"
            ) from error

    def _model(self, job: Job, device: torch.device) -> Model:
        own = job.weights, job.options.get(PRECISION)
        if own not in self.models:
            with tempfile.TemporaryDirectory() as folder:
                for name, content in self._fetch(job.weights).items():
                    (Path(folder) / name).write_bytes(content)
                # Loaded and checked as in a single process; the path is not part of a job's key.
                self.models[own] = Sources(device).model(replace(job, model=folder))
        return self.models[own]

    def _puzzles(self, job: Job) -> Puzzles:
        if job.checksum not in self.puzzles:
            self.puzzles[job.checksum] = self._fetch(job.checksum)
        return self.puzzles[job.checksum]

    def _fetch(self, name: str) -> Any:
        return importlib.import_module("ray").get(self.inputs[name])


def pack_inputs(jobs: list[Job]) -> dict[str, ModelFiles | Puzzles]:
    """Check all jobs, and collect their models and puzzles by fingerprint and checksum.

    They are sent to the workers, so the other machines need no files. Data sets are read once,
    since reading and checking them takes longer than sending them.
    """
    sources = Sources(torch.device("cpu"))
    found: dict[str, ModelFiles | Puzzles] = {}
    for job in jobs:
        job = job.without(PRECISION)  # that of the workers' devices; a coarse model has no files
        check(job, sources.model(job))
        if job.weights not in found:
            found[job.weights] = _files(sources.model(job))
        if job.checksum not in found:
            whole = sources.puzzles(job)
            found[job.checksum] = Puzzles(whole.task, whole.questions, whole.answers)
    return found


def task_sources(jobs: list[Job]) -> list[TaskSource]:
    """The sources of the jobs' tasks that were loaded in this process with FILE.py:NAME.

    A job holds only the name of its task, and a name alone never loads code.
    """
    found = (source_of(name) for name in dict.fromkeys(job.task for job in jobs))
    return [source for source in found if source is not None]


def _files(model: Model) -> ModelFiles:
    with tempfile.TemporaryDirectory() as folder:
        target = save(model, Path(folder) / "model", dtype=None)
        return {path.name: path.read_bytes() for path in target.iterdir()}
