"""Solve puzzles, and say how sure every cell is and what it cost."""

import argparse
import os
import shutil
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

from tiltrm.cli.progress import Bar
from tiltrm.cli.show import Printer, exit_code
from tiltrm.cli.watch import LiveCloud
from tiltrm.data import read_lines
from tiltrm.device import choose
from tiltrm.errors import DataError, SettingsError
from tiltrm.methods import numbers
from tiltrm.model.build import Model
from tiltrm.opening import open_model
from tiltrm.serve.recording import Recording, both
from tiltrm.solver import solve_texts, task_of
from tiltrm.tasks import SUDOKU, Task

MODELS = {"sudoku": "sudoku-extreme", "maze": "maze-hard"}  # bundled
SAMPLE = "8..........36......7..9.2...5...7.......457.....1...3...1....68..85...1..9....4.."
BATCH = {"cpu": 64, "cuda": 4096}  # puzzles solved together; a result does not depend on it
STDIN, STDIN_NAME = "-", "standard input"


def run(arguments: argparse.Namespace) -> int:
    """Solve, print as it goes, and return the exit code."""
    device = choose(arguments.device)
    model, task = _open(arguments, device)
    texts = _texts(arguments, task)
    if arguments.watch and (len(texts) > 1 or arguments.json):
        got = "--json" if arguments.json else f"{len(texts)} puzzles"
        raise SettingsError(f"--watch shows one puzzle to a person, got {got}; leave one out")
    if arguments.html and len(texts) > 1:
        raise SettingsError(f"--html shows one puzzle, got {len(texts)}; leave the others out")
    if arguments.html and not _may_be_file(Path(arguments.html)):
        raise SettingsError(f"--html must be a file in a folder that exists, got {arguments.html}")
    show = Printer(task, as_json=arguments.json, colour=not arguments.no_color)
    live = LiveCloud(task, model, colour=show.colour) if arguments.watch else None
    settings = _settings(arguments)
    film = Recording(model, task, settings, arguments.model) if arguments.html else None
    size = BATCH[device.type]
    code = 0
    with Bar("solving", len(texts)) as bar, live or nullcontext():
        for first in range(0, len(texts), size):
            part = texts[first : first + size]
            progress = None if live else bar.within(first, len(part))
            watch = both(film, live or (lambda info: bar()))
            records = solve_texts(
                model, part, task=task, progress=progress, watch=watch, **settings
            )
            bar.clear()
            if live:
                live.erase()
            for number, solved in enumerate(records, first + 1):
                show(solved, number)
                code = max(code, exit_code(solved))
                if film and solved.grid is not None:
                    film.write(solved, Path(arguments.html))
    _afterwards(arguments, task, live)
    return code


def _open(arguments: argparse.Namespace, device: torch.device) -> tuple[Model, Task]:
    name = arguments.model or MODELS.get(arguments.task, MODELS[SUDOKU.name])
    model = open_model(name, device, arguments.config)
    return model, task_of(model, arguments.task)


def _may_be_file(path: Path) -> bool:
    return path.absolute().parent.is_dir() and not path.is_dir()


def _afterwards(arguments: argparse.Namespace, task: Task, live: LiveCloud | None) -> None:
    """What is left to say to a person."""
    if live and not live.live:
        print("\n".join(live.history()))
    if not (arguments.puzzles or arguments.file or arguments.json):
        print(f"yours: tiltrm solve PUZZLE ({task.cells} cells) or --file F; more in --help")


def _settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """Those that were given."""
    names = (
        "method", "seed", "rules", "guide", "particles", "noise", "beta", "resample_below",
        "outer_steps", "abstain",
    )  # fmt: skip
    given = {name: getattr(arguments, name) for name in names}
    numbers(arguments.method, {"guide": arguments.guide}, "")  # `solve` lets its default pass
    return {name: value for name, value in given.items() if value is not None}


def _texts(arguments: argparse.Namespace, task: Task) -> list[str]:
    """The puzzles of the command line, then those of the file, or else the sample."""
    for text in arguments.puzzles:
        if os.path.isfile(text):
            raise SettingsError(f"expected a puzzle, got the file {text!r}; write --file {text}")
    texts = list(arguments.puzzles)
    if arguments.file is not None:
        found = _from_stdin(task) if arguments.file == STDIN else _from(arguments.file, task)
        if not found:
            name = STDIN_NAME if arguments.file == STDIN else arguments.file
            raise DataError(f"{name}: expected at least one puzzle, got none")
        texts += found
    return texts or [SAMPLE if task == SUDOKU else task.decode(task.generate(0)[0])]


def _from(path: str | Path, task: Task) -> list[str]:
    return [text for text, _ in read_lines(Path(path), task)]


def _from_stdin(task: Task) -> list[str]:
    """A copy first, so that a CSV or gzip stream will do as well as text."""
    if sys.stdin is None:
        raise DataError(f"{STDIN_NAME}: expected puzzles, got a closed stream; give a file")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "stdin"
        with copy.open("wb") as target:
            shutil.copyfileobj(sys.stdin.buffer, target)
        try:
            return _from(copy, task)
        except DataError as error:
            raise DataError(str(error).replace(str(copy), STDIN_NAME)) from error
