"""The log of a run: metrics.jsonl and scan.jsonl for programs, lines on stderr for people."""

import json
import math
import operator
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tiltrm import folders
from tiltrm.errors import DataError
from tiltrm.records import nan_to_null
from tiltrm.train.validation import ValidationReport

if TYPE_CHECKING:
    from tiltrm.train.clock import TrainingClock
    from tiltrm.train.learner import TrainStatistics
    from tiltrm.train.tensorboard import TensorBoardWriter

METRICS, SCANS = "metrics.jsonl", "scan.jsonl"


class Evaluation(NamedTuple):
    """One evaluation in the log."""

    step: int
    seconds: float  # of training
    val: ValidationReport
    train: ValidationReport


class LogLine(NamedTuple):
    """One line of a log file: its place for messages, its text, and its parsed values."""

    place: str
    text: str
    kind: str
    step: int
    values: dict[str, Any]

    def number(self, *keys: str) -> float:
        """The number at this path of keys, NaN for null."""
        with _data_error(self.place, self.text, *keys):
            value: Any = self.values
            for key in keys:
                value = value[key]
            return math.nan if value is None else float(value)

    def evaluation(self) -> Evaluation:
        """The evaluation that `RunLog.evaluation` wrote."""
        val, train = self._report("val"), self._report("train")
        return Evaluation(self.step, self.number("seconds"), val, train)

    def _report(self, name: str) -> ValidationReport:
        with _data_error(self.place, self.text, name):
            stored = self.values[name]
            exact = {int(n): self.number(name, "exact", n) for n in stored["exact"]}
            others = [key for key in ValidationReport._fields[1:] if key in stored]
            return ValidationReport(exact, **{key: self.number(name, key) for key in others})


class RunLog:
    """Writes the log files of a run's folder and the status lines; only the leader does either."""

    def __init__(
        self, folder: Path, is_leader: bool, tensorboard: "TensorBoardWriter | None" = None
    ) -> None:
        self.folder, self.is_leader, self.tensorboard = folder, is_leader, tensorboard
        self.last_shown = -math.inf
        if is_leader:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                for name in (METRICS, SCANS):
                    drop_partial_line(folder / name)
            except OSError as error:
                raise DataError(f"expected a folder to write at {folder}, got: {error}") from None

    def write(self, kind: str, step: int, file: str = METRICS, **values: Any) -> None:
        """Append one JSON line and close the file, so that a killed run keeps its log."""
        if not self.is_leader:
            return
        line = json.dumps(nan_to_null({"kind": kind, "step": step, **values}), allow_nan=False)
        with _writing(self.folder / file), (self.folder / file).open("a", encoding="utf-8") as out:
            out.write(line + "\n")
        if self.tensorboard is not None and kind != "start":
            self.tensorboard.add(kind, step, values)

    def training(
        self, clock: "TrainingClock", statistics: "TrainStatistics", tflops: float
    ) -> None:
        """Log the last few steps."""
        self.write(
            "train", clock.step, seconds=round(clock.seconds, 2), **statistics._asdict(),
            tflops=tflops,
        )  # fmt: skip
        now = time.monotonic()
        if self.is_leader and now - self.last_shown > (0.5 if sys.stderr.isatty() else 15):
            self.last_shown = now
            show(progress_line(clock, statistics, tflops), moving=True)

    def evaluation(self, found: Evaluation) -> None:
        """Log the accuracy on val beside that on training puzzles, which shows memorising."""
        val, train = found.val, found.train
        self.write(
            "evaluation", found.step, seconds=round(found.seconds, 2), val=val._asdict(),
            train=train._asdict(),
        )  # fmt: skip
        if self.is_leader:
            exact = " ".join(f"N={n}: {100 * v:.1f}" for n, v in val.exact.items())
            show(
                f"step {found.step}, {found.seconds / 60:.2f} min: val {exact}; "
                f"train {100 * train.final:.1f}; halting {100 * val.halt_accuracy:.1f} %, "
                f"AUROC {val.halt_auroc:.4f}"
            )

    def evaluations(self) -> list[Evaluation]:
        """The evaluations since the run last began at step 0."""
        return [line.evaluation() for line in self._current_lines("evaluation")]

    def best_accuracy(self) -> float:
        """The best logged accuracy on val, which the weights in `best/` have; -1 if none is."""
        known = [found.val.final for found in self.evaluations()]
        return max([-1.0, *known, *(line.number("best") for line in self._current_lines("resume"))])

    def begin(self, step: int, settings: dict[str, Any]) -> None:
        """Log that the run begins or goes on. At step 0, all earlier lines become invalid."""
        if step == 0 and (self.folder / SCANS).exists():
            self.write("start", step, SCANS)
        self.write("start", step, settings=settings)
        if step == 0 and self.tensorboard is not None:
            self.tensorboard.rewind(-1)

    def resume(self, clock: "TrainingClock", best: float, changed: dict[str, Any]) -> None:
        """Log that the run goes on from a saved state, and which settings or data changed since.

        Drops the lines after that state, since the run repeats those steps. Each file is replaced
        in one move: a kill leaves it as before or as it should be.
        Proved by tests/train/test_rewind.py.
        """
        if self.tensorboard is not None:
            self.tensorboard.rewind(clock.step)
        self.write("resume", clock.step, seconds=clock.seconds, best=best, changed=changed)
        if changed and self.is_leader:
            values = "; ".join(f"{name} = {value}" for name, value in changed.items())
            show(f"step {clock.step}: resumed with changes: {values}")
        for name in (METRICS, SCANS) if self.is_leader else ():
            drop_lines_after(self.folder / name, clock.step)

    def _current_lines(self, kind: str) -> list[LogLine]:
        path = self.folder / METRICS
        return current_lines(path, kind) if self.is_leader and path.exists() else []


