"""One process of a cluster: it is handed models, puzzles and tasks, and does one job at a time."""

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
from tiltrm.evaluate.run import Sources, about, check, do
from tiltrm.model.build import Model
from tiltrm.model.native import save
from tiltrm.provenance import release
from tiltrm.tasks.registry import TaskSource, register_source, source_of

Files = dict[str, bytes]  # a native model's folder, by the names of its files


class Done(NamedTuple):
    """A job's columns, and how they came about."""

    columns: Columns
    about: dict[str, Any]


class Worker:
    """What runs in every process, `parcels` being Ray references by fingerprint and checksum.

    `brought` are the sources of tasks that are not in the package, run before anything else.
    A mistake of the user comes back as a value, a TiltrmError; whatever else goes wrong is raised,
    and costs the process its life (tiltrm.evaluate.crew).
    """

    def __init__(
        self, device: str, parcels: Mapping[str, Any], brought: Sequence[TaskSource] = ()
    ) -> None:
        self.name, self.parcels, self.brought = device, parcels, brought
        self.models: dict[str, Model] = {}
        self.puzzles: dict[str, Puzzles] = {}

    def ready(self) -> str | TiltrmError:
        """The version of tiltrm here, once the tasks, torch and the device are there."""
        try:
            self._bring()
            torch.empty(1, device=choose(self.name))
        except TiltrmError as error:
            return error
        return release()

    def do(self, job: Job) -> Done | TiltrmError:
        """The job's columns."""
        try:
            device = choose(self.name)
            begun = time.perf_counter()
            columns = do(job, self._model(job, device), self._puzzles(job))
            return Done(
                {n: v.cpu() if isinstance(v, Tensor) else v for n, v in columns.items()},
                about(device, time.perf_counter() - begun),
            )
        except TiltrmError as error:
            return error

    def _bring(self) -> None:
        try:
            for source in self.brought:
                register_source(source)
        except SettingsError as error:
            raise SettingsError(
                f"{error} on a machine of the cluster; a task there is one file that needs no "
                "others, or a module that is installed everywhere"
            ) from error

    def _model(self, job: Job, device: torch.device) -> Model:
        if job.weights not in self.models:
            with tempfile.TemporaryDirectory() as folder:
                for name, content in self._fetch(job.weights).items():
                    (Path(folder) / name).write_bytes(content)
                # As one process does, fingerprint and all; a job's key does not hold the path.
                self.models[job.weights] = Sources(device).model(replace(job, model=folder))
        return self.models[job.weights]

    def _puzzles(self, job: Job) -> Puzzles:
        if job.checksum not in self.puzzles:
            self.puzzles[job.checksum] = self._fetch(job.checksum)
        return self.puzzles[job.checksum]

    def _fetch(self, name: str) -> Any:
        return importlib.import_module("ray").get(self.parcels[name])


def parcels(todo: list[Job]) -> dict[str, Files | Puzzles]:
    """What the workers need for these jobs, by fingerprint and checksum, every job checked.

    It travels with the work, so the other machines need no files, and data sets, whose reading
    and checking takes longer than sending them, are read once.
    """
    sources = Sources(torch.device("cpu"))
    found: dict[str, Files | Puzzles] = {}
    for job in todo:
        check(job, sources.model(job))
        if job.weights not in found:
            found[job.weights] = _files(sources.model(job))
        if job.checksum not in found:
            whole = sources.puzzles(job)
            found[job.checksum] = Puzzles(whole.task, whole.questions, whole.answers)
    return found


def sources(todo: list[Job]) -> list[TaskSource]:
    """What brings the tasks of these jobs, where somebody named it to this process.

    A job holds the name of its task alone, and the name of a task loads nothing.
    """
    found = (source_of(name) for name in dict.fromkeys(job.task for job in todo))
    return [source for source in found if source is not None]


def _files(model: Model) -> Files:
    with tempfile.TemporaryDirectory() as folder:
        target = save(model, Path(folder) / "model", dtype=None)
        return {path.name: path.read_bytes() for path in target.iterdir()}
