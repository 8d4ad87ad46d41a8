"""The work behind `tiltrm reproduce`: check the flags, compute missing results, draw the items."""

import argparse
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from tiltrm.cli.evaluate_command import compute_jobs
from tiltrm.cli.job_forecast import say_if_jobs_are_long
from tiltrm.cli.progress import Bar
from tiltrm.cli.reproduce_command import DATA, MODEL
from tiltrm.errors import DataError, SettingsError
from tiltrm.evaluate import Job, Store, plans, sizes
from tiltrm.evaluate.compare import choose_settings
from tiltrm.evaluate.estimate import Cost, CostEstimator, total
from tiltrm.report import ALL, ITEM_NAMES
from tiltrm.report.drawing import figure_style
from tiltrm.report.fig5_stability import halting_curves
from tiltrm.report.fig8_training import read_scan
from tiltrm.report.items import ITEMS
from tiltrm.report.page import PAGE, PageHeader, make_folder, write
from tiltrm.report.results import (
    SWEEP,
    VAL,
    StoredResults,
    describe_reductions,
    describe_targets,
    find_targets,
)


def reproduce(arguments: argparse.Namespace) -> int:
    """Compute the missing results, then draw."""
    names = _item_names(arguments.items)
    _check(arguments)
    results = _find_results(arguments, names, Store(arguments.store))
    if arguments.choose:
        grid = plans.grid(results.targets[SWEEP], results.size)
        if not arguments.draw_only:
            _compute(arguments, {"choosing": grid}, results)
        puzzles = results.targets[SWEEP].puzzles
        results = replace(results, chosen=choose_settings(results.store, grid, puzzles=puzzles))
        print(f"chosen on {VAL}: {_settings(results.chosen)}; the table is in {arguments.store}")
    if not arguments.draw_only:
        _compute(arguments, {name: ITEMS[name].jobs(results) for name in names}, results)
    if arguments.compute_only:
        print("computed; without --compute-only the same command draws")
        return 0
    _draw(arguments, sorted(names, key=ITEM_NAMES.index), results)
    return 0


def _item_names(items: Sequence[str]) -> list[str]:
    """The items in the order in which they are named, each once."""
    unknown = [item for item in items if item not in (*ITEM_NAMES, ALL)]
    if unknown:
        raise SettingsError(
            f"items are {', '.join(ITEM_NAMES)} and {ALL}, got {', '.join(map(repr, unknown))}"
        )
    named = (name for item in items for name in (ITEM_NAMES if item == ALL else (item,)))
    return list(dict.fromkeys(named))


def _check(arguments: argparse.Namespace) -> None:
    """Raise every error now that would otherwise be raised after hours of computing."""
    if arguments.frontier_puzzles is not None and arguments.frontier_puzzles < 1:
        raise SettingsError(
            f"--frontier-puzzles must be at least 1, got {arguments.frontier_puzzles}"
        )
    if arguments.choose and arguments.val is None:
        raise SettingsError("--choose needs puzzles to choose on, got none; name them with --val")
    if arguments.tiny:
        _check_tiny(arguments)
    if arguments.draw_only and not os.path.isdir(arguments.store):
        raise DataError(
            f"{arguments.store}: expected a store to draw from, got no such folder; name another, "
            "or leave --draw-only out"
        )
    for path in (*arguments.metrics, *([arguments.scan] if arguments.scan else [])):
        if not path.is_file():
            raise DataError(
                f"{path}: expected the record of a training run, got no file; name another"
            )
    halting_curves(arguments.metrics)
    if arguments.scan:
        read_scan(arguments.scan)
    if not arguments.compute_only:
        make_folder(arguments.out)
        with figure_style():
            pass


def _check_tiny(arguments: argparse.Namespace) -> None:
    """--tiny takes a model and puzzles only together, so that bundled weights never run."""
    needs = {"model": "data", "data": "model", "val": "data", "maze": "maze_data",
             "maze_data": "maze"}  # fmt: skip
    for name, other in needs.items():
        if getattr(arguments, name) is not None and getattr(arguments, other) is None:
            raise SettingsError(
                "--tiny has random weights and small puzzles of its own: expected "
                f"{_flag(other)} with {_flag(name)}, got {_flag(name)} alone; add it, or leave out "
                "--tiny"
            )


def _random_weights(arguments: argparse.Namespace) -> bool:
    return bool(arguments.tiny and arguments.model is None)


