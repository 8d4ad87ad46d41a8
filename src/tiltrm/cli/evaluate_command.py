"""Compare methods on the same puzzles: accuracy, cost, and paired tests."""

import argparse
import json
import re
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tiltrm.cli.flags import FOLDS, USUALLY_EVALUATED
from tiltrm.cli.progress import Bar
from tiltrm.device import choose
from tiltrm.errors import SettingsError
from tiltrm.evaluate import Job, Shard, Store, Subject, by_step, examine, paired, plans, summarise
from tiltrm.evaluate import run as compute
from tiltrm.evaluate.options import NAMES, settable
from tiltrm.evaluate.run import Progress
from tiltrm.evaluate.summary import DF, groups, identity
from tiltrm.evaluate.table import Comparison, of_comparisons, of_curves, of_reasons, of_rows
from tiltrm.evaluate.titles import title

SPREAD = ("auto", "cpu", "cuda")  # a worker of a cluster has its own GPU
MOST_SEEDS = 1000  # more are a slip, and a long list of jobs


def run(arguments: argparse.Namespace) -> int:
    """Compute what is missing, then print the tables."""
    asked = [_method(text) for text in arguments.method or USUALLY_EVALUATED]
    kept = arguments.store is not None
    with nullcontext(arguments.store) if kept else tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        split = arguments.split or Path(arguments.data).name.partition(".")[0]
        if split == DF:
            raise SettingsError(
                f"{DF} is what the puzzles are called that the deterministic model fails, got it "
                "for all of them; name another with --split"
            )
        subject = examine(arguments.model, arguments.data, split, arguments.task)
        todo = _jobs(arguments, asked, subject)
        with Bar("evaluating", len(todo)) as bar:
            compute_jobs(arguments, todo, store, lambda done, of: bar(len(todo) - of + done))
        shards = store.read(todo)
    print(json.dumps(figures(shards), allow_nan=False) if arguments.json else words(shards))
    return 0


def compute_jobs(
    arguments: argparse.Namespace, todo: Sequence[Job], store: Store, progress: Progress
) -> None:
    """Here, or on a cluster."""
    if arguments.ray is None:
        compute(todo, store, choose(arguments.device), progress)
        return
    if arguments.device not in SPREAD:
        words = f"{', '.join(SPREAD[:-1])} or {SPREAD[-1]}"
        raise SettingsError(f"--device must be {words} with --ray, got {arguments.device!r}")
    from tiltrm.evaluate import scale  # here, since Ray is an extra

    gpus = 0 if arguments.device == "cpu" else None
    scale.run(todo, store, arguments.ray or None, gpus=gpus, progress=progress)


def figures(shards: Sequence[Shard]) -> dict[str, Any]:
    """Everything, ready for JSON."""
    return {
        "rows": [row.as_dict() for row in summarise(shards)],
        "paired": [comparison.as_dict() for comparison in comparisons(shards)],
        "by_step": [
            {
                "split": c.split, "method": c.method, "settings": dict(c.settings),
                "exact": [s.mean for s in c.exact], "oracle": [s.mean for s in c.oracle],
            }
            for c in by_step(shards)
        ],
    }  # fmt: skip


def words(shards: Sequence[Shard]) -> str:
    """The same as tables."""
    rows = summarise(shards)
    parts = [text for text in (of_rows(rows), of_reasons(rows)) if text]
    if found := comparisons(shards):
        parts.append(f"on the same puzzles, seeds averaged:\n{of_comparisons(found)}")
    if curves := by_step(shards):
        parts.append(f"exact % by outer step:\n{of_curves(curves)}")
    return "\n\n".join(parts)


def comparisons(shards: Sequence[Shard]) -> list[Comparison]:
    """Every method against the first."""
    first, *others = groups(shards)
    return [
        Comparison(first[0].job.split, _title(group), _title(first), paired(group, first))
        for group in others
    ]


def _title(group: Sequence[Shard]) -> str:
    job = group[0].job
    return title(job.method, identity(job)[3], job.task)


def _jobs(
    arguments: argparse.Namespace, asked: Sequence[tuple[str, dict[str, Any]]], subject: Subject
) -> list[Job]:
    """What is asked for; a shared setting goes to the methods that have it."""
    shared = _settings(arguments.settings)
    if arguments.by_step:
        shared["by_step"] = True
    having = {method: settable(method, subject.task) for method, _ in asked}
    for name in shared:
        if not any(name in names for names in having.values()):
            every = sorted({known for names in having.values() for known in names})
            raise SettingsError(
                f"the settings of {', '.join(having)} are {', '.join(every)}, got {name}; leave it "
                "out or choose another method"
            )
    counts = _counts(arguments, subject.puzzles)
    found: dict[str, Job] = {}
    for method, own in asked:
        settings = {n: v for n, v in shared.items() if n in having[method]} | own
        found |= {job.key: job for job in plans.jobs(subject, method, settings, **counts)}
    return list(found.values())


def _counts(arguments: argparse.Namespace, puzzles: int) -> dict[str, Any]:
    """How many puzzles, folds and seeds, each in its range: no fold is empty."""
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


def _method(text: str) -> tuple[str, dict[str, Any]]:
    """'ptrm:particles=25,select=majority' -> its name and its settings."""
    name, _, rest = text.partition(":")
    if name not in NAMES:
        raise SettingsError(f"method must be one of {', '.join(NAMES)}, got {name!r}")
    parts = re.split(r",\s*(?=[a-z_]+=)", rest)  # a comma inside a list begins no setting
    return name, _settings([part for part in parts if part])


def _settings(texts: Sequence[str]) -> dict[str, Any]:
    """Each once."""
    found: dict[str, Any] = {}
    for name, value in map(_setting, texts):
        if name in found:
            raise SettingsError(f"expected every setting once, got {name} again; leave one out")
        found[name] = value
    return found


def _setting(text: str) -> tuple[str, Any]:
    """'noise=0.5' -> ('noise', 0.5); what is no JSON value is a word."""
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise SettingsError(f"expected a setting as KEY=VALUE, got {text!r}")
    try:
        return name, json.loads(value, parse_constant=_no_number)
    except ValueError:
        return name, value


def _no_number(text: str) -> Any:
    raise SettingsError(f"expected a finite number, got {text}")
