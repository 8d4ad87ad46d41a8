"""Compare methods on the same puzzles: accuracy, cost, and paired tests."""

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tiltrm.cli.arc_evaluating import run_arc_evaluation
from tiltrm.cli.flags import FOLDS, USUALLY_EVALUATED
from tiltrm.cli.job_forecast import say_if_jobs_are_long
from tiltrm.cli.methods import method_settings, parse_method, settings_from
from tiltrm.cli.notes import say_guide_notes
from tiltrm.cli.progress import Bar
from tiltrm.cpu_precision import avoid_illegal_instructions
from tiltrm.data.arc_files import is_arc_file
from tiltrm.device import choose
from tiltrm.errors import SettingsError
from tiltrm.evaluate import (
    EvalTarget,
    Job,
    Shard,
    Store,
    by_step,
    eval_target,
    paired,
    plans,
    summarise,
)
from tiltrm.evaluate import run as compute
from tiltrm.evaluate.options import PRECISION
from tiltrm.evaluate.reliability import reliabilities, reliability_table
from tiltrm.evaluate.run import Progress
from tiltrm.evaluate.store import say
from tiltrm.evaluate.summary import DF, groups, identity
from tiltrm.evaluate.table import (
    Comparison,
    comparisons_table,
    curves_table,
    rows_table,
    stopping_rules,
)
from tiltrm.evaluate.titles import title
from tiltrm.model import load
from tiltrm.report.reliability import draw_reliability
from tiltrm.solving.plans import tuned_plan
from tiltrm.solving.risk import check_risk
from tiltrm.tasks import SUDOKU

Types = Mapping[str, Sequence[int]]
CLUSTER_DEVICES = ("auto", "cpu", "cuda")  # every worker of a cluster has its own GPU
MOST_SEEDS = 1000  # more are likely a typing mistake


def run(arguments: argparse.Namespace) -> int:
    """Compute the missing results, then print the tables."""
    if is_arc_file(arguments.data):
        return run_arc_evaluation(arguments)
    arguments.model = arguments.model or SUDOKU.defaults.model
    avoid_illegal_instructions()
    asked = [parse_method(text) for text in arguments.method or USUALLY_EVALUATED]
    for risk in arguments.risk:
        check_risk(risk)
    kept = arguments.store is not None
    with nullcontext(arguments.store) if kept else tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        split = arguments.split or Path(arguments.data).name.partition(".")[0]
        if split == DF:
            raise SettingsError(
                f"--split {DF} is reserved for the puzzles that the deterministic model fails; "
                "choose another name"
            )
        target = eval_target(
            arguments.model, arguments.data, split, arguments.task, max_bytes=arguments.max_bytes
        )
        _say_what_counts(target)
        todo = _jobs(arguments, asked, target)
        guides = [job.options.get("guide") for job in todo]
        say_guide_notes("evaluate", guides, load(arguments.model))
        if arguments.ray is None:
            advice = "--limit N takes fewer puzzles"
            missing = store.missing(todo)
            say_if_jobs_are_long("evaluate", missing, [target], arguments.device, advice)
        with Bar("evaluating", len(todo), unit="jobs") as bar:
            compute_jobs(arguments, todo, store, lambda done, of: bar(len(todo) - of + done))
        shards = store.read(todo, target.puzzles)
    found = reliabilities(shards, load(arguments.model), arguments.risk)
    if arguments.reliability is not None:
        draw_reliability(found, arguments.reliability)
    if arguments.json:
        told = figures(shards, target.types) | {"reliability": [one.as_dict() for one in found]}
        print(json.dumps(told, allow_nan=False))
    else:
        print(f"{words(shards, target.types)}\n\n{reliability_table(found)}")
    return 0


def _say_what_counts(target: EvalTarget) -> None:
    """Say to stderr which puzzles are left out, and that the rules judge where answers lack."""
    if target.skipped:
        say(
            f"{target.data}: {target.skipped:,} puzzles have a size that {target.task} does not "
            f"hold and are left out; {target.puzzles:,} remain"
        )
    if not target.labelled:
        say(f"{target.data}: it has no answers, so a valid solution counts as right")


