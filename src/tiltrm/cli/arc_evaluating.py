"""`tiltrm evaluate` on a file of ARC tasks: pass@1 and pass@2 of several methods."""

import argparse
import json
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from tiltrm.cli.arc_solving import open_model, puzzle_names
from tiltrm.cli.flags import USUALLY_EVALUATED
from tiltrm.cli.methods import method_settings, parse_method, settings_from
from tiltrm.cli.notes import say_guide_notes
from tiltrm.cli.progress import Bar
from tiltrm.cli.search_settings import BATCH
from tiltrm.data.arc_files import ArcTask, read_arc_tasks
from tiltrm.data.arc_questions import arc_questions
from tiltrm.device import choose
from tiltrm.errors import DataError, SettingsError
from tiltrm.evaluate.arc import AUGMENTATIONS, ArcMethod, arc_method, search_of
from tiltrm.evaluate.arc_jobs import ArcTarget, arc_jobs, evaluate_arc
from tiltrm.evaluate.arc_rows import ArcRow, arc_table, compare_rows
from tiltrm.evaluate.store import Store, say
from tiltrm.evaluate.table import Comparison, comparisons_table
from tiltrm.evaluate.target import fingerprint
from tiltrm.model import load
from tiltrm.model.build import Model
from tiltrm.solving.plans import tuned_plan


def run_arc_evaluation(arguments: argparse.Namespace) -> int:
    """Compute the missing results of every method on the tasks with outputs, print the tables."""
    _refuse_others(arguments)
    device = choose(arguments.device)
    asked = [parse_method(text) for text in arguments.method or USUALLY_EVALUATED]
    tasks, skipped = _scored(arguments)
    model, task = open_model(arguments, device, tasks)
    if skipped:
        say(f"{arguments.data}: {skipped:,} tasks without outputs are left out of the scores")
    shared = settings_from(arguments.settings)
    if arguments.seconds is not None:
        shared["seconds"] = arguments.seconds
    tuned = tuned_plan(model, task)
    methods = [
        arc_method(method, settings, task.name)
        for method, settings in method_settings(asked, shared, task.name, tuned, [AUGMENTATIONS])
    ]
    for own in methods:
        search_of(own, model, task)  # now, so that a mistake is told before the work
    say_guide_notes("evaluate", [own.settings.get("guide") for own in methods], model)
    names = puzzle_names(model, "evaluate")
    arc_questions(task, tasks, names)
    name = arguments.model or task.defaults.model or ""
    # Fingerprints are of float32 weights on a CPU.
    target = ArcTarget(
        name, fingerprint(load(name), task.name), str(arguments.data), task, tasks, names
    )
    kept = arguments.store is not None
    with nullcontext(arguments.store) if kept else tempfile.TemporaryDirectory() as folder:
        rows = _rows(arguments, methods, model, target, Store(folder), BATCH[device.type])
    told = _figures(rows, tasks)
    print(json.dumps(told, allow_nan=False) if arguments.json else _words(rows))
    return 0


def _rows(
    arguments: argparse.Namespace, methods: Sequence[ArcMethod], model: Model, target: ArcTarget,
    store: Store, at_once: int,
) -> list[ArcRow]:  # fmt: skip
    """The rows of all methods, with a bar that counts the questions still to be asked."""
    counts = {"seeds": arguments.seeds, "folds": arguments.folds or 1}
    inputs = [len(task.tests) for task in target.scored]
    missing = [
        own.augmentations * sum(inputs[row] for row in job.rows(len(inputs)).tolist())
        for own in methods
        for job in store.missing(arc_jobs(own, target, **counts))
    ]
    done = 0
    with Bar("evaluating", sum(missing), unit="questions") as bar:

        def tick(questions: int) -> None:
            nonlocal done
            done += questions
            bar(done)

        return [
            evaluate_arc(own, model, target, store, **counts, at_once=at_once, tick=tick)
            for own in methods
        ]


def _scored(arguments: argparse.Namespace) -> tuple[list[ArcTask], int]:
    """The first tasks of the file, and how many of them have no outputs."""
    tasks = read_arc_tasks(arguments.data)[: arguments.limit]
    skipped = sum(task.outputs is None for task in tasks)
    if skipped == len(tasks):
        raise DataError(
            f"{arguments.data}: expected ARC tasks with the outputs of their tests, got none; take "
            "a file that has them, or the file of solutions beside it"
        )
    return tasks, skipped


def _comparisons(rows: list[ArcRow], attempts: int) -> list[Comparison]:
    first, *others = rows
    return [
        Comparison(f"pass@{attempts}", row.title, first.title, compare_rows(row, first, attempts))
        for row in others
    ]


def _figures(rows: list[ArcRow], tasks: list[ArcTask]) -> dict[str, Any]:
    """All results, ready for JSON."""
    found = [pair for attempts in (1, 2) for pair in _comparisons(rows, attempts)]
    scored = [task for task in tasks if task.outputs is not None]
    return {
        "tasks": len(scored), "test_inputs": sum(len(task.tests) for task in scored),
        "rows": [row.as_dict() for row in rows], "paired": [pair.as_dict() for pair in found],
    }  # fmt: skip


def _words(rows: list[ArcRow]) -> str:
    parts = [arc_table(rows)]
    found = [pair for attempts in (1, 2) for pair in _comparisons(rows, attempts)]
    if found:
        parts.append(
            "paired differences in percentage points, on the same tasks, averaged over seeds:\n"
            + comparisons_table(found, "score")
        )
    return "\n\n".join(parts)


def _refuse_others(arguments: argparse.Namespace) -> None:
    if arguments.limit is not None and arguments.limit < 1:
        raise SettingsError(f"--limit must be at least 1 task, got {arguments.limit}")
    if not 1 <= arguments.seeds <= 1000:
        raise SettingsError(f"--seeds must lie in 1..1000, got {arguments.seeds}")
    given = ("ray", "by_step", "risk", "reliability", "split", "puzzle_id", "precision")
    for name in given:
        if getattr(arguments, name) not in (None, False, []):
            raise SettingsError(
                f"--{name.replace('_', '-')} is not for ARC tasks, whose results --json prints "
                "whole; leave it out"
            )
