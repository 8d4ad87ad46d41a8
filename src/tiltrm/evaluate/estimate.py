"""Estimates of what a list of jobs will cost."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tiltrm.evaluate.job import DIAGNOSE, Job
from tiltrm.evaluate.options import PLANNED
from tiltrm.evaluate.target import EvalTarget
from tiltrm.model import load
from tiltrm.model.base import evaluations_per_step
from tiltrm.model.trm import TRM, evaluation_flops

H200_FLOPS = 4.6e14  # operations a second that exploration reaches on an H200; docs/LOG.md
JOB_SECONDS = 0.8  # overhead of a job of any size
USUAL_FLOPS = 1e9  # of one evaluation, for a model of unknown sizes
HALT_FIRST_SHARE = 0.3  # rough share of the steps that run before the first trajectory halts
ADAPTIVE_STEPS = 33  # rough number of trajectory steps of an adaptive puzzle
STABILITY_STEPS = 100  # rough number of trajectory steps to measure the stability of one puzzle


class Cost(NamedTuple):
    """The cost of some jobs."""

    jobs: int
    evaluations: float
    seconds: float  # on one H200

    def words(self) -> str:
        """The cost as a phrase."""
        return (
            f"{self.jobs} jobs, about {self.evaluations:,.0f} evaluations, "
            f"{self.seconds / 60:.1f} minutes of one H200"
        )


def total(costs: Iterable[Cost]) -> Cost:
    """The sum of some costs."""
    listed = list(costs)
    return Cost(
        sum(cost.jobs for cost in listed),
        sum(cost.evaluations for cost in listed),
        sum(cost.seconds for cost in listed),
    )


def seconds_at(cost: Cost, flops: float) -> float:
    """The seconds of a cost on a machine that reaches so many operations a second."""
    overhead = JOB_SECONDS * cost.jobs
    return overhead + (cost.seconds - overhead) * H200_FLOPS / flops


class CostEstimator:
    """Estimated costs of jobs on these targets."""

    def __init__(self, targets: Iterable[EvalTarget]) -> None:
        self.puzzles: dict[tuple[str, str], int] = {}
        self.unit_costs: dict[
            str, tuple[int, float]
        ] = {}  # evaluations per step, FLOPs per evaluation
        for target in targets:
            self.puzzles[target.weights, target.checksum] = target.puzzles
            if target.weights not in self.unit_costs:
                model = load(target.model)
                flops = evaluation_flops(model.config) if isinstance(model, TRM) else USUAL_FLOPS
                self.unit_costs[target.weights] = evaluations_per_step(model), flops

    def of(self, job: Job) -> Cost:
        """The cost of one job: exact for a fixed cloud, rough for a method that stops by itself."""
        rows = len(job.rows(self.puzzles[job.weights, job.checksum]))
        per_step, flops = self.unit_costs[job.weights]
        evaluations = rows * trajectory_steps(job, rows) * per_step
        return Cost(1, evaluations, JOB_SECONDS + evaluations * flops / H200_FLOPS)


def trajectory_steps(job: Job, rows: int) -> float:
    """Outer steps times particles of one puzzle."""
    own: Mapping[str, int] = job.options
    if job.method in PLANNED:
        return ADAPTIVE_STEPS
    steps = float(own["outer_steps"] * own.get("particles", own.get("copies", 1)))
    if job.kind == DIAGNOSE:
        return steps + STABILITY_STEPS * own["rooted"] / rows
    return steps * (HALT_FIRST_SHARE if job.method == "halt_first" else 1.0)
