"""How much a plan will cost, before it is begun."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tiltrm.evaluate.job import DIAGNOSE, Job
from tiltrm.evaluate.options import PLANNED
from tiltrm.evaluate.subject import Subject
from tiltrm.model import load
from tiltrm.model.base import evaluations_per_step
from tiltrm.model.trm import TRM, evaluation_flops

H200 = 4.6e14  # operations a second that exploration reaches there; docs/LOG.md
OWN = 0.8  # seconds that a job takes whatever its size
USUAL_FLOPS = 1e9  # of an evaluation, for a model whose sizes say nothing
EARLY = 0.3  # of the trajectories' steps are taken before one halts, about
ADAPTIVE = 33  # trajectory steps that an adaptive puzzle takes, about
ROOTING = 100  # trajectory steps that the stability of one puzzle costs, about


class Cost(NamedTuple):
    """Of some jobs."""

    jobs: int
    evaluations: float
    seconds: float  # on one H200

    def words(self) -> str:
        """For people."""
        minutes = self.seconds / 60
        return (
            f"{self.jobs} jobs, about {self.evaluations:,.0f} evaluations, "
            f"{minutes:.1f} minutes of one H200"
        )


def total(costs: Iterable[Cost]) -> Cost:
    """Their sum."""
    listed = list(costs)
    return Cost(
        sum(cost.jobs for cost in listed), sum(cost.evaluations for cost in listed),
        sum(cost.seconds for cost in listed),
    )  # fmt: skip


class Prices:
    """What a job costs on its model."""

    def __init__(self, subjects: Iterable[Subject]) -> None:
        self.puzzles: dict[tuple[str, str], int] = {}
        self.price: dict[str, tuple[int, float]] = {}  # evaluations a step, operations of one
        for subject in subjects:
            self.puzzles[subject.weights, subject.checksum] = subject.puzzles
            if subject.weights not in self.price:
                model = load(subject.model)
                flops = evaluation_flops(model.config) if isinstance(model, TRM) else USUAL_FLOPS
                self.price[subject.weights] = evaluations_per_step(model), flops

    def of(self, job: Job) -> Cost:
        """One job: exact for a fixed cloud, a guess where it stops by itself."""
        rows = len(job.rows(self.puzzles[job.weights, job.checksum]))
        per_step, flops = self.price[job.weights]
        evaluations = rows * trajectory_steps(job, rows) * per_step
        return Cost(1, evaluations, OWN + evaluations * flops / H200)


def trajectory_steps(job: Job, rows: int) -> float:
    """Outer steps times particles, of one puzzle."""
    own: Mapping[str, int] = job.options
    if job.method in PLANNED:
        return ADAPTIVE
    steps = float(own["outer_steps"] * own.get("particles", own.get("copies", 1)))
    if job.kind == DIAGNOSE:
        return steps + ROOTING * own["rooted"] / rows
    return steps * (EARLY if job.method == "halt_first" else 1.0)
