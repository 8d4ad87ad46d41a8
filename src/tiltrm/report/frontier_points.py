"""The points of the frontier: one for every method and setting, in series."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tiltrm.evaluate import plans
from tiltrm.evaluate.compare import Paired, paired
from tiltrm.evaluate.job import Job
from tiltrm.evaluate.options import TURNED, steps_of
from tiltrm.evaluate.shards import Shard
from tiltrm.evaluate.summary import Row, Stopped, groups, stopped, summarise
from tiltrm.report.evidence import SUDOKU, Evidence
from tiltrm.report.style import LOOKS, Look

SIZED = {  # the setting that a method's points differ by, and its symbol
    "deterministic": ("outer_steps", "N"), "unguided": ("particles", "S"),
    "guided": ("particles", "S"), "ptrm": ("particles", "K"), "halt_first": ("particles", "K"),
    "symmetry": ("copies", "copies"), "adaptive": ("stages", "steps"),
    "adaptive_rules": ("stages", "steps"),
}  # fmt: skip
OURS = ("adaptive", "adaptive_rules")
MAJORITY, NOISE = "ptrm majority", "adaptive unturned"
VARIANTS: dict[str, tuple[str, str, Any]] = {  # series of their own: label, mark and dash
    MAJORITY: ("PTRM, most frequent", "<", (0, (1, 1))),
    NOISE: ("adaptive by noise alone", "d", (0, (1, 1))),
}


class Point(NamedTuple):
    """One method with one setting."""

    row: Row
    variant: str  # its series
    budget: str  # what tells it from the others of the series
    against: Paired | None  # the adaptive default less this; None for itself

    @property
    def label(self) -> str:
        """The series in words."""
        return self.look.label

    @property
    def look(self) -> Look:
        """How the series is drawn."""
        look = LOOKS[self.row.method]
        if self.variant not in VARIANTS:
            return look
        label, mark, dash = VARIANTS[self.variant]
        return Look(label, look.colour, mark, dash)

    @property
    def evaluations(self) -> float:
        """A puzzle, on average."""
        return self.row.evaluations.mean


class Frontier(NamedTuple):
    """Of one benchmark."""

    points: list[Point]  # every method and setting, series by series, cheapest first
    between: list[Stopped]  # the adaptive default after every number of steps, by its one run


def plan(evidence: Evidence, part: str) -> list[Job]:
    """What must be computed.

    Where that is half done and may be drawn: all methods on some folds, else some on all folds.
    """
    wanted = _wanted(evidence, part)
    found = evidence.asked(wanted)
    if found or not evidence.partial:
        return found
    found = plans.whole(wanted, evidence.store.has)
    return found if any(job.method == "adaptive" for job in found) else []


def settings(evidence: Evidence, part: str) -> int:
    """How many points there are when all is done."""
    return len({(job.method, job.settings) for job in _wanted(evidence, part)})


def _wanted(evidence: Evidence, part: str) -> list[Job]:
    limit = evidence.frontier if part == SUDOKU else None
    return plans.frontier(evidence.subjects[part], evidence.size, limit)


def gather(evidence: Evidence, part: str) -> Frontier:
    """All that is computed of it."""
    shards = evidence.read(plan(evidence, part))
    rows = [row for row in summarise(shards) if row.split == evidence.subjects[part].split]
    grouped = groups(shards)
    ours = max(
        (group for group in grouped if group[0].job.method == "adaptive"),
        key=lambda group: (_turned(group[0].job.options), steps_of(group[0].job.options["stages"])),
    )
    both = zip(rows, grouped, strict=True)
    found = [_point(row, group, ours) for row, group in both]
    order = [p.variant for p in found]
    found.sort(key=lambda p: (order.index(p.variant), p.evaluations))
    return Frontier(found, stopped(ours))


def _point(row: Row, group: Sequence[Shard], ours: Sequence[Shard]) -> Point:
    own = dict(row.settings)
    name, symbol = SIZED[row.method]
    size = steps_of(own[name]) if name == "stages" else own[name]
    variant = row.method
    if row.method == "ptrm" and own["select"] == "majority":
        variant = MAJORITY
    if row.method == "adaptive" and _turned(own) != _turned(ours[0].job.options):
        variant = NOISE
    against = None if group is ours else paired(ours, group)
    return Point(row, variant, f"{symbol} = {size}", against)


def _turned(plan: Mapping[str, Any]) -> bool:
    return bool(plan.get(TURNED, False))