def _find_results(
    arguments: argparse.Namespace, names: Sequence[str], store: Store
) -> StoredResults:
    model, data = arguments.model or MODEL, arguments.data or DATA
    if _random_weights(arguments):
        model, data = sizes.write_tiny(store.folder / "tiny")
    roles = {role for name in names for role in ITEMS[name].plans}
    roles |= {SWEEP} if arguments.choose else set()
    targets, absent = find_targets(
        roles, model, data, val=arguments.val, maze=arguments.maze, maze_data=arguments.maze_data,
        default_maze=not arguments.tiny,
    )  # fmt: skip
    size = "tiny" if arguments.tiny else "quick" if arguments.quick else "full"
    return StoredResults(
        store, size, targets, absent, tuple(arguments.metrics), arguments.scan,
        arguments.frontier_puzzles, partial=arguments.draw_only,
    )  # fmt: skip


def _compute(
    arguments: argparse.Namespace, jobs: Mapping[str, Sequence[Job]], results: StoredResults
) -> None:
    """Print what is missing, and compute it."""
    missing, costs = _announce(jobs, results)
    if arguments.ray is None:
        advice = "it may be stopped, and the same command goes on; --quick takes less"
        targets = list(results.targets.values())
        say_if_jobs_are_long("reproduce", missing, targets, arguments.device, advice)
    reached = [0.0, *accumulate(costs)]
    with Bar("computing", max(1, int(reached[-1]))) as bar:

        def tick(done: float, of: int) -> None:
            number = min(int(done), of - 1)
            bar(reached[number] + (done - number) * costs[number])

        compute_jobs(arguments, missing, results.store, tick)


def _announce(
    jobs: Mapping[str, Sequence[Job]], results: StoredResults
) -> tuple[list[Job], list[float]]:
    """Print what each item still needs; the missing jobs, each once, and their evaluations."""
    prices = CostEstimator(results.targets.values())
    missing: dict[str, Job] = {}
    costs: list[Cost] = []
    for name, some in jobs.items():
        fresh = [job for job in results.store.missing(some) if job.key not in missing]
        missing |= {job.key: job for job in fresh}
        costs += [prices.of(job) for job in fresh]
        if fresh:
            print(f"{name}: {total(costs[-len(fresh) :]).words()}")
    print(f"to compute: {total(costs).words()}" if missing else "the store has all that is needed")
    return list(missing.values()), [cost.evaluations for cost in costs]


def _draw(arguments: argparse.Namespace, names: Sequence[str], results: StoredResults) -> None:
    """Draw the items whose results are there, and write the page."""
    with Bar("reading and drawing", 2 * len(names)) as bar:
        sections = []
        left_out = []
        for done, name in enumerate(names, 1):
            own = ITEMS[name].drawable(results) if arguments.draw_only else results
            if own is None:
                left_out.append(name)
            else:
                sections.append(ITEMS[name].section(own))
            bar(done)
        if left_out:
            bar.clear()
            print(f"left out, since the store or a file lacks something: {', '.join(left_out)}")
        if not sections:
            raise DataError(
                f"{results.store.folder}: expected results to draw, got too few for any item; "
                "compute them first, without --draw-only, and for fig8 give --scan"
            )
        files = write(
            sections, _header(arguments, names, results), arguments.out,
            lambda done: bar(len(names) + done),
        )  # fmt: skip
    print(f"{len(files)} files; the page is {arguments.out / PAGE}")


def _header(
    arguments: argparse.Namespace, names: Sequence[str], results: StoredResults
) -> PageHeader:
    random = _random_weights(arguments)
    sentences = describe_targets(results.targets, random=random)
    if results.chosen:
        sentences.append(f"Guided has the settings chosen on {VAL}: {_settings(results.chosen)}.")
    reductions = describe_reductions(results.size, results.targets, results.frontier)
    commands = {name: _command(arguments, name) for name in names}
    return PageHeader(sentences, reductions, commands, random)


def _settings(chosen: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in chosen.items())


def _command(arguments: argparse.Namespace, name: str) -> str:
    """The command of one item. Folders are left open, since its content does not depend on them."""
    words = ["tiltrm", "reproduce", name, "--store", "DIR", "--out", "DIR"]
    for flag in ("model", "data", "val", "maze", "maze_data", "scan", "frontier_puzzles"):
        value = getattr(arguments, flag)
        if value is not None:
            words += [_flag(flag), str(value)]
    for path in arguments.metrics:
        words += ["--metrics", str(path)]
    words += [f"--{flag}" for flag in ("choose", "quick", "tiny") if getattr(arguments, flag)]
    return shlex.join(words)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
