"""Check a file of puzzles: its task, count, checksum and bad rows; or generate puzzles."""

import argparse
import csv
import json
import os
import random
from pathlib import Path
from typing import Any, TextIO

from tiltrm.cli.forecast import ProgressForecast
from tiltrm.cli.progress import Bar
from tiltrm.data import SPLITS, Puzzles, checksum, guess, read, stream_lines
from tiltrm.data.arc_files import is_arc_file, read_arc_tasks
from tiltrm.data.arc_puzzles import is_arc
from tiltrm.errors import DataError, PuzzleError, SettingsError
from tiltrm.tasks import SUDOKU, Task, by_name
from tiltrm.tasks.check import check_task
from tiltrm.tasks.pencil import Pencil, PencilTask, dataset

SHOWN, LISTED = 5, 1000  # bad puzzles in the text; in the JSON
MOST_GENERATED = 10**7  # more is likely a typing mistake
SEEDS_APART = 10**9  # between the first puzzles of two seeds, so that their files do not overlap
PROBED = 10  # puzzles whose generation is timed
CHECKED = 16  # puzzles on which a task of one's own is checked


def run(arguments: argparse.Namespace) -> int:
    """Generate puzzles if asked to, then report on the file."""
    task = None if arguments.task is None else by_name(arguments.task)
    path = arguments.file
    if arguments.generate is not None:
        path = _generated(arguments, task or SUDOKU)
    elif path is None and ":" in (arguments.task_source or "") and task is not None:
        return _check_own(task, as_json=arguments.json)
    else:
        _check_reading(arguments)
    report = _report(path, task, arguments.max_bytes)
    print(json.dumps(report) if arguments.json else _words(report))
    return 2 if report["bad"] else 0


def _check_own(task: Task, *, as_json: bool) -> int:
    """Check a task of one's own on generated puzzles; a fault is an error."""
    checked = check_task(task, CHECKED)
    if as_json:
        print(json.dumps({"task": task.name, "checked": checked}))
    elif checked:
        print(f"{task.name}: rules, texts, symmetries and pictures fit on {checked} puzzles")
    else:
        print(f"{task.name}: sizes and symmetries fit; it generates no puzzles to check the rest")
    return 0


def _check_reading(arguments: argparse.Namespace) -> None:
    for flag in ("out", "seed", "without"):
        if getattr(arguments, flag) is not None:
            raise SettingsError(f"--{flag} goes with --generate N, got none; leave --{flag} out")
    if arguments.file is None:
        raise SettingsError("expected a FILE or --generate N, got neither; give one of them")


def _generated(arguments: argparse.Namespace, task: Task) -> Path:
    """Generate puzzles into a new file, which is removed again if that fails."""
    path: Path | None = arguments.out
    if not 1 <= arguments.generate <= MOST_GENERATED:
        raise SettingsError(
            f"--generate must lie in 1..{MOST_GENERATED:,}, got {arguments.generate}"
        )
    if arguments.file is not None:
        raise SettingsError(f"--generate reads no FILE, got {arguments.file!r}; leave one out")
    if path is None:
        raise SettingsError("--generate needs a file to write, got none; name it with --out F")
    if isinstance(task, PencilTask | Pencil):
        return _continued(arguments, task, path)
    if arguments.without:
        raise SettingsError(f"--without goes with pencil puzzles, got {task.name}; leave it out")
    try:
        with path.open("x", newline="") as target:
            try:
                _write(target, task, arguments.generate, arguments.seed or 0)
            except BaseException:
                path.unlink()  # otherwise the next try would refuse to overwrite it
                raise
    except OSError as error:
        raise DataError(f"{path}: expected to write a new file, got: {error.strerror}") from error
    return path


def _continued(arguments: argparse.Namespace, task: PencilTask | Pencil, path: Path) -> Path:
    """Generate pencil puzzles on all cores; a file that is there already is continued."""
    count, seed = arguments.generate, arguments.seed or 0
    if seed < 0:
        raise SettingsError(f"--seed must not be negative, got {seed}")
    forecast = _forecast(count, "it may be stopped, and the same command goes on")
    with Bar("generating", count, unit="puzzles") as bar:

        def progress(done: int) -> None:
            forecast(done)
            bar(done)

        left_out = dataset.write(
            task.generated_kinds, path, count, first=seed * SEEDS_APART,
            without=arguments.without or (), progress=progress,
        )  # fmt: skip
    if left_out and not arguments.json:
        print(f"{_counted(left_out, 'puzzle')} left out, which occurred before")
    return path


def _forecast(count: int, advice: str = "") -> ProgressForecast:
    work = f"generates {count:,} puzzles"
    return ProgressForecast("data", work, count, probed=PROBED, advice=advice)


