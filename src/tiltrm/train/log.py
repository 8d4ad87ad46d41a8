"""The run's record: JSON lines for programs, one moving line for people."""

import json
import math
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from tiltrm.errors import DataError
from tiltrm.train.board import Board
from tiltrm.train.learner import Statistics
from tiltrm.train.pace import Pace
from tiltrm.train.record import METRICS, SCANS, Evaluation, Line, Record, forget, mend, records

BAR = 20  # characters


class Log:
    """The files in the run's folder, and progress on stderr; only the leader reads and writes."""

    def __init__(self, folder: Path, leads: bool, board: Board | None = None) -> None:
        self.folder, self.leads, self.board = folder, leads, board
        self.shown = -math.inf
        if leads:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                for name in (METRICS, SCANS):
                    mend(folder / name)
            except OSError as error:
                raise DataError(f"expected a folder to write at {folder}, got: {error}") from None

    def write(self, kind: str, step: int, file: str = METRICS, **values: Any) -> None:
        """One JSON line, closed at once, so that a killed run keeps its record. NaN is null."""
        if not self.leads:
            return
        line = json.dumps(plain({"kind": kind, "step": step, **values}), allow_nan=False)
        try:
            with (self.folder / file).open("a", encoding="utf-8") as out:
                out.write(line + "\n")
        except OSError as error:
            raise DataError(
                f"the record {self.folder / file} could not be written: {error}; "
                "make room there and go on with --resume"
            ) from None
        if self.board is not None and kind != "start":
            self.board.add(kind, step, values)

    def training(self, pace: Pace, statistics: Statistics, tflops: float) -> None:
        """Called every few steps."""
        self.write(
            "train", pace.step, seconds=round(pace.seconds, 2), **statistics._asdict(),
            tflops=tflops,
        )  # fmt: skip
        now = time.monotonic()
        if self.leads and now - self.shown > (0.5 if sys.stderr.isatty() else 15):
            self.shown = now
            show(progress_line(pace, statistics, tflops), moving=True)

    def evaluation(self, found: Evaluation) -> None:
        """Validation beside training accuracy, so that memorising is seen and not guessed."""
        val, train = found.val, found.train
        seconds = round(found.seconds, 2)
        self.write(
            "evaluation", found.step, seconds=seconds, val=val._asdict(), train=train._asdict()
        )
        if self.leads:
            exact = " ".join(f"N={n}: {100 * v:.1f}" for n, v in val.exact.items())
            show(
                f"step {found.step}, {found.seconds / 60:.2f} min: val {exact}; "
                f"train {100 * train.final:.1f}; halting {100 * val.halt_accuracy:.1f} %, "
                f"AUROC {val.halt_auroc:.4f}"
            )

    def evaluations(self) -> list[Evaluation]:
        """The evaluations on record since the run last began at step 0."""
        return [line.evaluation() for line in self._records("evaluation")]

    def best(self) -> float:
        """The best accuracy on val, -1 where none is on record: that of the weights in `best/`."""
        known = [found.val.final for found in self.evaluations()]
        return max([-1.0, *known, *(line.number("best") for line in self._records("resume"))])

    def begin(self, step: int, settings: Record) -> None:
        """The run begins or goes on. At step 0, what stands above these lines counts no more."""
        if step == 0 and (self.folder / SCANS).exists():
            self.write("start", step, SCANS)
        self.write("start", step, settings=settings)
        if step == 0 and self.board is not None:
            self.board.rewind(-1)

    def resume(self, pace: Pace, best: float, changed: Record) -> None:
        """The run goes on from a saved state. What is not as it was then is said to people too.

        What was recorded after that state is lost, will be done again, and is dropped. A file is
        replaced in one move. Killed at any moment, it is as before or as it should be.
        Proved by tests/train/test_rewind.py.
        """
        if self.board is not None:
            self.board.rewind(pace.step)
        self.write("resume", pace.step, seconds=pace.seconds, best=best, changed=changed)
        if changed and self.leads:
            now = "; ".join(f"{name} = {value}" for name, value in changed.items())
            show(f"step {pace.step}: resumed with changes: {now}")
        for name in (METRICS, SCANS) if self.leads else ():
            forget(self.folder / name, pace.step)

    def _records(self, kind: str) -> list[Line]:
        """The lines of a kind that count; none yet at the very beginning of a run."""
        path = self.folder / METRICS
        return records(path, kind) if self.leads and path.exists() else []


def progress_line(pace: Pace, statistics: Statistics, tflops: float) -> str:
    """How far, how good (on the rows that halted), how fast, how long still."""
    progress = min(1.0, pace.progress)
    bar = "#" * round(BAR * progress)
    return (
        f"[{bar:.<{BAR}}] {100 * progress:5.1f} %  step {pace.step}  loss {statistics.loss:.3f}  "
        f"exact {statistics.right:.3f}  q {statistics.halt_accuracy:.3f}  "
        f"{tflops:.3g} TFLOP/s  {pace.seconds_left / 60:.1f} min left"
    )


def show(line: str, *, moving: bool = False) -> None:
    """A line on stderr; on a terminal a moving one is written over by the next."""
    if sys.stderr.isatty():
        line = f"\r{line[: shutil.get_terminal_size().columns - 1]}\x1b[K"
    print(line, end="" if moving and sys.stderr.isatty() else "\n", file=sys.stderr, flush=True)


def plain(value: Any) -> Any:
    """Nested values with null for NaN and infinity, which JSON does not know."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
