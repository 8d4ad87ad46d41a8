"""Solve puzzles, and say how sure every cell is and what it cost."""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from tiltrm import cpu_precision
from tiltrm.cli.arc_solving import refuse_arc_flags, run_arc
from tiltrm.cli.notes import say_guide_notes
from tiltrm.cli.progress import Bar
from tiltrm.cli.search_settings import BATCH, OF_SEARCH, say_if_search_is_long, search_settings
from tiltrm.cli.show import Printer, exit_code
from tiltrm.cli.watch import LiveCloud
from tiltrm.data import stream_lines
from tiltrm.data.arc_files import is_arc_file
from tiltrm.data.guess import LOOK_AT, by_addresses
from tiltrm.data.streams import MAX_BYTES, BoundedStream
from tiltrm.data.text_files import lines
from tiltrm.device import choose
from tiltrm.errors import DataError, SettingsError
from tiltrm.model import load
from tiltrm.model.build import Model
from tiltrm.solving import solve_texts, task_of
from tiltrm.solving.call import risk_rung
from tiltrm.tasks import SUDOKU, Task
from tiltrm.tasks.registry import defaults_of

# AI Escargot (Arto Inkala, 2006): one trajectory does not solve it, a cloud of two does.
SAMPLE = "1....7.9..3..2...8..96..5....53..9...1..8...26....4...3......1..4......7..7...3.."
STDIN, STDIN_NAME = "-", "standard input"


def run(arguments: argparse.Namespace) -> int:
    """Solve, print as it goes, and return the exit code."""
    device = choose(arguments.device)
    with _puzzle_file(arguments) as file:
        if file is not None and is_arc_file(file):
            return run_arc(arguments, device, file)
        refuse_arc_flags(arguments)
        model, task = _open(arguments, device, file)
        texts = _texts(arguments, task, file)
    _check_outputs(arguments, len(texts))
    show = Printer(task, as_json=arguments.json, colour=not arguments.no_color)
    live = LiveCloud(task, model, colour=show.colour) if arguments.watch else None
    settings = search_settings(arguments)
    say_guide_notes("solve", [settings.get("guide")], model)
    if arguments.risk is not None:
        own = {name: value for name, value in settings.items() if name in OF_SEARCH}
        risk_rung(model, task, arguments.risk, **own)  # now, so that it is refused before the work
    recording = None
    if arguments.html:
        from tiltrm.serve.recording import Recording

        recording = Recording(model, task, settings, arguments.model)
    say_if_search_is_long(model, task, len(texts), settings)
    size = BATCH[device.type]
    code = 0
    with Bar("solving", len(texts)) as bar, live or nullcontext():

        def watch(info: Any) -> None:
            for each in (recording, live):
                if each is not None:
                    each(info)
            if live is None:
                bar()

        for first in range(0, len(texts), size):
            part = texts[first : first + size]
            progress = None if live else bar.within(first, len(part))
            records = solve_texts(
                model, part, task=task, progress=progress, watch=watch, **settings
            )
            bar.clear()
            if live:
                live.end()
            for number, record in enumerate(records, first + 1):
                show(record, number)
                code = max(code, exit_code(record))
                if recording and record.grid is not None:
                    recording.write(record, Path(arguments.html))
    _afterwards(arguments, task, wrote=recording is not None)
    if arguments.precision == cpu_precision.AUTO and device.type == "cpu" and not arguments.json:
        _measure_cpu()
    return code


def _open(
    arguments: argparse.Namespace, device: torch.device, file: Path | None
) -> tuple[Model, Task]:
    """The model, by default the bundled one of the task or of the addresses; and its task."""
    bundled = defaults_of(arguments.task or "").model
    if not (arguments.model or bundled or arguments.task):
        bundled = _addressed_model(arguments, file)
    name = arguments.model or bundled or SUDOKU.defaults.model
    precision = cpu_precision.choose_for(arguments.method, arguments.precision, device)
    model = load(
        name, config=arguments.config, device=device, puzzle_id=arguments.puzzle_id,
        **precision._asdict(),
    )  # fmt: skip
    return model, task_of(model, arguments.task)


def _addressed_model(arguments: argparse.Namespace, file: Path | None) -> str:
    """The bundled model for the addresses among the puzzles; '' where there are none."""
    texts = list(arguments.puzzles)
    if file is not None:
        for line in islice(lines(file, arguments.max_bytes), LOOK_AT):
            texts += [part.strip(' "\r\n') for part in line.split(",")]
    task = by_addresses(texts)
    return "" if task is None else defaults_of(task).model


def _check_outputs(arguments: argparse.Namespace, puzzles: int) -> None:
    """Raise SettingsError where --watch or --html cannot do what was asked."""
    if arguments.watch and (puzzles > 1 or arguments.json):
        got = "--json" if arguments.json else f"{puzzles} puzzles"
        raise SettingsError(f"--watch shows one puzzle to a person, got {got}; leave one out")
    if arguments.html and puzzles > 1:
        raise SettingsError(f"--html shows one puzzle, got {puzzles}; leave the others out")
    if arguments.html and not _may_be_file(Path(arguments.html)):
        raise SettingsError(f"--html must be a file in a folder that exists, got {arguments.html}")


def _may_be_file(path: Path) -> bool:
    return path.absolute().parent.is_dir() and not path.is_dir()


def _afterwards(arguments: argparse.Namespace, task: Task, *, wrote: bool) -> None:
    """Say to a person what was written, and how to go on after the sample."""
    if arguments.json:
        return
    if wrote:
        print(f"wrote {arguments.html}")
    if not (arguments.puzzles or arguments.file):
        print(f"yours: tiltrm solve PUZZLE ({task.cells} cells) or --file F; more in --help")


def _measure_cpu() -> None:
    """Measure once, after the answers, in which precision the next commands should compute."""
    if sys.stderr.isatty() and cpu_precision.may_measure():
        print("measuring once whether this CPU is faster in bfloat16 or int8 ...", file=sys.stderr)
        best = cpu_precision.measure().best
        print(f"from now on it computes in {best}; --precision says otherwise", file=sys.stderr)


def _texts(arguments: argparse.Namespace, task: Task, file: Path | None) -> list[str]:
    """The puzzles of the command line, then those of the file, or else the sample."""
    for text in arguments.puzzles:
        if os.path.isfile(text):
            raise SettingsError(f"expected a puzzle, got the file {text!r}; write --file {text}")
    texts = list(arguments.puzzles)
    if file is not None:
        found = [text for text, _ in stream_lines(file, task, max_bytes=arguments.max_bytes)]
        if not found:
            raise DataError(f"{file}: expected at least one puzzle, got none")
        texts += found
    return texts or [SAMPLE if task.name == "sudoku" else task.decode(task.generate(0)[0])]


@contextmanager
def _puzzle_file(arguments: argparse.Namespace) -> Iterator[Path | None]:
    """The file of puzzles, if there is one; of standard input a copy, which may be gzip or CSV."""
    if arguments.file != STDIN:
        yield None if arguments.file is None else Path(arguments.file)
        return
    if sys.stdin is None:
        raise DataError(f"{STDIN_NAME}: expected puzzles, got a closed stream; give a file")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "stdin"
        most = MAX_BYTES if arguments.max_bytes is None else arguments.max_bytes
        try:
            with copy.open("wb") as target:  # `yes | tiltrm solve --file -` must not fill the disk
                shutil.copyfileobj(BoundedStream(sys.stdin.buffer, lambda: most), target)
            yield copy
        except DataError as error:
            raise DataError(str(error).replace(str(copy), STDIN_NAME)) from error
