"""Train a model from puzzles, for some minutes or steps; resumable."""

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from tiltrm.cli.forecast import say_if_long
from tiltrm.cli.values import parse_assignment
from tiltrm.data import read, splits
from tiltrm.data.arc_files import read_arc_tasks
from tiltrm.errors import DataError, SettingsError
from tiltrm.folders import locked
from tiltrm.records import build_record, nan_to_null
from tiltrm.tasks import by_name
from tiltrm.tasks.arc import Arc, MiniArc
from tiltrm.tasks.registry import defaults_of
from tiltrm.train import distributed
from tiltrm.train.demonstrations import TrainingData, read_demonstrations
from tiltrm.train.settings import TrainSettings, load_preset
from tiltrm.train.trainer import Trainer
from tiltrm.train.validation import ValidationReport

PROBED_STEPS = 5  # after which a run says how long it will take
HELD_OUT = 10  # without --val, every tenth training puzzle is kept for validation


def run(arguments: argparse.Namespace) -> int:
    """Train, and print the last validation report."""
    begun = time.monotonic()
    limit = 60 * _positive("--piece-minutes", arguments.piece_minutes, float("inf"))
    leads = os.environ.get("RANK", "0") == "0"  # of the processes that torchrun starts
    settings = _settings(arguments)
    data = _training_data(arguments, settings)
    for puzzles in (data.train, data.val):
        puzzles.labels()  # a DataError where there are none, before the folder is made
    with locked(_folder(arguments), "train") if leads else nullcontext():
        trainer = _trainer(arguments, settings, data)
        return _run(arguments, trainer, lambda: time.monotonic() - begun > limit)


def _run(arguments: argparse.Namespace, trainer: Trainer, over: Callable[[], bool]) -> int:
    resumed = arguments.resume and trainer.resume()
    if arguments.start is not None and not resumed:
        trainer.begin_with(arguments.start)
    forecast = _Forecast(trainer)
    with _caught() as signals:
        report = trainer.run(stop=lambda: forecast.note() or bool(signals) or over())
    distributed.leave()
    if trainer.world.is_leader:
        if arguments.json:
            print(json.dumps(nan_to_null(_result(trainer, report)), allow_nan=False))
        else:
            print(_summary(trainer, report))
    return 128 + signals[0] if signals and trainer.clock.progress < 1.0 else 0


