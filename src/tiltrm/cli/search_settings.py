"""The settings of a search on the command line, and what the search may cost at most."""

import argparse
from collections.abc import Mapping
from typing import Any

import torch

from tiltrm.cli import forecast
from tiltrm.cli.flags import given_settings
from tiltrm.model.base import evaluations_per_step
from tiltrm.model.build import Model
from tiltrm.settings import METHODS, TABLE, check_settings
from tiltrm.solving import build_search
from tiltrm.solving.call import check_abstain
from tiltrm.solving.risk import check_risk
from tiltrm.tasks import Task

OF_SEARCH = {"method", "tuned", *TABLE}  # arguments of `solve_texts` that decide the search
BATCH = {"cpu": 64, "cuda": 4096}  # puzzles solved together; a result does not depend on it


def search_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """The settings that were given, checked before anything runs."""
    own = given_settings(arguments)
    if arguments.method in METHODS:  # `solve` names the methods otherwise
        own = check_settings(arguments.method, own)
    check_abstain(arguments.abstain)
    if arguments.risk is not None:
        check_risk(arguments.risk)
    found = {"method": arguments.method, "seed": arguments.seed, **own}
    optional = {"abstain": arguments.abstain, "risk": arguments.risk}
    return (
        found
        | {n: v for n, v in optional.items() if v is not None}
        | ({"tuned": False} if arguments.untuned else {})
    )


def say_if_search_is_long(
    model: Model, task: Task, puzzles: int, settings: Mapping[str, Any]
) -> None:
    """Say to stderr what a long run may cost at most; nothing decides an unsolvable puzzle."""
    search = build_search(model, task, **{n: v for n, v in settings.items() if n in OF_SEARCH})
    steps = sum(stage.particles * stage.outer_steps for stage in search.plan.stages)
    most = puzzles * steps * evaluations_per_step(model)
    if most < forecast.CERTAINLY_SHORT:
        return
    sample = torch.zeros(min(puzzles, forecast.PROBED), task.cells, dtype=torch.uint8)
    seconds = min(most * forecast.seconds_per_evaluation(model, sample), puzzles * search.seconds)
    advice = "" if "seconds" in settings else "--seconds T limits each puzzle"
    forecast.say_if_long("solve", f"{most:,} evaluations at most", seconds, advice)