def read_log(path: Path) -> list[LogLine]:
    """Every line of a log file; DataError if it is not one."""
    try:
        texts = path.read_text("utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path}: expected the log of a training run, got: {error}; name another file"
        ) from None
    return [_parse_line(f"{path}, line {number}", text) for number, text in enumerate(texts, 1)]


def current_lines(path: Path, *kinds: str) -> list[LogLine]:
    """The lines of these kinds that are still valid, from where the run last began at step 0.

    A `resume` line invalidates the earlier lines after its step. If a kind of line reaches a step
    again, the later line is valid, and no earlier line of that step or a later one.
    """
    found: list[LogLine] = []
    resumed_at, seen = math.inf, dict[str, float]()  # lowest steps from here to the file's end
    for line in reversed(read_log(path)):
        if line.step <= resumed_at and line.step < seen.get(line.kind, math.inf):
            found.append(line)
            seen[line.kind] = line.step
        if line.kind == "resume":
            resumed_at = min(resumed_at, line.step)
        if line.kind == "start" and line.step == 0:
            break
    return [line for line in reversed(found) if line.kind in kinds]


def _parse_line(place: str, text: str) -> LogLine:
    with _data_error(place, text):
        values: dict[str, Any] = json.loads(text)
        if values["kind"] == "resume":
            values["best"] = float(values.get("best", -1.0))
        return LogLine(place, text, str(values["kind"]), operator.index(values["step"]), values)


@contextmanager
def _data_error(place: str, text: str, *keys: str) -> Iterator[None]:
    """Turn an error inside into a DataError which says that the line lacks these keys."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError):
        expected = f"a record of tiltrm train{' with ' if keys else ''}{'.'.join(keys)}"
        raise DataError(
            f"{place}: expected {expected}, got {text[:60]!r}; mend or remove the line"
        ) from None


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn an OSError inside into a DataError that says what to do."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"the log {path} could not be written: {error}; make room there and go on with --resume"
        ) from None


def drop_lines_after(path: Path, step: int) -> None:
    """Remove the lines after this step: all of them or, after a kill, none."""
    found = read_log(path) if path.exists() else []
    kept = [f"{line.text}\n" for line in found if line.step <= step]
    if len(kept) == len(found):
        return
    fresh = path.with_name(path.name + folders.PART)
    with _writing(path):
        fresh.write_text("".join(kept), "utf-8")
        folders.flush(fresh)
        fresh.replace(path)
    folders.flush(path.parent)


def drop_partial_line(path: Path) -> None:
    """Remove a last line that a full disk left incomplete."""
    if path.exists():
        data = path.read_bytes()
        if data and not data.endswith(b"\n"):
            os.truncate(path, data.rfind(b"\n") + 1)


def progress_line(clock: "TrainingClock", statistics: "TrainStatistics", tflops: float) -> str:
    """Progress, loss and accuracy (of the rows that halted), speed, and time left."""
    progress = min(1.0, clock.progress)
    return (
        f"training {100 * progress:5.1f} %  step {clock.step}  loss {statistics.loss:.3f}  "
        f"exact {statistics.right:.3f}  q {statistics.halt_accuracy:.3f}  "
        f"{tflops:.3g} TFLOP/s  {clock.seconds_left / 60:.1f} min left"
    )


def show(line: str, *, moving: bool = False) -> None:
    """Print a line on stderr; on a terminal the next line overwrites a moving one."""
    if sys.stderr.isatty():
        line = f"\r{line[: shutil.get_terminal_size().columns - 1]}\x1b[K"
    print(line, end="" if moving and sys.stderr.isatty() else "\n", file=sys.stderr, flush=True)
