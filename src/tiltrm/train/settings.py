"""Everything a training run can be told, and the presets that are files a person can read."""

import json
import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from tiltrm.errors import SettingsError
from tiltrm.model.build import sizes
from tiltrm.model.trm import TRMConfig
from tiltrm.train.plain import build

LOSSES = ("softmax", "stablemax")
OPTIMISERS = ("muon", "adamw")
SHAPES = ("constant", "linear", "cosine")
AUGMENTATIONS = ("none", "endless", "fixed", "moved", "fresh")
MOST = 2**31 - 1  # far above any use; keeps a slip of the hand out of the C libraries


@dataclass(frozen=True)
class Schedule:
    """The factor on every learning rate over the progress (0 to 1) of the run."""

    shape: str = "cosine"  # constant, linear or cosine, once `hold` is over
    hold: float = 0.0  # share of the run at the full rate
    final: float = 0.0  # factor at the end
    warmup_steps: int = 0

    def __post_init__(self) -> None:
        _among("schedule.shape", self.shape, SHAPES)
        _within(self, ("hold", "final"), 0.0, 1.0, "schedule.")
        _within(self, ("warmup_steps",), 0, MOST, "schedule.")


@dataclass(frozen=True)
class Depth:
    """Outer steps in one supervision step while training, drawn anew for every step.

    The range moves linearly from `start` to `end` between the progress points `over`.
    Only the last outer step of each carries a gradient.
    """

    start: tuple[int, int] = (3, 3)
    end: tuple[int, int] = (3, 3)
    over: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            low, high = getattr(self, name)
            if not 1 <= low <= high <= MOST:
                raise SettingsError(f"depth.{name} must be 1 <= low <= high, got {low}, {high}")
        first, last = self.over
        if not 0.0 <= first <= last <= 1.0:
            raise SettingsError(f"depth.over must be 0 <= first <= last <= 1, got {first}, {last}")


@dataclass(frozen=True)
class Hints:
    """Further clues from the answer, for some of the puzzles of every batch.

    A Sudoku with more of its cells given has the same answer and is easier. So the 1,000 puzzles
    show themselves in endless forms, and none can be told by the pattern of its clues.
    """

    share: float = 0.5  # of the puzzles
    most: int = 0  # clues added, uniform in 1..most; 0: none at all

    def __post_init__(self) -> None:
        _within(self, ("share",), 0.0, 1.0, "hints.")
        _within(self, ("most",), 0, MOST, "hints.")


@dataclass(frozen=True)
class Window:
    """The first part of a run on mazes sees windows cut out of them, which cost far less.

    Every cell keeps the rotary angle it would have in the whole maze, so that what is learned about
    neighbours holds there too.
    """

    side: int = 0  # cells; 0: none at all
    until: float = 0.1  # progress at which the whole mazes take over

    def __post_init__(self) -> None:
        _within(self, ("side",), 0, MOST, "window.")
        _within(self, ("until",), 0.0, 1.0, "window.")


@dataclass(frozen=True)
class Scan:
    """The checkpoint scan of Appendix E: three ways of inference on a fixed part of val."""

    every: float = 0.0  # seconds of training between two scans; 0: none by the clock
    steps: tuple[int, ...] = ()  # and after these steps
    puzzles: int = 100  # the first so many of val
    particles: int = 16
    noise: float = 0.3
    beta: float = 0.25
    resample_below: float = 0.3
    outer_steps: int = 48

    def __post_init__(self) -> None:
        _within(self, ("every", "noise", "beta"), 0.0, math.inf, "scan.")
        _within(self, ("resample_below",), 0.0, 1.0, "scan.")
        _within(self, ("puzzles", "particles", "outer_steps"), 1, MOST, "scan.")
        if any(not 1 <= step <= MOST for step in self.steps):
            raise SettingsError(f"scan.steps must be at least 1, got {min(self.steps)}")


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
        _among("loss", self.loss, LOSSES)
        _among("optimiser", self.optimiser, OPTIMISERS)
        _among("augment", self.augment, AUGMENTATIONS)
        counts = ("batch", "steps", "shuffles", "halt_max_steps", "evaluate_steps")
        _within(self, counts, 1, MOST)
        _within(self, ("newton_schulz",), 1, 99)
        _within(self, ("seed",), 0, 2**63 - 1)
        _within(self, ("label_smoothing", "halt_exploration", "ema", "momentum"), 0.0, 1.0)
        rates = ("rate", "weight_decay", "head_rate", "head_weight_decay", "clip", "initial_scale")
        _within(self, (*rates, "halt_weight", "noise", "minutes"), 0.0, math.inf)
        _within(self, ("evaluate_every", "save_every"), 0.0, math.inf)
        _within(self, ("mixing_weight_decay",), -math.inf, math.inf)
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
    """The preset `<task>-<name>.toml` that ships with the package, or a TOML file."""
    folder = resources.files("tiltrm.train") / "presets"
    if name.endswith(".toml"):
        try:
            text = Path(name).read_text("utf-8")
        except (OSError, ValueError) as error:
            raise SettingsError(f"expected a preset file at {name}, got: {error}") from None
    else:
        known = sorted(file.name.removesuffix(".toml") for file in folder.iterdir())
        if f"{task}-{name}" not in known:
            ours = [each.removeprefix(f"{task}-") for each in known if each.startswith(f"{task}-")]
            raise SettingsError(
                f"no preset {name!r} for {task}; expected one of {', '.join(ours) or 'none'}, "
                "or a file that ends in .toml"
            )
        text = (folder / f"{task}-{name}.toml").read_text("utf-8")
    try:
        return Settings.from_dict({"task": task} | tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"preset {name} is not valid TOML: {error}") from None


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of `new` that are not what they were, both as plain values."""
    return {name: value for name, value in new.items() if _listed(old.get(name)) != _listed(value)}


def _listed(value: Any) -> Any:
    """A value as a JSON file gives it back: lists for tuples."""
    return json.loads(json.dumps(value))


def _among(name: str, value: str, allowed: Iterable[str]) -> None:
    if value not in allowed:
        raise SettingsError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")


def _within(
    record: object, names: Iterable[str], least: float, most: float, where: str = ""
) -> None:
    """Numbers must be finite and in [least, most]; NaN is neither."""
    for name in names:
        value = getattr(record, name)
        if not least <= value <= most or math.isinf(value):
            limits = f"in [{least:g}, {most:g}]" if most < math.inf else f"at least {least:g}"
            raise SettingsError(f"{where}{name} must be a number {limits}, got {value!r}")
