"""Choose the stopping threshold on the halt logit, on puzzles whose answers are known."""

import argparse
import json
from pathlib import Path

from tiltrm.checks import require_whole
from tiltrm.cli.forecast import CERTAINLY_SHORT, say_if_long, seconds_per_evaluation
from tiltrm.cli.progress import Bar
from tiltrm.data import read
from tiltrm.device import choose
from tiltrm.errors import DataError, SettingsError
from tiltrm.model import load
from tiltrm.model.base import evaluations_per_step
from tiltrm.model.checkpoint import bundled
from tiltrm.model.native import CONFIG, recalibrate
from tiltrm.solving import task_of
from tiltrm.solving.calibrate import FEWEST, follow, threshold
from tiltrm.tasks.base import exactly_right


def run(arguments: argparse.Namespace) -> int:
    """Run one trajectory per puzzle, choose the threshold, print it, and store it if asked."""
    folder = Path(arguments.model)
    if arguments.write and (arguments.model in bundled() or not (folder / CONFIG).is_file()):
        raise SettingsError(
            f"--write must go with a folder that import or train wrote, got {arguments.model}; "
            "copy the weights to one first: tiltrm import CKPT --out DIR"
        )
    model = load(arguments.model, config=arguments.config, device=choose(arguments.device))
    puzzles = read(arguments.data, task_of(model, arguments.task), limit=arguments.puzzles)
    labels = puzzles.labels()
    if len(puzzles) < FEWEST:
        raise DataError(
            f"{arguments.data}: expected at least {FEWEST} puzzles with answers, got {len(puzzles)}"
        )
    steps = len(puzzles) * require_whole("outer_steps", arguments.outer_steps, 1)
    evaluations = steps * evaluations_per_step(model)
    if evaluations > CERTAINLY_SHORT:
        seconds = evaluations * seconds_per_evaluation(model, puzzles.questions)
        say_if_long("calibrate", f"{evaluations:,} evaluations", seconds)
    with Bar("following", len(puzzles)) as bar:
        told = bar.within(0, len(puzzles))
        asked, answers = follow(model, puzzles.questions, arguments.outer_steps, progress=told)
    found = threshold(asked, exactly_right(answers, labels[:, None]))
    if found is None:
        raise DataError(
            f"{arguments.data}: expected puzzles that the model can solve and a halting head that "
            "tells them apart, got none; train it further, or stop by the rules (solve --rules)"
        )
    if arguments.write:
        recalibrate(folder, found.above)
    print(json.dumps(found._asdict()) if arguments.json else found.words())
    return 0
