"""Choose noise, plan and stopping rule for a checkpoint, and calibrate its confidence."""

import argparse
import json
import math
import tempfile
from contextlib import nullcontext
from pathlib import Path

from tiltrm.cli.forecast import say_if_long
from tiltrm.cli.progress import Bar
from tiltrm.cli.tune_threshold import check_flags, choose_threshold
from tiltrm.cpu_precision import load_options
from tiltrm.data import read
from tiltrm.data.splits import checksum
from tiltrm.device import choose
from tiltrm.errors import SettingsError
from tiltrm.evaluate.table import align
from tiltrm.evaluate.target import fingerprint
from tiltrm.explore.plan import format_stages
from tiltrm.model import load
from tiltrm.model.checkpoint import BUNDLED, bundled
from tiltrm.model.native import CALIBRATION, CONFIG, TUNED, read_mapping, write_beside
from tiltrm.report.tuning import draw_frontier
from tiltrm.solving import task_of
from tiltrm.solving.confidence import Calibration
from tiltrm.solving.reserve import End
from tiltrm.solving.risk import rung_for, smallest_risk
from tiltrm.solving.tune import Checked, Tuner, Tuning
from tiltrm.solving.tune_store import PartStore

SHOWN = 12  # points of the frontier in the text


def run(arguments: argparse.Namespace) -> int:
    """Record, choose, check, store, and say what came out."""
    _check(arguments)
    is_bundled = arguments.model in bundled()
    folder = BUNDLED / arguments.model if is_bundled else Path(arguments.model)
    is_folder = (folder / CONFIG).is_file()
    if (is_bundled or not is_folder) and not arguments.dry_run:
        raise SettingsError(
            f"--model must be a folder that import or train wrote, got {arguments.model}; make one "
            "with tiltrm import CKPT --out DIR, or see what would be chosen with --dry-run"
        )
    device = choose(arguments.device)
    model = load(
        arguments.model, config=arguments.config, device=device, puzzle_id=arguments.puzzle_id,
        **load_options(arguments.precision, device),
    )  # fmt: skip
    task = task_of(model, arguments.task)
    puzzles = read(
        arguments.data, task, limit=arguments.puzzles, max_bytes=arguments.max_bytes,
        names=model.puzzle_names,
    )  # fmt: skip
    if arguments.threshold_only:
        return choose_threshold(arguments, model, puzzles, folder)
    about = {
        "puzzles": checksum(puzzles), "task": task.name, "seed": arguments.seed,
        "judge": arguments.judge, "rules": arguments.rules, "evaluations": arguments.evaluations,
        "minutes": arguments.minutes, "only": arguments.confidence_only,
        **({"puzzle_id": model.puzzle_id} if model.puzzle_id else {}),
        **({"precision": arguments.precision} if arguments.precision else {}),
    }  # fmt: skip
    weights = str(read_mapping(folder / CONFIG)["checksum"]) if is_folder else fingerprint(model)
    kept = arguments.store or (None if arguments.dry_run else folder / "tune")
    with nullcontext(kept) if kept else tempfile.TemporaryDirectory() as where:
        store = PartStore(Path(where), weights, about)
        with Bar("tuning", 1, unit="evaluations") as bar:
            tuner = Tuner(
                model, puzzles, store, seed=arguments.seed, judge=arguments.judge,
                rules=arguments.rules, evaluations=arguments.evaluations,
                minutes=arguments.minutes, per_puzzle=arguments.per_puzzle or math.inf, tick=bar,
                data=Path(arguments.data).name,
            )  # fmt: skip
            bar.total = tuner.budget
            work = f"{tuner.budget:,} evaluations at most"
            advice = "--minutes or --evaluations set the budget; a killed run continues"
            say_if_long("tune", work, tuner.expected_seconds, advice)
            if arguments.confidence_only:
                return _calibrate(arguments, tuner, folder)
            found = tuner.run()
    if not arguments.dry_run:
        _store(folder, task.name, found)
    if arguments.picture is not None:
        draw_frontier(found, arguments.picture)
    stored = "" if arguments.dry_run else str(folder)
    print(json.dumps(found.as_mapping()) if arguments.json else words(found, stored))
    return 0


