"""How long the jobs of an evaluation take on this machine, said beforehand."""

from collections.abc import Sequence

import torch

from tiltrm.cli import forecast
from tiltrm.cli.forecast import PROBED, say_if_long, seconds_per_evaluation
from tiltrm.cpu_precision import load_options
from tiltrm.device import choose
from tiltrm.evaluate import Job
from tiltrm.evaluate.estimate import USUAL_FLOPS, CostEstimator, seconds_at, total
from tiltrm.evaluate.options import PRECISION
from tiltrm.evaluate.target import EvalTarget
from tiltrm.model import load
from tiltrm.model.trm import TRM, evaluation_flops


def say_if_jobs_are_long(
    command: str, jobs: Sequence[Job], targets: Sequence[EvalTarget], device: str, advice: str
) -> None:
    """Print a line to stderr if jobs take more than some minutes, by a probe of the first model."""
    cost = total(map(CostEstimator(targets).of, jobs)) if jobs else None
    if cost is None or cost.evaluations < forecast.CERTAINLY_SHORT:
        return
    where, precision = choose(device), jobs[0].options.get(PRECISION)
    model = load(targets[0].model, device=where, **load_options(precision, where))
    sample = torch.zeros(PROBED, model.cells, dtype=torch.uint8)
    one = evaluation_flops(model.config) if isinstance(model, TRM) else USUAL_FLOPS
    seconds = seconds_at(cost, one / seconds_per_evaluation(model, sample))
    said = f"{cost.jobs:,} jobs and about {cost.evaluations:,.0f} evaluations"
    say_if_long(command, said, seconds, advice)
