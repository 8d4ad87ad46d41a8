"""Say without labels whether exploration will help, and which answers to trust."""

import argparse
import sys
from pathlib import Path

from tiltrm.cli import forecast
from tiltrm.cli.forecast import say_if_long, seconds_per_evaluation
from tiltrm.cli.notes import say_guide_notes
from tiltrm.cli.progress import Bar
from tiltrm.data import read
from tiltrm.device import choose
from tiltrm.diagnose import SMALL, DiagnosisReport, diagnose
from tiltrm.diagnose.diagnosis import planned_evaluations
from tiltrm.errors import DataError, SettingsError
from tiltrm.folders import write_whole
from tiltrm.model import load
from tiltrm.report.diagnosis import page
from tiltrm.report.page import make_folder
from tiltrm.solving import exploration_for, parse_guide, task_of

PAGE, FIGURES = "index.html", "diagnosis.json"


def run(arguments: argparse.Namespace) -> int:
    """Diagnose, print, and write the page where asked."""
    model = load(
        arguments.model, config=arguments.config, device=choose(arguments.device),
        puzzle_id=arguments.puzzle_id,
    )  # fmt: skip
    task = task_of(model, arguments.task)
    if arguments.puzzles < 1:
        raise SettingsError(f"--puzzles must be at least 1, got {arguments.puzzles}")
    given = ("noise", "beta", "particles", "outer_steps")
    settings = exploration_for(
        "guided", task, SMALL, **{name: getattr(arguments, name) for name in given}
    )
    names = arguments.guide or ["halting"]
    guides = {name: parse_guide(name, model, task) for name in names}
    say_guide_notes("diagnose", names, model)
    puzzles = read(
        arguments.data, task, limit=arguments.puzzles, max_bytes=arguments.max_bytes,
        skip_sizes=True, names=model.puzzle_names,
    )  # fmt: skip
    if puzzles.skipped:
        print(
            f"tiltrm diagnose: {puzzles.skipped:,} puzzles have a size that {task.name} does not "
            "hold and are left out", file=sys.stderr,
        )  # fmt: skip
    labels = puzzles.labels() if arguments.labels else None
    if arguments.out is not None:
        make_folder(arguments.out)  # now, since the diagnosis takes its time
    evaluations = planned_evaluations(model, len(puzzles), settings)
    if evaluations > forecast.CERTAINLY_SHORT:
        seconds = evaluations * seconds_per_evaluation(model, puzzles.questions)
        said = f"{len(puzzles):,} puzzles and {evaluations:,} evaluations"
        say_if_long("diagnose", said, seconds, "--puzzles N takes fewer")
    with Bar("diagnosing", 100) as bar:
        report = diagnose(
            model, puzzles.questions, labels, task=task, guides=guides, settings=settings,
            seed=arguments.seed, progress=bar.within(0, 100),
        )  # fmt: skip
    print(report.as_json() if arguments.json else report.words())
    if arguments.out is not None:
        _write(report, arguments.out)
        if not arguments.json:
            print(f"  the figures are in {arguments.out / PAGE}")
    return 0


def _write(report: DiagnosisReport, folder: Path) -> None:
    """A page and its numbers; files of an earlier diagnosis in the folder are replaced."""
    try:
        write_whole(folder / PAGE, page(report.as_dict()))
        write_whole(folder / FIGURES, report.as_json() + "\n")
    except OSError as error:
        raise DataError(f"{folder}: expected to write there, got: {error.strerror}") from error
