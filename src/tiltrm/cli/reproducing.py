"""The work behind `tiltrm reproduce`: who is asked, what is missing, and what is drawn of it."""

import argparse
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from tiltrm.cli.evaluate_command import compute_jobs
from tiltrm.cli.progress import Bar
from tiltrm.cli.reproduce_command import DATA, MODEL
from tiltrm.errors import DataError, SettingsError
from tiltrm.evaluate import Job, Store, plans, sizes
from tiltrm.evaluate.compare import choose_settings
from tiltrm.evaluate.estimate import Cost, CostEstimator, total
from tiltrm.report import training
from tiltrm.report.book import Cover
from tiltrm.report.catalogue import ITEMS
from tiltrm.report.evidence import SWEEP, Evidence
from tiltrm.report.gather import VAL, Wanted, described, gather, shortened
from tiltrm.report.names import ALL, NAMES
from tiltrm.report.style import styled
from tiltrm.report.write import PAGE, writable, write


def reproduce(arguments: argparse.Namespace) -> int:
    """Compute what is missing, then draw."""
    names = _names(arguments.items)
    _check(arguments)
    store = Store(arguments.store)
    evidence = _evidence(arguments, names, store)
    if arguments.choose:
        grid = plans.grid(evidence.subjects[SWEEP], evidence.size)
        if not arguments.draw_only:
            _compute(arguments, {"choosing": grid}, evidence)
        evidence = replace(evidence, chosen=choose_settings(store, grid))
        print(f"chosen on {VAL}: {_settings(evidence.chosen)}; the table is in {store.folder}")
    if not arguments.draw_only:
        _compute(arguments, {name: ITEMS[name].jobs(evidence) for name in names}, evidence)
    if arguments.compute_only:
        print("computed; without --compute-only the same command draws")
        return 0
    names = sorted(names, key=NAMES.index)  # as on the page
    whole = not arguments.draw_only  # then it was looked through just now
    seen = {name: evidence if whole else ITEMS[name].within(evidence) for name in names}
    left_out = [name for name in names if seen[name] is None]
    if left_out:
        print(f"left out, since the store or a file lacks something: {', '.join(left_out)}")
    if len(left_out) == len(names):
        raise DataError(
            f"{store.folder}: expected results to draw, got too few for any item; compute them "
            "first, without --draw-only, and for fig8 give --scan"
        )
    sheets = [ITEMS[name].draw(own) for name, own in seen.items() if own is not None]
    said = described(evidence.subjects)
    if evidence.chosen:
        said.append(f"Guided has the settings chosen on {VAL}: {_settings(evidence.chosen)}.")
    commands = {name: _command(arguments, name) for name in names}
    left = shortened(evidence.size, evidence.subjects, evidence.frontier)
    cover = Cover(said, left, commands)
    files = write(sheets, cover, arguments.out)
    print(f"{len(files)} files; the page is {arguments.out / PAGE}")
    return 0


def _settings(chosen: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in chosen.items())


def _compute(
    arguments: argparse.Namespace, jobs: Mapping[str, Sequence[Job]], evidence: Evidence
) -> None:
    """Say what is missing, and do it."""
    todo, costs = _announce(jobs, evidence)
    reached = [0.0, *accumulate(costs)]
    with Bar("computing", max(1, int(reached[-1]))) as bar:

        def tick(done: float, of: int) -> None:
            number = min(int(done), of - 1)
            bar(reached[number] + (done - number) * costs[number])

        compute_jobs(arguments, todo, evidence.store, tick)


def _names(items: Sequence[str]) -> list[str]:
    """The items in the order they were named, each once: what is named first is computed first."""
    unknown = [item for item in items if item not in (*NAMES, ALL)]
    if unknown:
        raise SettingsError(
            f"items are {', '.join(NAMES)} and {ALL}, got {', '.join(map(repr, unknown))}"
        )
    named = (name for item in items for name in (NAMES if item == ALL else (item,)))
    return list(dict.fromkeys(named))


def _check(arguments: argparse.Namespace) -> None:
    """Whatever would fail after hours of computing fails now."""
    if arguments.frontier_puzzles is not None and arguments.frontier_puzzles < 1:
        raise SettingsError(
            f"--frontier-puzzles must be at least 1, got {arguments.frontier_puzzles}"
        )
    if arguments.choose and arguments.val is None:
        raise SettingsError("--choose needs puzzles to choose on, got none; name them with --val")
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
    training.curves(arguments.metrics)
    if arguments.scan:
        training.scanned(arguments.scan)
    if not arguments.compute_only:
        writable(arguments.out)
        with styled():
            pass


def _evidence(arguments: argparse.Namespace, names: Sequence[str], store: Store) -> Evidence:
    model, data = arguments.model, arguments.data
    if arguments.tiny and model is None and data is None:
        model, data = sizes.write_tiny(store.folder / "tiny")
    wanted = Wanted(
        model or MODEL, data or DATA, arguments.val, arguments.maze, arguments.maze_data
    )
    parts = {part for name in names for part in ITEMS[name].plans}
    parts |= {SWEEP} if arguments.choose else set()
    subjects, absent = gather(wanted, parts)
    size = "tiny" if arguments.tiny else "quick" if arguments.quick else "full"
    return Evidence(
        store, size, subjects, absent, tuple(arguments.metrics), arguments.scan,
        arguments.frontier_puzzles, partial=arguments.draw_only,
    )  # fmt: skip


def _announce(
    jobs: Mapping[str, Sequence[Job]], evidence: Evidence
) -> tuple[list[Job], list[float]]:
    """Print what each item still needs; the missing jobs, each once, and their evaluations."""
    prices = CostEstimator(evidence.subjects.values())
    todo: dict[str, Job] = {}
    costs: list[Cost] = []
    for name, some in jobs.items():
        fresh = [job for job in evidence.store.missing(some) if job.key not in todo]
        todo |= {job.key: job for job in fresh}
        costs += [prices.of(job) for job in fresh]
        if fresh:
            print(f"{name}: {total(costs[-len(fresh) :]).words()}")
    print(f"to compute: {total(costs).words()}" if todo else "the store has all that is needed")
    return list(todo.values()), [cost.evaluations for cost in costs]


def _command(arguments: argparse.Namespace, name: str) -> str:
    """What makes this item again. Folders are left open: they do not decide what is in it."""
    words = ["tiltrm", "reproduce", name, "--store", "DIR", "--out", "DIR"]
    for flag in ("model", "data", "val", "maze", "maze_data", "scan", "frontier_puzzles"):
        value = getattr(arguments, flag)
        if value is not None:
            words += [f"--{flag.replace('_', '-')}", str(value)]
    for path in arguments.metrics:
        words += ["--metrics", str(path)]
    words += [f"--{flag}" for flag in ("choose", "quick", "tiny") if getattr(arguments, flag)]
    return shlex.join(words)
