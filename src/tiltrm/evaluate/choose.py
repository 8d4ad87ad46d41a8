"""Hyper-parameters from a validation set, written down together with what they were chosen from."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tiltrm.errors import DataError
from tiltrm.evaluate.job import Job
from tiltrm.evaluate.store import Store
from tiltrm.evaluate.summary import summarise

RULE = "most puzzles exactly right; then fewest evaluations; then first in the list"


def choose(store: Store, sweep: Sequence[Job], path: str | Path | None = None) -> dict[str, Any]:
    """The settings that differ within `sweep`, at the best of them.

    All jobs must be of one method on one split. The choice and the whole table go to `path`,
    `chosen-TASK.json` in the store unless given. Proved by tests/evaluate/test_choose.py.
    """
    subjects = {(job.method, job.weights, job.checksum) for job in sweep}
    if len(subjects) != 1:
        raise DataError(f"expected jobs of one method on one split, got {len(subjects)} kinds")
    rows = summarise(store.read(sweep))
    best = max(rows, key=lambda row: (row.exact.mean, -row.evaluations.mean))
    names = {n for row in rows for n, v in row.settings if v != dict(rows[0].settings).get(n)}
    varied = {name: value for name, value in best.settings if name in names}
    job = sweep[0]
    text = {
        "chosen": varied, "rule": RULE, "method": job.method, "model": job.model,
        "weights": job.weights, "data": job.data, "split": job.split, "checksum": job.checksum,
        "puzzles": best.puzzles, "exact": best.exact.mean,
        "table": [{n: v for n, v in row.as_dict().items() if n != "title"} for row in rows],
    }  # fmt: skip
    _write(Path(path or store.folder / f"chosen-{job.task}.json"), json.dumps(text, indent=1))
    return varied


def _write(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.part")
    try:
        draft.write_text(text + "\n", encoding="utf-8")
        os.replace(draft, path)
    except OSError as error:
        raise DataError(f"{path}: expected to write there, got: {error.strerror}") from error
