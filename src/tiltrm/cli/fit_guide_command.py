"""Fit a small head that tells which particles will end right, for --guide learned:FOLDER."""

import argparse
import json
from pathlib import Path

from tiltrm.cli.flags import GUIDE_MINUTES
from tiltrm.cli.forecast import ProgressForecast
from tiltrm.cli.progress import Bar, in_words
from tiltrm.data import read
from tiltrm.data.splits import checksum
from tiltrm.device import choose
from tiltrm.errors import SettingsError
from tiltrm.evaluate.table import align
from tiltrm.model import load
from tiltrm.provenance import commit, device_name, release
from tiltrm.records import nan_to_null
from tiltrm.settings import TABLE
from tiltrm.solving import exploration_for, task_of
from tiltrm.solving.guide_folder import FittedOn, require_place, save_guide, weights_digest
from tiltrm.train.guide_clouds import Sampling
from tiltrm.train.guide_cost import GuideCost, guide_cost
from tiltrm.train.guide_fit import (
    FitSettings,
    FittedGuide,
    GuideFitter,
    Quality,
    settings_mapping,
)

NOISES = (1.0, 0.6, 1.4)  # times the noise of the task
MEASURED = {"cuda": 64, "cpu": 2}  # puzzles on which the cost is measured


def run(arguments: argparse.Namespace) -> int:
    """Fit, measure, store, and say what came out."""
    if arguments.minutes is not None and arguments.puzzles is not None:
        raise SettingsError("expected --minutes or --puzzles, got both; leave one out")
    require_place(arguments.out)  # now, since the fit takes its time
    device = choose(arguments.device)
    model = load(arguments.model, config=arguments.config, device=device)
    task = task_of(model, arguments.task)
    puzzles = read(arguments.data, task, max_bytes=arguments.max_bytes, names=model.puzzle_names)
    own = exploration_for("guided", task).noise
    noises = arguments.noise or [own * factor for factor in NOISES]
    sampling = Sampling(
        TABLE["particles"].check(arguments.particles),
        TABLE["outer_steps"].check(arguments.outer_steps),
        tuple(TABLE["noise"].check(float(noise)) for noise in noises), seed=arguments.seed,
    )  # fmt: skip
    minutes = arguments.minutes
    if minutes is None and arguments.puzzles is None:
        minutes = GUIDE_MINUTES
    settings = FitSettings(
        sampling, arguments.target, arguments.held_out, arguments.puzzles, minutes
    )
    budget = (
        f"{minutes:g} minutes" if arguments.puzzles is None else f"{arguments.puzzles:,} clouds"
    )
    forecast = ProgressForecast("fit-guide", f"fits with a budget of {budget}", 1.0, probed=0.0)
    forecast(0.0)
    with Bar("fitting", 1000, unit="thousandths of the budget") as bar:

        def tick(share: float, quality: Quality | None) -> None:
            forecast(share)
            if quality is not None:
                bar.label = (
                    f"fitting (loss {quality.loss:.3f}, in-cloud AUROC "
                    f"{quality.in_cloud_auroc:.3f} before learning from the chunk)"
                )
            bar(1000 * share)

        found = GuideFitter(model, puzzles, settings, tick).run()
    some = puzzles.questions[: MEASURED[device.type]]
    cost = guide_cost(model, found.head, some, sampling.particles)
    data = {"file": Path(arguments.data).name, "puzzles": len(puzzles),
            "checksum": checksum(puzzles)}  # fmt: skip
    figures = found.figures() | {"cost": cost.figures(), "device": device_name(device)}
    about = FittedOn(task.name, data, settings_mapping(settings), figures)
    text = words(found, cost)
    card = _card(arguments.out.name, about, text, weights_digest(model))
    save_guide(found.head, model, arguments.out, about, card)
    if arguments.json:
        told = {"folder": str(arguments.out), **figures}
        print(json.dumps(nan_to_null(told), allow_nan=False))
    else:
        print(f"{text}\nstored in {arguments.out}; use it with --guide learned:{arguments.out}")
    return 0


def words(found: FittedGuide, cost: GuideCost) -> str:
    """The table of both guides on the held-out clouds, and the cost."""
    names = ("in-cloud AUROC", "AUROC", "loss", "cross-entropy", "ranking")
    rows = [["", *names]]
    for name, quality in (("learned", found.quality), ("halting", found.halting)):
        shown = (quality.in_cloud_auroc, quality.auroc, *quality[:3])
        rows.append([name, *(f"{value:.4f}" for value in shown)])
    kept = "the halting head itself" if found.chosen == 0 else f"after {found.chosen:,} clouds"
    return "\n".join((
        f"on {found.held_out:,} held-out clouds:", align(rows, left=1),
        f"fitted on {found.clouds:,} clouds in {in_words(found.seconds)} "
        f"({found.evaluations:,} evaluations); best state: {kept}",
        cost.words(),
    ))  # fmt: skip


def _card(name: str, about: FittedOn, text: str, model: str) -> str:
    data, settings = about.data, about.settings
    sampling = settings["sampling"]
    noises = ", ".join(f"{noise:g}" for noise in sampling["noises"])
    return f"""\
# {name}: a learned guide for {about.task}

Fitted by `tiltrm fit-guide` ({release()}, commit {commit()}) on {about.figures["device"]}.

- Model: weights {model or "unknown"}.
- Puzzles: {data["file"]}, {data["puzzles"]:,}, SHA-256 {data["checksum"]}.
- Target: {settings["target"]}. Clouds of {sampling["particles"]} particles, {
        sampling["outer_steps"]
    } outer steps, noise {noises}, unguided, seed {sampling["seed"]}.

```
{text}
```

AUROC: probability that a trajectory that ends right has a higher score than one that does not;
in-cloud: both from the same cloud at the same step. A guide may be used on other weights of the
same sizes: `tiltrm diagnose --guide learned:FOLDER` judges it there.
"""
