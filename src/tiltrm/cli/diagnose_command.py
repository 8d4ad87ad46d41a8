"""Say without labels whether exploration will help, and which answers to trust."""

import argparse
from pathlib import Path

from tiltrm.cli.flags import TASKS
from tiltrm.cli.progress import Bar
from tiltrm.data import read
from tiltrm.device import choose
from tiltrm.diagnose import SMALL, DiagnosisReport, diagnose
from tiltrm.errors import DataError, SettingsError
from tiltrm.model import load
from tiltrm.report.diagnosis import page
from tiltrm.report.page import make_folder
from tiltrm.solving import exploration_for, parse_guide, task_of

PAGE, FIGURES = "index.html", "diagnosis.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`tiltrm diagnose`'s flags."""
    parser.epilog = "The verdict never looks at labels; --labels adds what only they can show."
    add = parser.add_argument
    add("--model", metavar="M", default="sudoku-extreme", help="bundled name, folder or checkpoint "
        "(sudoku-extreme)")  # fmt: skip
    add("--config", metavar="C", help="configuration of another code's checkpoint")
    add("--data", metavar="F", required=True, help="any file, folder or dataset of puzzles")
    add("--task", help=f"{TASKS} (the model's own)")
    add("--labels", action="store_true", help="read the answers too")
    add("--puzzles", type=int, default=32, metavar="N", help="at most so many of them (32)")
    add("--guide", action="append", metavar="G", help="halting, confidence, residual, rules, "
        "shortest, or a sum; again for others, the verdict is about the first")  # fmt: skip
    add("--noise", type=float, metavar="SIGMA", help="scale of the exploration noise")
    add("--beta", type=float, help="strength of the tilt towards the guide")
    add("--particles", type=int, metavar="S", help=f"size of the cloud ({SMALL.particles})")
    add("--outer-steps", type=int, metavar="N", help=f"depth ({SMALL.outer_steps})")
    add("--out", type=Path, metavar="DIR", help="folder for a page with the figures, and the JSON")
    add("--seed", type=int, default=0, help="of the noise (0)")
    add("--device", default="auto", help="auto, cpu or cuda")
    add("--json", action="store_true", help="one object with every figure")


def run(arguments: argparse.Namespace) -> int:
    """Diagnose, print, and write the page where asked."""
    model = load(arguments.model, config=arguments.config, device=choose(arguments.device))
    task = task_of(model, arguments.task)
    if arguments.puzzles < 1:
        raise SettingsError(f"--puzzles must be at least 1, got {arguments.puzzles}")
    given = ("noise", "beta", "particles", "outer_steps")
    settings = exploration_for(
        "guided", task, SMALL, **{name: getattr(arguments, name) for name in given}
    )
    names = arguments.guide or ["halting"]
    guides = {name: parse_guide(name, model, task) for name in names}
    puzzles = read(arguments.data, task, limit=arguments.puzzles)
    labels = puzzles.labels() if arguments.labels else None
    if arguments.out is not None:
        make_folder(arguments.out)  # now, since the diagnosis takes its time
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
        (folder / PAGE).write_text(page(report.as_dict()), encoding="utf-8")
        (folder / FIGURES).write_text(report.as_json() + "\n", encoding="utf-8")
    except OSError as error:
        raise DataError(f"{folder}: expected to write there, got: {error.strerror}") from error
