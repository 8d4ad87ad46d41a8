"""The weights with the best validation accuracy, in `best/` of the run's folder, and their card.

The card says how the weights were made: command, code, data, device, accuracy over time, settings.
"""

import json
import math
import shlex
from collections.abc import Sequence
from copy import copy
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError

from tiltrm import folders
from tiltrm.data import Puzzles
from tiltrm.data.splits import checksum, token_checksum
from tiltrm.errors import CheckpointError, DataError
from tiltrm.model import checkpoint
from tiltrm.model.trm import TRM
from tiltrm.provenance import commit, device_name, release
from tiltrm.train.log import Evaluation
from tiltrm.train.settings import TrainSettings

BEST = "best"
LARGE = 20_000  # puzzles: larger sets are told apart by their tokens, not by their text


class Origin(NamedTuple):
    """Command, data, device and code that make a model."""

    command: str
    train: str
    val: str
    device: str
    code: str

    @property
    def data(self) -> dict[str, str]:
        """The part that a saved state keeps, so that a resumed run can tell if the data changed."""
        return {"train": self.train, "val": self.val}


def describe_origin(
    command: Sequence[str], train: Puzzles, val: Puzzles, device: torch.device, processes: int
) -> Origin:
    """Data with checksums, the device by name, the code by version and commit."""
    train_data, val_data = map(_describe_data, (train, val))
    code = f"{release()}, commit {commit()}"
    where = f"{processes} x {device_name(device)}"
    return Origin(shlex.join(command), train_data, val_data, where, code)


def _describe_data(puzzles: Puzzles) -> str:
    if len(puzzles) > LARGE:  # as text, 120,000 pencil puzzles take a minute
        return f"{len(puzzles):,} puzzles, SHA-256 of their tokens {token_checksum(puzzles)}"
    return f"{len(puzzles):,} puzzles, SHA-256 {checksum(puzzles)}"


def save_best(model: TRM, folder: Path, card: str, decide_above: float) -> None:
    """Replace the best weights by the model's, all files or none; NaN is no threshold."""
    try:
        with folders.replacing(folder / BEST) as fresh:
            threshold = None if math.isnan(decide_above) else decide_above
            saved = copy(model)  # shallow: the weights are shared
            if model.puzzle_table is not None:
                saved.puzzle_table = model.puzzle_table.to("cpu", torch.bfloat16)
            checkpoint.save(saved, fresh, card=card, decide_above=threshold)
    except (OSError, SafetensorError, CheckpointError) as error:
        raise DataError(
            f"the best weights could not be written to {folder / BEST}: {error}; "
            "make room there and go on with --resume"
        ) from None


def recover_best(folder: Path) -> None:
    """Restore the best weights if the process was killed while it replaced them."""
    folders.recover(folder / BEST)


def card_text(
    origin: Origin, settings: TrainSettings, curve: Sequence[Evaluation], *, held_out: bool = True
) -> str:
    """The card in Markdown. The last evaluation of `curve` is that of the weights themselves.

    held_out: whether the validation puzzles are apart from the training puzzles.
    """
    last = curve[-1]
    chosen = "validation data, by which these weights were chosen"
    newest = "validation data, a part of the training data; these are the newest weights"
    rows = [
        f"| {each.step} | {each.seconds / 60:.2f} | {100 * each.val.final:.1f} "
        f"| {100 * each.train.final:.1f} | {100 * each.val.halt_accuracy:.1f} |"
        for each in curve
    ]
    above = last.val.decide_above
    threshold = f"- a settled answer is decided above a halt logit of {above:g}, chosen on val"
    lines = [
        f"# {settings.task}, {last.step} steps", "",
        f"- command: `{origin.command or 'called from Python'}`",
        f"- code: {origin.code}",
        f"- training data: {origin.train}",
        f"- {chosen if held_out else newest}: {origin.val}",
        f"- {last.seconds / 60:.2f} minutes of training on {origin.device}",
        *([] if math.isnan(above) else [threshold]), "",
        f"| step | minutes | val exact % (N={settings.evaluate_steps}) | train | val halting % |",
        "|---|---|---|---|---|", *rows, "",
        "Settings:", "```json", json.dumps(asdict(settings)), "```", "",
    ]  # fmt: skip
    return "\n".join(lines)
