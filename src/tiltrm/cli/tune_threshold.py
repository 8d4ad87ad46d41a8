"""`tiltrm tune --threshold-only`: choose the halt logit that stops a puzzle, and nothing else."""

import argparse
import json
from pathlib import Path

from tiltrm.checks import require_whole
from tiltrm.cli import forecast
from tiltrm.cli.flags import THRESHOLD_STEPS
from tiltrm.cli.progress import Bar
from tiltrm.data import Puzzles
from tiltrm.errors import DataError, SettingsError
from tiltrm.model.base import evaluations_per_step
from tiltrm.model.build import Model
from tiltrm.model.native import store_threshold
from tiltrm.solving.plans import tuned_plan
from tiltrm.solving.threshold import FEWEST, follow, threshold
from tiltrm.tasks.base import exactly_right

OTHERS = ("judge", "rules", "evaluations", "minutes", "confidence_only", "store", "picture")


def check_flags(arguments: argparse.Namespace) -> None:
    """Raise SettingsError for flags that do not go together."""
    if not arguments.threshold_only:
        if arguments.outer_steps is not None:
            raise SettingsError(
                f"--outer-steps must go with --threshold-only, got {arguments.outer_steps} without "
                "it; leave it out"
            )
        return
    given = [name for name in OTHERS if getattr(arguments, name) not in (None, False)]
    if given:
        raise SettingsError(
            "--threshold-only must be without the flags that choose a plan, got "
            f"--{given[0].replace('_', '-')}; leave one out"
        )


def choose_threshold(
    arguments: argparse.Namespace, model: Model, puzzles: Puzzles, folder: Path
) -> int:
    """Run one trajectory per puzzle, choose the threshold, store it and print it."""
    labels = puzzles.labels()
    if len(puzzles) < FEWEST:
        raise DataError(
            f"{arguments.data}: expected at least {FEWEST} puzzles with answers, got {len(puzzles)}"
        )
    given = THRESHOLD_STEPS if arguments.outer_steps is None else arguments.outer_steps
    steps = require_whole("outer_steps", given, 1)
    evaluations = len(puzzles) * steps * evaluations_per_step(model)
    if evaluations > forecast.CERTAINLY_SHORT:
        seconds = evaluations * forecast.seconds_per_evaluation(model, puzzles.questions)
        forecast.say_if_long("tune", f"{evaluations:,} evaluations", seconds)
    with Bar("following", len(puzzles)) as bar:
        told = bar.within(0, len(puzzles))
        asked, answers = follow(model, puzzles.questions, steps, progress=told)
    found = threshold(asked, exactly_right(answers, labels[:, None]))
    if found is None:
        raise DataError(
            f"{arguments.data}: expected puzzles that the model can solve and a halting head that "
            "tells them apart, got none; train it further, or stop by the rules (solve --rules)"
        )
    if not arguments.dry_run:
        store_threshold(folder, found.above)
    print(json.dumps(found._asdict()) if arguments.json else found.words())
    if not arguments.json and tuned_plan(model, puzzles.task) is not None:
        print("the tuned plan beside the weights has a threshold of its own: this one is used with "
              "--untuned only")  # fmt: skip
    return 0