def compute_jobs(
    arguments: argparse.Namespace, todo: Sequence[Job], store: Store, progress: Progress
) -> None:
    """Compute the missing jobs in this process, or on a Ray cluster."""
    if arguments.ray is None:
        compute(todo, store, choose(arguments.device), progress)
        return
    if arguments.device not in CLUSTER_DEVICES:
        known = ", ".join(CLUSTER_DEVICES)
        raise SettingsError(f"--device must be one of {known} with --ray, got {arguments.device!r}")
    from tiltrm.evaluate import scale  # imported here, since Ray is an extra

    gpus = 0 if arguments.device == "cpu" else None
    scale.run(todo, store, arguments.ray or None, gpus=gpus, progress=progress)


def figures(shards: Sequence[Shard], types: Types | None = None) -> dict[str, Any]:
    """All results, ready for JSON; types: the puzzles of each type, if there are several."""
    return {
        "rows": [row.as_dict() for row in summarise(shards, types)],
        "paired": [comparison.as_dict() for comparison in comparisons(shards)],
        "by_step": [
            {
                "split": c.split, "method": c.method, "settings": dict(c.settings),
                "exact": [s.mean for s in c.exact], "oracle": [s.mean for s in c.oracle],
            }
            for c in by_step(shards)
        ],
    }  # fmt: skip


def words(shards: Sequence[Shard], types: Types | None = None) -> str:
    """All results as tables."""
    rows = summarise(shards, types)
    parts = [text for text in (rows_table(rows), stopping_rules(rows)) if text]
    if found := comparisons(shards):
        parts.append(
            "paired differences in percentage points, on the same puzzles, averaged over seeds:\n"
            + comparisons_table(found)
        )
    if curves := by_step(shards):
        parts.append(f"exact % by outer step:\n{curves_table(curves)}")
    return "\n\n".join(parts)


def comparisons(shards: Sequence[Shard]) -> list[Comparison]:
    """Every method compared with the first."""
    first, *others = groups(shards)
    return [
        Comparison(first[0].job.split, _title(group), _title(first), paired(group, first))
        for group in others
    ]


def _title(group: Sequence[Shard]) -> str:
    job = group[0].job
    return title(job.method, identity(job)[3], job.task)


def _jobs(
    arguments: argparse.Namespace, asked: Sequence[tuple[str, dict[str, Any]]], target: EvalTarget
) -> list[Job]:
    """The jobs of all methods; a setting of --set goes to the methods that have it."""
    shared = settings_from(arguments.settings)
    if arguments.by_step:
        shared["by_step"] = True
    for name in ("seconds", "puzzle_id", PRECISION):
        if getattr(arguments, name) is not None:
            shared[name] = getattr(arguments, name)
    counts = _counts(arguments, target.puzzles)
    tuned = tuned_plan(load(arguments.model, puzzle_id=arguments.puzzle_id), target.task)
    found: dict[str, Job] = {}
    for method, settings in method_settings(asked, shared, target.task, tuned):
        found |= {job.key: job for job in plans.jobs(target, method, settings, **counts)}
    return list(found.values())


def _counts(arguments: argparse.Namespace, puzzles: int) -> dict[str, Any]:
    """The numbers of puzzles, folds and seeds, each checked; no fold is empty."""
    limit = arguments.limit
    if limit is not None and limit < 1:
        raise SettingsError(f"--limit must be at least 1 puzzle, got {limit}")
    most = {"folds": min(limit or puzzles, puzzles), "seeds": MOST_SEEDS}
    folds = min(FOLDS, most["folds"]) if arguments.folds is None else arguments.folds
    counts = {"folds": folds, "seeds": arguments.seeds}
    for name, count in counts.items():
        if not 1 <= count <= most[name]:
            raise SettingsError(f"--{name} must lie in 1..{most[name]}, got {count}")
    return {"limit": limit, **counts}