class _Forecast:
    """Says once, after a few steps, how long a run will take if that is more than some minutes."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer, self.begun = trainer, time.monotonic()
        self.first = trainer.clock.step
        self.said = not trainer.world.is_leader

    def note(self) -> bool:
        """Called after every step; always False, which stops nothing."""
        clock, settings = self.trainer.clock, self.trainer.settings
        done = clock.step - self.first
        if self.said or done < PROBED_STEPS:
            return False
        self.said = True
        if settings.minutes > 0:
            seconds, work = 60.0 * settings.minutes - clock.seconds, f"{settings.minutes:g} minutes"
        else:
            left = settings.steps - clock.step
            seconds = left * (time.monotonic() - self.begun) / done
            work = f"{settings.steps:,} steps"
        say_if_long("train", f"plans {work}", seconds, "it may be stopped, and --resume goes on")
        return False


def _result(trainer: Trainer, report: ValidationReport) -> dict[str, Any]:
    return {
        "steps": trainer.clock.step, "seconds": round(trainer.clock.seconds, 2),
        "best": trainer.best, "val": report._asdict(), "warning": _warning(trainer, report),
    }  # fmt: skip


def _summary(trainer: Trainer, report: ValidationReport) -> str:
    steps, seconds = trainer.clock.step, trainer.clock.seconds
    lines = [f"val exact at N={n}: {100 * exact:.2f} %" for n, exact in report.exact.items()]
    judge = f"halting accuracy {100 * report.halt_accuracy:.2f} %, AUROC {report.halt_auroc:.4f}"
    best = f"{steps} steps, {seconds:.0f} s, best val {100 * trainer.best:.2f} %"
    warning = _warning(trainer, report)
    return "\n".join([*lines, judge, best, *([f"warning: {warning}"] if warning else [])])


def _warning(trainer: Trainer, report: ValidationReport) -> str | None:
    """What to do if the best weights solve no validation puzzle at all."""
    if trainer.best > 0:
        return None
    learned = (
        f"the model solves none of the {len(trainer.val)} validation puzzles after "
        f"{trainer.clock.step} steps ({100 * report.cells:.1f} % of their cells are right), so the "
        f"weights in {trainer.folder / 'best'} are of no use yet; "
    )
    if trainer.clock.progress < 1.0:
        return learned + "the run is not finished: go on with --resume"
    return (
        learned + "train longer (--resume with more --minutes or --steps) or try another --preset"
    )


def _folder(arguments: argparse.Namespace) -> Path:
    out: Path | None = arguments.out
    return out or Path("runs") / f"{arguments.task}-{Path(arguments.preset).stem}"


def _trainer(arguments: argparse.Namespace, settings: TrainSettings, data: TrainingData) -> Trainer:
    return Trainer(
        settings, data.train, data.val, _folder(arguments), device=arguments.device,
        tensorboard=arguments.tensorboard, command=("tiltrm", *sys.argv[1:]),
        names=data.names, held_out=data.held_out,
    )  # fmt: skip


def _settings(arguments: argparse.Namespace) -> TrainSettings:
    """The preset, overridden by the flags of the command line."""
    by_name(arguments.task)  # an unknown task is an error of its own, before its presets
    values = asdict(load_preset(arguments.task, arguments.preset))
    if arguments.minutes is not None:
        values["minutes"] = _positive("--minutes", arguments.minutes)
    if arguments.steps is not None:
        values |= {"steps": int(_positive("--steps", arguments.steps)), "minutes": 0.0}
    if arguments.seed is not None:
        values["seed"] = arguments.seed
    given = [name for name in ("minutes", "steps", "seed") if getattr(arguments, name) is not None]
    for key, value in map(parse_assignment, arguments.set):
        if key in given:
            raise SettingsError(f"expected every setting once, got {key} again; leave one out")
        given.append(key)
        assign(values, key, value)
    if values["task"] != arguments.task:
        raise SettingsError(
            f"expected settings for {arguments.task}, got some for {values['task']!r}; name the "
            "task with --task"
        )
    settings = build_record(TrainSettings, values)
    if "steps" in given and settings.minutes > 0:
        raise SettingsError(
            f"steps or minutes plan a run, got {settings.steps} and {settings.minutes:g}; write "
            "--steps instead of --set"
        )
    return settings


def _training_data(arguments: argparse.Namespace, settings: TrainSettings) -> TrainingData:
    """Training and validation puzzles, both with answers."""
    task = by_name(arguments.task)
    source = arguments.data or defaults_of(task).training_data
    if not source:
        raise SettingsError(f"there is no public set for {arguments.task}; give --data")

    most = arguments.max_bytes
    if isinstance(task, MiniArc | Arc):
        if arguments.val:
            raise SettingsError(
                "--val must be left out for ARC tasks, got a file; --set hold_out=SHARE keeps "
                "demonstrations for validation"
            )
        return read_demonstrations(task, read_arc_tasks(source, most), settings)
    train = read(source, task, default="train", max_bytes=most)
    if arguments.val:
        return TrainingData(train, read(arguments.val, task, default="val", max_bytes=most))
    if len(train) < 2:
        raise DataError(f"{source}: expected two puzzles or more, got one; give --val as well")
    held_out, *kept = splits.folds(len(train), min(HELD_OUT, len(train)))
    return TrainingData(train.take(torch.cat(kept).sort().values), train.take(held_out))


def assign(values: dict[str, Any], key: str, value: Any) -> None:
    """Set a nested setting: the key 'schedule.final' is `final` in the group `schedule`."""
    *path, last = key.split(".")
    for part in path:
        values = values.setdefault(part, {})
        if not isinstance(values, dict):
            raise SettingsError(f"--set {key}: {part} is not a group of settings")
    values[last] = value


def _positive(name: str, value: float | None, default: float = 0.0) -> float:
    if value is not None and not value > 0:
        raise SettingsError(f"{name} must be above 0, got {value:g}")
    return default if value is None else value


@contextmanager
def _caught() -> Iterator[list[int]]:
    """The SIGINT and SIGTERM caught inside; a second one of the same kind has its usual effect."""
    caught: list[int] = []

    def note(number: int, _: object) -> None:
        caught.append(number)
        signal.signal(number, before[number])

    before: dict[int, Any] = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, note)
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
