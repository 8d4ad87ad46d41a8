"""Everything a training run can be told, and the presets that are files a person can read."""

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from tiltrm.errors import SettingsError
from tiltrm.model.build import sizes
from tiltrm.model.trm import TRMConfig
from tiltrm.tasks import by_name
from tiltrm.train.groups import MOST, Depth, Hints, Scan, Schedule, Window, among, within
from tiltrm.train.plain import build

__all__ = [
    "Depth", "Hints", "Scan", "Schedule", "Settings", "Window", "differences", "preset",
]  # fmt: skip

ANY = "any"  # presets for every task
LOSSES = ("softmax", "stablemax")
OPTIMISERS = ("muon", "adamw")
AUGMENTATIONS = ("none", "endless", "fixed", "moved", "fresh")


@dataclass(frozen=True)
class Settings:
    """One training run. Units: rates per step, progress in 0..1, noise in units of the state."""

    task: str
    model: TRMConfig = field(default_factory=TRMConfig)
    initial_scale: float = 1.0

    batch: int = 768
    steps: int = 50_000
    minutes: float = 0.0  # > 0: plan by the clock (evaluations and saves count), not by steps
    seed: int = 0
    augment: str = "endless"
    shuffles: int = 1000  # puzzles made of each where augment is "fixed", "moved" or "fresh"
    window: Window = field(default_factory=Window)
    hints: Hints = field(default_factory=Hints)

    optimiser: str = "muon"
    rate: float = 0.02
    momentum: float = 0.6
    newton_schulz: int = 3
    weight_decay: float = 0.05
    mixing_weight_decay: float = -1.0  # of the token-mixing matrices; negative: as weight_decay
    head_rate: float = 1e-4
    head_weight_decay: float = 1.0
    betas: tuple[float, float] = (0.9, 0.95)
    clip: float = 1.0  # largest norm of the gradient; 0: any
    schedule: Schedule = field(default_factory=Schedule)
    ema: float = 0.999

    loss: str = "softmax"
    label_smoothing: float = 0.0
    halt_weight: float = 0.5
    halt_max_steps: int = 16
    halt_exploration: float = 0.1
    depth: Depth = field(default_factory=Depth)
    noise: float = 0.0  # latent noise at every outer step, its scale uniform in [0, noise]

    evaluate_every: float = 60.0  # seconds of training
    save_every: float = 60.0
    evaluate_steps: int = 48  # N of the validation runs
    scan: Scan = field(default_factory=Scan)

    def __post_init__(self) -> None:
        among("loss", self.loss, LOSSES)
        among("optimiser", self.optimiser, OPTIMISERS)
        among("augment", self.augment, AUGMENTATIONS)
        counts = ("batch", "steps", "shuffles", "halt_max_steps", "evaluate_steps")
        within(self, counts, 1, MOST)
        within(self, ("newton_schulz",), 1, 99)
        within(self, ("seed",), 0, 2**63 - 1)
        within(self, ("label_smoothing", "halt_exploration", "ema", "momentum"), 0.0, 1.0)
        rates = ("rate", "weight_decay", "head_rate", "head_weight_decay", "clip", "initial_scale")
        within(self, (*rates, "halt_weight", "noise", "minutes"), 0.0, math.inf)
        within(self, ("evaluate_every", "save_every"), 0.0, math.inf)
        within(self, ("mixing_weight_decay",), -math.inf, math.inf)
        if not all(0.0 <= beta < 1.0 for beta in self.betas):
            raise SettingsError(f"betas must be in [0, 1), got {self.betas}")
        if self.hints.most and not self.task.startswith("sudoku"):
            raise SettingsError(f"hints.most must be 0 for {self.task}: its answers are no clues")
        if self.window.side and not self._can_cut():
            raise SettingsError(
                "window.side must be 0, or at most the maze's for a model with attention, rotary "
                f"positions and augment 'moved', got {self.window.side}"
            )
        sizes("trm", asdict(self.model))  # their upper limits

    def _can_cut(self) -> bool:
        model = self.model
        by_angle = model.rotary and not (model.token_mixing or model.learned_positions)
        return by_angle and self.augment == "moved" and 2 <= self.window.side**2 <= model.cells

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Settings":
        """Settings from plain values; an unknown or mistyped one is an error that names it."""
        return build(cls, values)


def preset(task: str, name: str) -> Settings:
    """The preset `<task>-<name>.toml` or `any-<name>.toml` of the package, or a TOML file."""
    folder = resources.files("tiltrm.train") / "presets"
    if name.endswith(".toml"):
        try:
            text = Path(name).read_text("utf-8")
        except (OSError, ValueError) as error:
            raise SettingsError(f"expected a preset file at {name}, got: {error}") from None
    else:
        known = sorted(file.name.removesuffix(".toml") for file in folder.iterdir())
        whose = [own for own in (task, ANY) if f"{own}-{name}" in known]
        if not whose:
            found = (each.partition("-")[::2] for each in known)
            ours = [word for own, word in found if own in (task, ANY)]
            raise SettingsError(
                f"no preset {name!r} for {task}; expected one of {', '.join(ours)}, or a file that "
                "ends in .toml"
            )
        text = (folder / f"{whose[0]}-{name}.toml").read_text("utf-8")
    try:
        values = {"task": task} | tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"preset {name} is not valid TOML: {error}") from None
    return Settings.from_dict(values | {"model": _fitting(values)})


def _fitting(values: Mapping[str, Any]) -> Any:
    """The sizes of the model; those that the task decides are the task's unless they are given."""
    own, task = values.get("model", {}), by_name(str(values["task"]))
    decided = {"cells": task.cells, "vocabulary": task.vocabulary}
    return decided | own if isinstance(own, dict) else own


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of `new` that are not what they were, both as plain values."""
    return {name: value for name, value in new.items() if _listed(old.get(name)) != _listed(value)}


def _listed(value: Any) -> Any:
    """A value as a JSON file gives it back: lists for tuples."""
    return json.loads(json.dumps(value))
