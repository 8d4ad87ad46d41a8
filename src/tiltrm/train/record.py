"""A run's record on disk: JSON lines, read back, mended after a full disk, replaced whole."""

import json
import math
import operator
import os
from collections.abc import Iterator
from contextlib import contextmanager
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


class Line(NamedTuple):
    """One line of a record: where it stands, and what it says."""

    place: str
    text: str
    kind: str
    step: int
    values: Record

    def number(self, *keys: str) -> float:
        """A number inside it, NaN for null."""
        with _expecting(self.place, self.text, *keys):
            value: Any = self.values
            for key in keys:
                value = value[key]
            return math.nan if value is None else float(value)

    def evaluation(self) -> Evaluation:
        """What `Log.evaluation` wrote."""
        val, train = self._report("val"), self._report("train")
        return Evaluation(self.step, self.number("seconds"), val, train)

    def _report(self, name: str) -> Report:
        with _expecting(self.place, self.text, name):
            said = self.values[name]
            exact = {int(n): self.number(name, "exact", n) for n in said["exact"]}
            rest = {key: self.number(name, key) for key in Report._fields[1:] if key in said}
            return Report(exact, **rest)


def lines(path: Path) -> list[Line]:
    """Every line of a record; DataError on a file of another sort."""
    try:
        texts = path.read_text("utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path}: expected the record of a training run, got: {error}; name another file"
        ) from None
    return [_line(f"{path}, line {number}", text) for number, text in enumerate(texts, 1)]


def records(path: Path, *kinds: str) -> list[Line]:
    """The lines of these kinds that count: those since the run last began at step 0.

    Where it was resumed, what was done after the saved state is lost. Where a kind of line comes
    to a step again, the later line counts, and none before it of that step or a later one.
    """
    found: list[Line] = []
    saved, again = math.inf, dict[str, float]()  # the lowest steps from here to the file's end
    for line in reversed(lines(path)):
        if line.step <= saved and line.step < again.get(line.kind, math.inf):
            found.append(line)
            again[line.kind] = line.step
        if line.kind == "resume":
            saved = min(saved, line.step)
        if line.kind == "start" and line.step == 0:
            break
    return [line for line in reversed(found) if line.kind in kinds]


def _line(place: str, text: str) -> Line:
    with _expecting(place, text):
        values: Record = json.loads(text)
        if values["kind"] == "resume":
            values["best"] = float(values.get("best", -1.0))
        return Line(place, text, str(values["kind"]), operator.index(values["step"]), values)


@contextmanager
def _expecting(place: str, text: str, *keys: str) -> Iterator[None]:
    """DataError where the text at this place of a file does not have what is read inside."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError):
        what = f"a record of tiltrm train{' with ' if keys else ''}{'.'.join(keys)}"
        raise DataError(
            f"{place}: expected {what}, got {text[:60]!r}; mend or remove the line"
        ) from None


def forget(path: Path, step: int) -> None:
    """Drop the lines after this step, if there are any: all of them or, after a kill, none."""
    found = lines(path) if path.exists() else []
    kept = [f"{line.text}\n" for line in found if line.step <= step]
    if len(kept) == len(found):
        return
    fresh = path.with_name(path.name + folders.PART)
    try:
        fresh.write_text("".join(kept), "utf-8")
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
