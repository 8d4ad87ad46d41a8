"""Does a guide that was fitted on one checkpoint help another one? One table, with paired tests.

`python -m benchmarks.guide_transfer --model A B --guide learned:GA --data VAL.csv` runs Algorithm 1
on every model with every guide, the halting head first, and the same clouds without a tilt.
gain: guided minus unguided, in points of exact match, on the same puzzles with the same noise.
recovered: the way from deterministic to the oracle of the unguided cloud that guided has gone.
gap, AUROC: eq. (18) and the in-cloud AUROC of a diagnosis with labels, means over its outer steps;
the verdict is the diagnosis's own and sees no label. With --store, a killed run goes on.
"""

import argparse
import json
import math
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

from tiltrm.device import choose
from tiltrm.evaluate import EvalTarget, Job, Paired, Row, Store, eval_target, paired, plans
from tiltrm.evaluate import run as compute
from tiltrm.evaluate.job import DIAGNOSE
from tiltrm.evaluate.summary import summarise
from tiltrm.evaluate.table import align
from tiltrm.model import load
from tiltrm.solving.guide_folder import guide_note, learned_terms

HEADS = (
    "model", "guide", "fitted on", "exact %", "unguided %", "determ. %", "oracle %", "gain",
    "95 % interval", "p", "recovered", "gap", "AUROC", "verdict", "evaluations",
)  # fmt: skip


class Sizes(NamedTuple):
    """How many puzzles and seeds, and settings of every cloud."""

    limit: int
    seeds: int
    settings: dict[str, Any]  # of guided; unguided takes its noise, particles and steps
    diagnosed: dict[str, Any]


class TransferRow(NamedTuple):
    """One guide on one model."""

    model: str
    guide: str
    origin: str  # "this model", "other weights" or "-" for guides that are not learned
    guided: Row
    unguided: Row
    deterministic: Row
    gain: Paired
    gap: float
    auroc: float
    verdict: str

    @property
    def recovered(self) -> float:
        """Share of the way from deterministic to the oracle; NaN where there is none."""
        base, oracle = self.deterministic.exact.mean, self.unguided.oracle
        if oracle is None or oracle.mean <= base:
            return math.nan
        return (self.guided.exact.mean - base) / (oracle.mean - base)

    def cells(self) -> list[str]:
        """The row as texts."""
        oracle = self.unguided.oracle
        return [
            self.model, self.guide, self.origin, _percent(self.guided.exact.mean),
            _percent(self.unguided.exact.mean), _percent(self.deterministic.exact.mean),
            "-" if oracle is None else _percent(oracle.mean), f"{100 * self.gain.difference:+.2f}",
            f"{100 * self.gain.low:+.2f} to {100 * self.gain.high:+.2f}",
            f"{self.gain.p_value:.2g}", f"{100 * self.recovered:.0f} %", f"{self.gap:.3f}",
            f"{self.auroc:.3f}", self.verdict, f"{self.guided.evaluations.mean:,.0f}",
        ]  # fmt: skip


def _percent(share: float) -> str:
    return f"{100 * share:.2f}"


def model_jobs(target: EvalTarget, guides: Sequence[str], sizes: Sizes) -> dict[str, list[Job]]:
    """All jobs of one model, by the name of what they are for."""
    own, counts = sizes.settings, {"seeds": sizes.seeds, "limit": sizes.limit}
    shared = {n: v for n, v in own.items() if n in ("particles", "noise", "outer_steps")}
    steps = {n: v for n, v in own.items() if n == "outer_steps"}
    found = {
        "deterministic": plans.jobs(target, "deterministic", steps, limit=sizes.limit),
        "unguided": plans.jobs(target, "unguided", shared, **counts),
    }
    for guide in guides:
        found[guide] = plans.jobs(target, "guided", {**own, "guide": guide}, **counts)
        asked = {**sizes.diagnosed, "guides": (guide,)}  # a verdict is about one guide
        found[f"{DIAGNOSE} {guide}"] = plans.jobs(target, DIAGNOSE, asked, limit=sizes.limit)
    return found


def transfer_rows(
    store: Store, target: EvalTarget, guides: Sequence[str], jobs: dict[str, list[Job]]
) -> list[TransferRow]:
    """The rows of one model, all of whose jobs are done."""
    shards = {n: store.read(own) for n, own in jobs.items() if not n.startswith(DIAGNOSE)}
    rows = {name: summarise(own)[0] for name, own in shards.items()}
    model, found = load(target.model), []
    for guide in guides:
        report = json.loads(store.read(jobs[f"{DIAGNOSE} {guide}"])[0]["figures"][0])
        (figures,) = report["alignment"].values()
        learned = learned_terms(guide)
        origin = "other weights" if guide_note(guide, model) else "this model" if learned else "-"
        found.append(TransferRow(
            target.model, guide, origin, rows[guide], rows["unguided"], rows["deterministic"],
            paired(shards[guide], shards["unguided"]), _mean(figures["gap"]),
            _mean(figures["auroc"]), report["verdict"],
        ))  # fmt: skip
    return found


def _mean(values: Sequence[float | None]) -> float:
    """The mean of the numbers; a step without both kinds of particles has none."""
    known = [value for value in values if value is not None and not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def main() -> None:
    """Compute what the store lacks and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", nargs="+", required=True)
    parser.add_argument("--guide", nargs="+", required=True, help="beside halting")
    parser.add_argument("--data", required=True, help="puzzles with answers, not trained on")
    parser.add_argument("--puzzles", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--diagnosis-steps", type=int, default=16)
    for name, kind in (("particles", int), ("outer-steps", int), ("noise", float), ("beta", float)):
        parser.add_argument(f"--{name}", type=kind)
    parser.add_argument("--select", default="map")
    parser.add_argument("--store", metavar="DIR")
    parser.add_argument("--device", default="auto")
    arguments = parser.parse_args()
    names = ("particles", "outer_steps", "noise", "beta", "select")
    own = {n: getattr(arguments, n) for n in names if getattr(arguments, n) is not None}
    told = {n: v for n, v in own.items() if n in ("noise", "beta")}
    told["outer_steps"] = min(arguments.diagnosis_steps, own.get("outer_steps", 48))
    guides = ["halting", *arguments.guide]
    with nullcontext(arguments.store) if arguments.store else tempfile.TemporaryDirectory() as at:
        store, rows = Store(at), []
        for model in arguments.model:
            target = eval_target(model, arguments.data, "transfer")
            sizes = Sizes(
                min(arguments.puzzles, target.puzzles), arguments.seeds, own,
                {**told, "rooted": 0, "particles": own.get("particles", 16)},
            )  # fmt: skip
            jobs = model_jobs(target, guides, sizes)
            compute([job for each in jobs.values() for job in each], store,
                    choose(arguments.device))  # fmt: skip
            rows += transfer_rows(store, target, guides, jobs)
    print(table(rows))


def table(rows: Sequence[TransferRow]) -> str:
    """All rows as one text."""
    return align([list(HEADS), *(row.cells() for row in rows)], left=3)


if __name__ == "__main__":
    main()
