"""Do what is missing, one job after the other, and put it into the store."""

import time
from collections.abc import Callable, Iterable
from typing import Any

import torch

from tiltrm.cpu_precision import load_options
from tiltrm.data import Puzzles
from tiltrm.diagnose import diagnose
from tiltrm.errors import CheckpointError
from tiltrm.evaluate.job import ALGORITHM, DIAGNOSE, Job
from tiltrm.evaluate.measure import Columns
from tiltrm.evaluate.options import PLANNED, PRECISION, RULES, plan_of
from tiltrm.evaluate.peers import Case, evaluate_method
from tiltrm.evaluate.store import Store
from tiltrm.evaluate.target import fingerprint, read_for
from tiltrm.explore import Exploration
from tiltrm.explore.search import Progress as Ticks
from tiltrm.model import load
from tiltrm.model.base import RecursiveModel
from tiltrm.model.build import Model
from tiltrm.model.puzzle_rows import with_puzzle
from tiltrm.provenance import commit, device_name, release
from tiltrm.solving import parse_guide, plan_clues, plan_views
from tiltrm.solving.methods import path_values
from tiltrm.tasks import by_name
from tiltrm.tasks.base import views
from tiltrm.tasks.published import require_rules

Progress = Callable[[float, int], None]  # (jobs done, of); the one that runs counts in part


def run(
    jobs: Iterable[Job], store: Store, device: torch.device, progress: Progress | None = None
) -> None:
    """Compute the shards that the store lacks; each model and each data set is read once.

    Killed anywhere it loses the job it was at, and the same call goes on from there.
    Proved by tests/evaluate/test_run.py.
    """
    todo = store.missing(jobs)
    sources = Sources(device)
    for job in todo:
        check(job, sources.model(job))
    for number, job in enumerate(todo):

        def tick(done: int, of: int, number: int = number) -> None:
            if progress is not None:
                progress(number + done / of, len(todo))

        begun = time.perf_counter()
        columns = do(job, sources.model(job), sources.puzzles(job), tick)
        store.write(job, columns, about(device, time.perf_counter() - begun))


def do(job: Job, model: RecursiveModel, puzzles: Puzzles, progress: Ticks | None = None) -> Columns:
    """The columns of the job's shard: a function of the job, whoever runs it and in what order.

    `puzzles` is the whole data set. `progress` counts within the job.
    """
    rows = job.rows(len(puzzles))
    part = puzzles.take(rows)
    if job.kind == DIAGNOSE:
        return {"figures": [_diagnosed(job, model, part, progress)]}
    case = Case(
        model, part.task, part.questions, part.answers, job.options, job.seed, rows, progress
    )
    return evaluate_method(job.method, case)


def _diagnosed(job: Job, model: RecursiveModel, puzzles: Puzzles, progress: Ticks | None) -> str:
    options = job.options
    own = {name: options[name] for name in ("particles", "outer_steps", "noise", "beta")}
    guides = {name: parse_guide(name, model, puzzles.task) for name in options["guides"]}
    report = diagnose(
        model, puzzles.questions, puzzles.labels(), task=puzzles.task, guides=guides,
        settings=Exploration(**own), noises=options["noises"], rooted=options["rooted"],
        seed=job.seed, progress=progress,
    )  # fmt: skip
    return report.as_json()


def check(job: Job, model: RecursiveModel) -> None:
    """Raise before anything is computed what only the model or the task can tell."""
    task, options = by_name(job.task), job.options
    with_puzzle(model, options.get("puzzle_id"))
    for name in options.get("guides", ()):
        parse_guide(name, model, task)
    parse_guide(options.get("guide", "halting"), model, task)
    if "copies" in options:
        views(task, options["copies"], job.seed)
    if options.get("shortest_visited"):
        path_values(task)
    if job.method == RULES:
        require_rules(task, f"the method {RULES}")
    if job.method in PLANNED:
        plan_views(plan_of(options), task, model, torch.device("cpu"))
        plan_clues(plan_of(options), task)


def about(device: torch.device, seconds: float) -> dict[str, Any]:
    """How a shard came about. None of it enters a table."""
    return {
        "commit": commit(), "tiltrm": release(), "algorithm": ALGORITHM,
        "torch": torch.__version__, "device": device_name(device), "seconds": seconds,
    }  # fmt: skip


class Sources:
    """Models and data sets on one device, each read once and checked against its job."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._models: dict[tuple[str | None, ...], Model] = {}
        self._puzzles: dict[tuple[str, str], Puzzles] = {}

    def model(self, job: Job) -> Model:
        """The job's model in its precision; CheckpointError where its weights are not the job's."""
        precision = job.options.get(PRECISION)
        name = job.model, job.weights, precision
        if name not in self._models:
            if fingerprint(load(job.model), job.task) != job.weights:
                raise CheckpointError(
                    f"{job.model}: expected the weights {job.weights}, got others; give the model "
                    "that the job was made for"
                )
            self._models[name] = load(
                job.model, device=self.device, **load_options(precision, self.device)
            )
        return self._models[name]

    def puzzles(self, job: Job) -> Puzzles:
        """The job's whole data set; DataError where it is another."""
        name = job.data, job.checksum
        if name not in self._puzzles:
            self._puzzles[name] = read_for(job)
        return self._puzzles[name]
