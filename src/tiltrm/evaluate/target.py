"""The target of an evaluation: a model and a data set, each identified by its content."""

import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from tiltrm.data import Puzzles, read
from tiltrm.data.splits import checksum
from tiltrm.errors import DataError
from tiltrm.evaluate.job import Job
from tiltrm.model import load
from tiltrm.model.build import Model, kind_of
from tiltrm.solving import task_of
from tiltrm.tasks import Maze, by_name
from tiltrm.tasks.published import has_rules, has_types, type_of
from tiltrm.tasks.registry import source_of

HEX = 16  # digits kept of a fingerprint


@dataclass(frozen=True)
class EvalTarget:
    """The fields that all jobs of one model on one data set share."""

    model: str
    weights: str
    task: str
    data: str
    split: str
    checksum: str
    puzzles: int
    labelled: bool = True  # without labels, the rules say which answers are right
    skipped: int = 0  # puzzles of a size that the task does not hold
    types: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # rows, if there are several


def eval_target(
    model: str, data: str, split: str, task: str | None = None, *, max_bytes: int | None = None
) -> EvalTarget:
    """Load the model and the data set, and compute their fingerprints.

    model: bundled name, folder or checkpoint. data: as for `tiltrm.data.read`. If it has no
    answers, a valid answer counts as right; puzzles of a size that the task lacks are left out.
    split: what to call these puzzles. task: the model's own if None. max_bytes: as for `read`.
    """
    loaded = load(model)
    own = task_of(loaded, task)
    puzzles = read(data, own, max_bytes=max_bytes, skip_sizes=True)
    if not len(puzzles):
        raise DataError(f"{data}: expected at least one puzzle, got none")
    if isinstance(own, Maze) or not has_rules(own):
        puzzles.labels()  # DataError: a valid path may be a detour, an ARC answer any grid
    return EvalTarget(
        model, fingerprint(loaded, own.name), own.name, data, split, checksum(puzzles),
        len(puzzles), puzzles.answers is not None, puzzles.skipped, _types(puzzles),
    )  # fmt: skip


def _types(puzzles: Puzzles) -> dict[str, tuple[int, ...]]:
    """The rows of each type, in order of their first puzzles; {} where there is one type only."""
    if not has_types(puzzles.task):
        return {}
    found: dict[str, list[int]] = {}
    for row, question in enumerate(puzzles.questions):
        found.setdefault(type_of(puzzles.task, question), []).append(row)
    return {name: tuple(rows) for name, rows in found.items()}


def fingerprint(model: Model, task: str = "") -> str:
    """Hex digits of a hash of the model's sizes, calibrated threshold and weights.

    For a task of one's own its file is part of it, since a method may use its rules. Weights are
    hashed as float32, so the model must be loaded in float32, as `load` does on a CPU.
    """
    known = {
        "kind": kind_of(model),
        "sizes": model.config.as_mapping(),
        "above": model.decide_above,
    }
    if model.puzzle_id:
        known["puzzle_id"] = model.puzzle_id
    if model.config.id_cells and model.puzzle_table is not None:
        known["puzzle_rows"] = len(model.puzzle_table)
    if model.decide_settled:
        known["settled"] = True
    source = source_of(task)
    if source is not None and source.content is not None:
        known["file"] = hashlib.sha256(source.content).hexdigest()
    digest = hashlib.sha256(json.dumps(known, sort_keys=True).encode())
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode() + tensor.to("cpu", torch.float32).numpy().tobytes())
    return digest.hexdigest()[:HEX]


def read_for(job: Job) -> Puzzles:
    """The job's data set; DataError if its content is not that of the job.

    `eval_target` has read the file within its limit, so there is none here.
    """
    puzzles = read(job.data, by_name(job.task), max_bytes=sys.maxsize, skip_sizes=True)
    if checksum(puzzles) != job.checksum:
        raise DataError(
            f"{job.data}: expected puzzles with SHA-256 {job.checksum[:HEX]}..., got others; give "
            "the file that the job was made for"
        )
    return puzzles
