"""A run's record on disk: JSON lines, read back, mended after a full disk, replaced whole."""

import json
import math
import operator
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tiltrm import folders
from tiltrm.errors import DataError
from tiltrm.train.monitor import Report

METRICS, SCANS = "metrics.jsonl", "scan.jsonl"

Record = dict[str, Any]


class Evaluation(NamedTuple):
    """One evaluation on record."""

    step: int
    seconds: float  # of training
    val: Report
    train: Report


def records(path: Path) -> Iterator[tuple[str, Record]]:
    """Every line with what it says; that of an evaluation has an Evaluation in it, as 'found'."""
    for number, line in enumerate(_lines(path), 1):
        try:
            record: Record = json.loads(line)
            operator.index(record["step"])
            if record["kind"] == "evaluation":
                reports = (_report(record[name]) for name in ("val", "train"))
                record["found"] = Evaluation(record["step"], record["seconds"], *reports)
            if record["kind"] == "resume":
                record["best"] = float(record.get("best", -1.0))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(
                f"{path}, line {number}: expected a record of this program, got {error!r}; "
                "mend or remove the line"
            ) from None
        yield line, record


def _report(values: dict[str, Any]) -> Report:
    """A report as `Log.evaluation` wrote it."""
    known = {name: math.nan if value is None else value for name, value in values.items()}
    return Report(**known | {"exact": {int(n): v for n, v in values["exact"].items()}})


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8").splitlines() if path.exists() else []
    except (OSError, ValueError) as error:
        raise DataError(f"the record {path} cannot be read: {error}") from None


def replace(path: Path, lines: Sequence[str]) -> None:
    """Other lines for a file, whole or not at all."""
    fresh = path.with_name(path.name + folders.PART)
    try:
        fresh.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        folders.flush(fresh)
        fresh.replace(path)
    except OSError as error:
        raise DataError(
            f"the record {path} could not be written: {error}; "
            "make room there and go on with --resume"
        ) from None
    folders.flush(path.parent)


def mend(path: Path) -> None:
    """Cut off a last line that a full disk left half-written."""
    if path.exists():
        data = path.read_bytes()
        if data and not data.endswith(b"\n"):
            os.truncate(path, data.rfind(b"\n") + 1)