def _check(arguments: argparse.Namespace) -> None:
    if arguments.evaluations is not None and arguments.minutes is not None:
        raise SettingsError("expected --evaluations or --minutes, got both; leave one out")
    for name in ("evaluations", "minutes", "puzzles", "per_puzzle"):
        value = getattr(arguments, name)
        if value is not None and not value > 0:
            raise SettingsError(f"--{name.replace('_', '-')} must be above 0, got {value}")
    for name in ("rules", "confidence_only"):
        if getattr(arguments, name) and arguments.judge == "agreement":
            flag = f"--{name.replace('_', '-')}"
            raise SettingsError(f"--judge must not be agreement with {flag}; leave one out")
    check_flags(arguments)


def _calibrate(arguments: argparse.Namespace, tuner: Tuner, folder: Path) -> int:
    """Fit and store the calibration of the plan that the model has."""
    found, checked = tuner.calibrate()
    if not arguments.dry_run:
        write_beside(folder, CALIBRATION, found.as_mapping())
    if arguments.json:
        print(json.dumps(found.as_mapping()))
        return 0
    print(
        f"calibrated on {found.puzzles:,} puzzles by {found.judge}: {checked.right:,} right at "
        f"{checked.evaluations:,.1f} evaluations a puzzle\n{supported_risk(found)}"
    )
    return 0


def _store(folder: Path, task: str, found: Tuning) -> None:
    if found.kept:
        write_beside(folder, TUNED, {"task": task, **found.as_mapping()})
    else:
        (folder / TUNED).unlink(missing_ok=True)
    if found.calibration is None:
        (folder / CALIBRATION).unlink(missing_ok=True)
    else:
        write_beside(folder, CALIBRATION, found.calibration.as_mapping())


def words(found: Tuning, stored: str) -> str:
    """The frontier, the chosen plan, and the check on other puzzles."""
    plan = found.chosen.plan
    stop = (
        "stops at a valid solution" if found.chosen.rules
        else f"stops above a halt logit of {found.chosen.halt_above:g}, or by agreement"
    )  # fmt: skip
    step = max(1, -(-len(found.frontier) // SHOWN))
    points = [*found.frontier[:-1:step], *found.frontier[-1:]]
    table = [["right %", "evaluations", "halt above", "stages"]]
    table += [
        [f"{100 * p.right:.2f}", f"{p.evaluations:,.1f}", f"{p.halt_above:g}", p.stages]
        for p in points
    ]
    verdict = (
        "kept"
        if found.kept
        else "not kept: its gain over the task's own plan is not worth its cost"
    )
    lines = [
        f"frontier on {found.puzzles:,} puzzles, right by {found.judge}:",
        align(table, left=0),
        f"chosen: {format_stages(plan.stages)}; noise {plan.noise:g}, beta {plan.beta:g}, "
        f"{'symmetric views' if plan.symmetric_views else 'no symmetric views'}; {stop}",
        *_about_end(found.end),
        f"  played: {found.played.right:.2%} right at {found.played.evaluations:,.1f} evaluations",
        f"  on {found.checked.puzzles:,} other puzzles: {_share(found.checked)}; "
        f"the task's own plan: {_share(found.untuned)}",
        f"  {verdict} ({found.pairs.won:,} won, {found.pairs.lost:,} lost)",
        f"  tuning took {found.evaluations:,} evaluations",
    ]
    if found.calibration is None:
        lines.append("  confidence not calibrated: too few puzzles, or no judge of single answers")
    else:
        lines.append(f"  confidence calibrated; {supported_risk(found.calibration)}")
    if stored:
        which = "stored" if found.kept else "calibration of the task's plan stored"
        if found.kept or found.calibration is not None:
            lines.append(f"  {which} in {stored}; solve, evaluate and serve use it from now on")
    return "\n".join(lines)


def _about_end(end: End | None) -> list[str]:
    """What the stages that guess do, in a line; none where there are none."""
    if end is None:
        return []
    return [
        f"  {end.puzzles:,} of these puzzles came to the stages that guess "
        f"({format_stages(end.stages)}): about {end.right:.0%} of such puzzles end right there, at "
        f"{end.evaluations:,.1f} evaluations each"
    ]


def supported_risk(calibration: Calibration) -> str:
    """What --risk may be with this calibration."""
    risk = smallest_risk(calibration.ladder)
    if risk >= 1.0:
        return "these puzzles support no --risk: too few of the answers are right"
    answered = rung_for(calibration.ladder, risk).answered
    return (
        f"the smallest --risk that these puzzles support is {risk:.2g}, with answers to "
        f"{answered:,} of {calibration.puzzles:,}"
    )


def _share(checked: Checked) -> str:
    return f"{checked.right / checked.puzzles:.2%} right at {checked.evaluations:,.1f} evaluations"
