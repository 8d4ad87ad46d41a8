"""`tiltrm solve` on a file of ARC tasks: all test inputs, two attempts each."""

import argparse
import sys
from pathlib import Path
from typing import Any

import torch

from tiltrm import cpu_precision
from tiltrm.cli.notes import say_guide_notes
from tiltrm.cli.progress import Bar
from tiltrm.cli.search_settings import BATCH, OF_SEARCH, say_if_search_is_long, search_settings
from tiltrm.cli.show import Printer, rendered
from tiltrm.data.arc_files import ArcTask, read_arc_tasks
from tiltrm.data.arc_puzzles import AnyArc, guess_task, is_arc
from tiltrm.data.arc_questions import arc_questions
from tiltrm.data.arc_submission import Attempts, write_submission
from tiltrm.errors import SettingsError
from tiltrm.model import load
from tiltrm.model.build import Model
from tiltrm.solving import build_search, task_of
from tiltrm.solving.arc import solve_arc
from tiltrm.solving.arc_record import ArcRecord, arc_record
from tiltrm.tasks.arc import ARC, MINI_ARC
from tiltrm.tasks.registry import by_name, defaults_of

ARC_FLAGS = ("augmentations", "translate", "ranking", "submission")


def refuse_arc_flags(arguments: argparse.Namespace) -> None:
    """Raise SettingsError for a flag of ARC tasks without ARC tasks."""
    for name in ARC_FLAGS:
        if getattr(arguments, name):
            raise SettingsError(
                f"--{name} goes with ARC tasks in a JSON file (--file F), got none; leave it out"
            )


def run_arc(arguments: argparse.Namespace, device: torch.device, file: Path) -> int:
    """Solve all test inputs, print as it goes, write the submission, and return the exit code."""
    _refuse_others(arguments)
    tasks = read_arc_tasks(file, arguments.max_bytes)
    model, task = open_model(arguments, device, tasks)
    settings = search_settings(arguments)
    say_guide_notes("solve", [settings.get("guide")], model)
    own = {name: value for name, value in settings.items() if name in OF_SEARCH}
    search = build_search(model, task, **own)
    names = puzzle_names(model, "solve")
    questions = arc_questions(
        task, tasks, names, augmentations=arguments.augmentations or 1, seed=arguments.seed,
        translate=arguments.translate,
    )  # fmt: skip
    say_if_search_is_long(model, task, len(questions), settings)
    ranking = arguments.ranking or "weighted"
    show = Printer(task, as_json=arguments.json, colour=not arguments.no_color)
    attempts: dict[str, list[Attempts]] = {}
    with Bar("solving", len(questions), unit="questions") as bar:
        answers = solve_arc(
            search, task, questions, seed=arguments.seed, at_once=BATCH[device.type],
            progress=lambda done, _: bar(done), watch=lambda _: bar(),
        )  # fmt: skip
        for number, answer in enumerate(answers, 1):
            record = arc_record(task, answer, ranking)
            bar.clear()
            if not arguments.json:
                name = record.task_name
                print(f"{name if name.isprintable() else ascii(name)}, test {record.index + 1}")
            show(record, number)
            if not arguments.json:
                _show_second(record, task, colour=show.colour)
            attempts.setdefault(record.task_name, []).append(record.attempts)
    if arguments.submission is not None:
        write_submission(arguments.submission, attempts)
        if not arguments.json:
            print(f"wrote {arguments.submission}")
    return 0


def _show_second(record: ArcRecord, task: AnyArc, *, colour: bool) -> None:
    """Print the second attempt, if it is another grid."""
    first, second = record.attempts
    if record.grid is not None and first != second:
        grid = rendered(task, record.grid.puzzle, task.answer(second), colour=colour)
        print(f"second attempt:\n{grid}", flush=True)


def open_model(
    arguments: argparse.Namespace, device: torch.device, tasks: list[ArcTask]
) -> tuple[Model, AnyArc]:
    """The model, by default the bundled one for grids of this size; and its ARC task."""
    named = arguments.task and by_name(arguments.task)
    if named and not is_arc(named):
        raise SettingsError(
            f"expected --task {MINI_ARC.name} or {ARC.name} for ARC tasks in JSON, got {named.name}"
        )
    name = arguments.model or defaults_of(named or guess_task(tasks)).model
    if not name:
        raise SettingsError(
            "expected --model with a model for arc, got none, and none is bundled; import a "
            "checkpoint of TinyRecursiveModels, nano-trm or HRM (docs/arc.md)"
        )
    config = getattr(arguments, "config", None)
    options: dict[str, Any] = {}  # `evaluate` has the device's usual precision
    if getattr(arguments, "precision", None) is not None:
        method, precision = arguments.method, arguments.precision
        options = cpu_precision.choose_for(method, precision, device)._asdict()
    model = load(name, config=config, device=device, **options)
    found = task_of(model, named or None)
    if not is_arc(found):
        raise SettingsError(f"expected a model for ARC tasks, got one for {found.name}")
    return model, found  # type: ignore[return-value]


def puzzle_names(model: Model, command: str) -> tuple[str, ...] | None:
    """The names of the model's puzzles; without them, say on stderr what numbers mean."""
    if model.puzzle_names is None:
        print(
            f"tiltrm {command}: the model has no puzzles.json, so the tasks are numbered by their "
            "order in the file; give the file that it was trained on",
            file=sys.stderr,
        )
    return model.puzzle_names


def _refuse_others(arguments: argparse.Namespace) -> None:
    for name in ("abstain", "risk", "html", "watch"):
        if getattr(arguments, name):
            raise SettingsError(f"--{name} is for single puzzles, got ARC tasks; leave it out")
    if arguments.puzzles:
        raise SettingsError("expected ARC tasks or puzzles, got both; leave one out")
