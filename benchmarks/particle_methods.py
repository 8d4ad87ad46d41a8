"""What the pieces of a particle method give: one line each, on the same model, puzzles and noise.

`python -m benchmarks.particle_methods --model M --data VAL.csv` prints exact match, oracle and
evaluations of every variant, and its paired difference to guided. On mazes also shortest and valid.
--guide learned:FOLDER runs all of them with another guide. Choose on val, never on Test.
"""

import argparse
import tempfile
from contextlib import nullcontext
from typing import Any

from tiltrm.device import choose
from tiltrm.evaluate import EvalTarget, Job, Store, eval_target, paired, plans, summarise
from tiltrm.evaluate import run as compute
from tiltrm.evaluate.table import Comparison, align, comparisons_table

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "guided": ("guided", {}),
    "deterministic": ("deterministic", {}),
    "unguided": ("unguided", {}),
    "best score of the last cloud": ("guided", {"select": "best_score"}),
    "best so far": ("guided", {"select": "best_so_far"}),
    "best so far, no tilt": (
        "guided", {"select": "best_so_far", "beta": 0.0, "trigger": "never"},
    ),
    "target ESS 0.9": ("guided", {"target_ess": 0.9, "beta": 8.0}),
    "target ESS 0.5": ("guided", {"target_ess": 0.5, "beta": 8.0}),
    "target ESS 0.5, best so far": (
        "guided", {"target_ess": 0.5, "beta": 8.0, "select": "best_so_far"},
    ),
    "difference": ("guided", {"potential": "difference"}),
    "terminal": ("guided", {"potential": "terminal"}),
    "never resampled": ("guided", {"trigger": "never"}),
}  # fmt: skip
SHARED = ("particles", "outer_steps", "noise")


def variant_jobs(
    target: EvalTarget, name: str, shared: dict[str, Any], guide: str, **counts: int
) -> list[Job]:
    """The jobs of one variant; settings that its method does not have are left out."""
    method, own = VARIANTS[name]
    if method == "guided":
        return plans.jobs(target, method, {**shared, "guide": guide, **own}, **counts)
    known = SHARED if method == "unguided" else ("outer_steps",)
    return plans.jobs(target, method, {n: v for n, v in shared.items() if n in known}, **counts)


def table(store: Store, jobs: dict[str, list[Job]]) -> str:
    """Both tables of finished jobs."""
    shards = {name: store.read(own) for name, own in jobs.items()}
    rows = {name: summarise(own)[0] for name, own in shards.items()}
    mazes = any(row.shortest is not None for row in rows.values())
    kinds = ("exact", "oracle", *(("shortest", "valid") if mazes else ()))
    lines = [["", *(f"{kind} %" for kind in kinds), "evaluations"]]
    for name, row in rows.items():
        spreads = [getattr(row, kind) for kind in kinds]
        shares = ["-" if each is None else f"{100 * each.mean:.2f}" for each in spreads]
        lines.append([name, *shares, f"{row.evaluations.mean:,.0f}"])
    first = next(iter(shards))
    found = [
        Comparison(own[0].job.split, name, first, paired(own, shards[first]))
        for name, own in shards.items()
        if name != first
    ]
    return f"{align(lines, left=1)}\n\n{comparisons_table(found)}"


def main() -> None:
    """Compute what the store lacks and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="maze-hard")
    parser.add_argument("--data", required=True)
    parser.add_argument("--task")
    parser.add_argument("--guide", default="halting")
    parser.add_argument("--puzzles", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--particles", type=int)
    parser.add_argument("--outer-steps", type=int)
    parser.add_argument("--noise", type=float)
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=VARIANTS)
    parser.add_argument("--store", metavar="DIR")
    parser.add_argument("--device", default="auto")
    arguments = parser.parse_args()
    shared = {n: getattr(arguments, n) for n in SHARED if getattr(arguments, n) is not None}
    target = eval_target(arguments.model, arguments.data, "ablation", arguments.task)
    counts = {"seeds": arguments.seeds, "limit": min(arguments.puzzles, target.puzzles)}
    names = ["guided", *(name for name in arguments.only or VARIANTS if name != "guided")]
    jobs = {
        name: variant_jobs(target, name, shared, arguments.guide, **counts) for name in names
    }  # fmt: skip
    with nullcontext(arguments.store) if arguments.store else tempfile.TemporaryDirectory() as at:
        store = Store(at)
        compute([job for own in jobs.values() for job in own], store, choose(arguments.device))
        print(table(store, jobs))


if __name__ == "__main__":
    main()