def _write(target: TextIO, task: Task, count: int, seed: int) -> None:
    chance = random.Random(seed)
    rows = csv.writer(target)
    rows.writerow(("question", "answer"))
    forecast = _forecast(count)
    with Bar("generating", count, unit="puzzles") as bar:
        for done in range(count):
            forecast(done)
            bar(done)
            rows.writerow(map(task.decode, task.generate(chance.getrandbits(63))))
    target.flush()


def _report(path: str | Path, task: Task | None, max_bytes: int | None) -> dict[str, Any]:
    """Task, count, checksum and split of a file; `bad` lists the first bad puzzles."""
    try:
        puzzles = read(path, task, max_bytes=max_bytes)
    except DataError as error:
        if is_arc_file(path) and (task is None or is_arc(task)):
            raise  # the error names the task; no line of JSON is a puzzle
        return _report_bad(path, task, error, max_bytes)
    if is_arc(puzzles.task) and is_arc_file(path):
        return _report_arc(path, puzzles, max_bytes)
    digest = checksum(puzzles)
    split = next((name for name, known in SPLITS.items() if known.sha256 == digest), None)
    return {
        "file": str(path), "task": puzzles.task.name, "puzzles": len(puzzles),
        "answers": puzzles.answers is not None, "sha256": digest, "split": split, "bad": [],
        "bad_puzzles": 0,
    }  # fmt: skip


def _report_arc(path: str | Path, puzzles: Puzzles, max_bytes: int | None) -> dict[str, Any]:
    """The same for ARC tasks; `puzzles` are their test inputs."""
    tasks = read_arc_tasks(path, max_bytes)
    return {
        "file": str(path), "task": puzzles.task.name, "puzzles": len(puzzles),
        "answers": puzzles.answers is not None, "sha256": checksum(puzzles), "split": None,
        "bad": [], "arc_tasks": len(tasks),
        "demonstrations": sum(len(task.demonstrations) for task in tasks),
        "test_inputs": sum(len(task.tests) for task in tasks),
        "known_outputs": sum(len(task.outputs or ()) for task in tasks),
    }  # fmt: skip


def _report_bad(
    path: str | Path, task: Task | None, error: DataError, max_bytes: int | None
) -> dict[str, Any]:
    """The report on a file that `read` refused with `error`, puzzle by puzzle.

    The error is raised again if it is not about bad questions: if all can be read, or none can and
    the error is about the whole file.
    """
    entries = stream_lines(Path(path), task, max_bytes=max_bytes) if os.path.isfile(path) else ()
    bad: list[dict[str, Any]] = []
    named: list[str] = []
    cells: set[int] = set()
    count = wrong = 0
    for count, (text, result) in enumerate(entries, 1):
        if not isinstance(result, PuzzleError):
            cells.add(len(result))
        else:
            wrong += 1
            if wrong <= LISTED:
                bad.append({"puzzle": count, "error": str(result)})
        if len(named) < guess.LOOK_AT and guess.by_addresses([text]) is not None:
            named.append(text)
    if not bad or (wrong == count and not _of_a_puzzle(error)):
        raise error
    found = task or guess.by_addresses(named)
    found = found or next((known for known in guess.SIZED if known.cells in cells), None)
    return {
        "file": str(path), "task": found.name if found else None, "puzzles": count,
        "answers": None, "sha256": None, "split": None, "bad": bad, "bad_puzzles": wrong,
    }  # fmt: skip


def _of_a_puzzle(error: BaseException | None) -> bool:
    """Whether the first cause of the error was a bad puzzle."""
    return isinstance(error, PuzzleError) or (error is not None and _of_a_puzzle(error.__cause__))


def _words(report: dict[str, Any]) -> str:
    """The report as text."""
    answers = {True: ", with answers", False: ", without answers", None: ""}[report["answers"]]
    task = "" if report["task"] is None else f" of {report['task']}"
    lines = [f"{report['file']}: {_counted(report['puzzles'], 'puzzle')}{task}{answers}"]
    if "arc_tasks" in report:
        counts = (("arc_tasks", "ARC task"), ("demonstrations", "demonstration"),
                  ("test_inputs", "test input"), ("known_outputs", "known output"))  # fmt: skip
        lines = [f"{report['file']} ({report['task']}): "
                 + ", ".join(_counted(report[key], what) for key, what in counts)]  # fmt: skip
    if report["sha256"]:
        lines += [f"split: {report['split'] or 'not a known split'}"]
        lines += [f"sha256: {report['sha256']}"]
    bad = report["bad"]
    lines += [f"puzzle {row['puzzle']}: {row['error']}" for row in bad[:SHOWN]]
    if bad:
        wrong = report["bad_puzzles"]
        it = "it" if wrong == 1 else "them"
        lines += [f"{_counted(wrong, 'bad puzzle')}; correct or drop {it}"]
    return "\n".join(lines)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
