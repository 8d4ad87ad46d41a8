"""ARC evaluations in a store: one shard for each method, seed and fold of the scored tasks.

A shard has a row for each task. Proved by tests/evaluate/test_arc.py.
"""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import torch

from tiltrm.data.arc_files import ArcTask
from tiltrm.data.arc_puzzles import AnyArc, puzzle_numbers
from tiltrm.data.arc_questions import ArcQuestion, arc_questions
from tiltrm.errors import SettingsError
from tiltrm.evaluate.arc import AUGMENTATIONS, ArcMethod, Tick, measure_arc, search_of
from tiltrm.evaluate.arc_rows import ArcRow, arc_row
from tiltrm.evaluate.job import ARC_TASKS, Job
from tiltrm.evaluate.run import about
from tiltrm.evaluate.store import Store
from tiltrm.explore.inputs import device_of
from tiltrm.model.base import RecursiveModel
from tiltrm.solving.guide_folder import pinned_guide
from tiltrm.tasks.arc.augmentation import by_task


class ArcTarget(NamedTuple):
    """The model and the ARC tasks that all jobs of one evaluation share."""

    model: str  # as typed
    weights: str  # tiltrm.evaluate.target.fingerprint
    data: str  # as typed
    task: AnyArc
    tasks: Sequence[ArcTask]  # also those without outputs, which have numbers too
    names: Sequence[str] | None = None  # of the model's puzzle ids

    @property
    def scored(self) -> list[ArcTask]:
        """The tasks whose outputs are known."""
        return [each for each in self.tasks if each.outputs is not None]

    @property
    def checksum(self) -> str:
        """SHA-256 of the scored tasks: names, puzzle ids, test inputs and outputs."""
        numbers = puzzle_numbers(self.task, self.tasks, self.names)
        listed = by_task(self.names or ())
        digest = hashlib.sha256()
        for each in self.scored:
            ids = [number for number, _ in listed.get(each.name, ())]
            said = (each.name, numbers[each.name], ids, each.tests, each.outputs)
            digest.update(json.dumps(said).encode() + b"\n")
        return digest.hexdigest()


def arc_jobs(own: ArcMethod, target: ArcTarget, *, seeds: int = 1, folds: int = 1) -> list[Job]:
    """One method on every seed and fold; a method without randomness has one seed."""
    count = len(target.scored)
    if not 1 <= folds <= count:
        raise SettingsError(f"--folds must lie in 1..{count}, the number of tasks, got {folds}")
    settings = {**own.settings, AUGMENTATIONS: own.augmentations}
    if "guide" in settings:  # a learned guide is part of the key by its content
        settings["guide"] = pinned_guide(settings["guide"])
    checksum = target.checksum
    return [
        Job(
            kind=ARC_TASKS, model=target.model, weights=target.weights, task=target.task.name,
            data=target.data, split="", checksum=checksum, limit=None, method=own.method,
            settings=tuple(settings.items()), seed=seed, fold=fold, folds=folds,
        )
        for seed in range(seeds if own.seeded else 1)
        for fold in range(folds)
    ]  # fmt: skip


def evaluate_arc(
    own: ArcMethod, model: RecursiveModel, target: ArcTarget, store: Store, *, seeds: int = 1,
    folds: int = 1, at_once: int = 64, tick: Tick | None = None,
) -> ArcRow:  # fmt: skip
    """The row of a method; the shards that the store lacks are computed and written."""
    scored, jobs = target.scored, arc_jobs(own, target, seeds=seeds, folds=folds)
    search = search_of(own, model, target.task)
    missing = {job.key for job in store.missing(jobs)}
    for seed, of_seed in groupby(jobs, key=lambda job: job.seed):
        todo = [job for job in of_seed if job.key in missing]
        asked = _questions(own, target, seed) if todo else {}
        for job in todo:
            rows = job.rows(len(scored))
            wanted = [one for row in rows.tolist() for one in asked[scored[row].name]]
            begun = time.perf_counter()
            columns = measure_arc(search, target.task, wanted, seed, at_once=at_once, tick=tick)
            taken = about(device_of(model, torch.empty(0)), time.perf_counter() - begun)
            store.write(job, {"puzzle": rows, **columns}, taken)
    shards = store.read(jobs, len(scored))
    return arc_row(own, target.task.name, [each.name for each in scored], shards)


def _questions(own: ArcMethod, target: ArcTarget, seed: int) -> Mapping[str, list[ArcQuestion]]:
    """The questions of all tasks by name; they do not depend on the fold."""
    found: dict[str, list[ArcQuestion]] = {}
    for one in arc_questions(
        target.task, target.tasks, target.names, augmentations=own.augmentations, seed=seed
    ):
        found.setdefault(one.task.name, []).append(one)
    return found
