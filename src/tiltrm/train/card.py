"""The card beside the best weights: what made them, from what, on what, and how it went."""

import json
import math
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from typing import NamedTuple

import torch

from tiltrm.data import Puzzles
from tiltrm.data.splits import checksum
from tiltrm.provenance import commit, device_name, release
from tiltrm.train.record import Evaluation
from tiltrm.train.settings import Settings


class Origin(NamedTuple):
    """Where a model comes from."""

    command: str
    train: str
    val: str
    device: str
    code: str

    @property
    def data(self) -> dict[str, str]:
        """What a saved state keeps of the puzzles, to tell them from others."""
        return {"train": self.train, "val": self.val}


def origin(
    command: Sequence[str], train: Puzzles, val: Puzzles, device: torch.device, processes: int
) -> Origin:
    """Data with checksums, the device by name, the code by version and commit."""
    code = f"{release()}, commit {commit()}"
    where = f"{processes} x {device_name(device)}"
    return Origin(shlex.join(command), _data(train), _data(val), where, code)


def text(origin: Origin, settings: Settings, curve: Sequence[Evaluation]) -> str:
    """Markdown. `curve` holds the evaluations so far, the last that of these weights."""
    last = curve[-1]
    rows = [
        f"| {each.step} | {each.seconds / 60:.2f} | {100 * each.val.final:.1f} "
        f"| {100 * each.train.final:.1f} | {100 * each.val.halt_accuracy:.1f} |"
        for each in curve
    ]
    lines = [
        f"# {settings.task}, {last.step} steps", "",
        f"- command: `{origin.command or 'called from Python'}`",
        f"- code: {origin.code}",
        f"- training data: {origin.train}",
        f"- validation data, by which these weights were chosen: {origin.val}",
        f"- {last.seconds / 60:.2f} minutes of training on {origin.device}",
        *_deciding(last.val.decide_above), "",
        f"| step | minutes | val exact % (N={settings.evaluate_steps}) | train | val halting % |",
        "|---|---|---|---|---|", *rows, "",
        "Settings:", "```json", json.dumps(asdict(settings)), "```", "",
    ]  # fmt: skip
    return "\n".join(lines)


def _deciding(above: float) -> list[str]:
    if math.isnan(above):
        return []
    return [f"- a settled answer is decided above a halt logit of {above:g}, chosen on val"]


def _data(puzzles: Puzzles) -> str:
    return f"{len(puzzles):,} puzzles, SHA-256 {checksum(puzzles)}"
