"""The settings of a training run, each checked when it is made, and the presets (TOML files)."""

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
from tiltrm.records import build_record
from tiltrm.tasks import by_name

ANY_TASK = "any"  # the task in the file name of a preset that fits every task
SHAPES = ("constant", "linear", "cosine")
LOSSES = ("softmax", "stablemax")
OPTIMISERS = ("muon", "normuon", "adamw")
PRECISIONS = ("auto", "float32", "bfloat16")
AUGMENTATIONS = ("none", "endless", "fixed", "moved", "fresh")
MOST = 2**31 - 1  # far above any use; larger numbers would overflow in the C libraries


@dataclass(frozen=True)
class Schedule:
    """The factor on every learning rate over the progress (0 to 1) of the run."""

    shape: str = "cosine"  # constant, linear or cosine, once `hold` is over
    hold: float = 0.0  # share of the run at the full rate
    final: float = 0.0  # factor at the end
    warmup_steps: int = 0

    def __post_init__(self) -> None:
        _require_choice("schedule.shape", self.shape, SHAPES)
        _require_range(self, ("hold", "final"), 0.0, 1.0, "schedule.")
        _require_range(self, ("warmup_steps",), 0, MOST, "schedule.")


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
    """Augmentation: some puzzles of every batch show further cells of their answer as clues.

    A Sudoku with more clues has the same answer and is easier. The clues are drawn anew each time,
    so the model cannot recognise one of 1,000 training puzzles by the pattern of its clues.
    """

    share: float = 0.5  # of the puzzles
    most: int = 0  # clues added, uniform in 1..most; 0 turns hints off

    def __post_init__(self) -> None:
        _require_range(self, ("share",), 0.0, 1.0, "hints.")
        _require_range(self, ("most",), 0, MOST, "hints.")


@dataclass(frozen=True)
class Window:
    """The first part of a run on mazes trains on square windows cut out of them, which cost less.

    Every cell keeps the rotary angle that it has in the whole maze, so the weights carry over. On
    ARC a window is the upper left part of the board, with grids that fit in it.
    """

    side: int = 0  # cells; 0 turns windows off
    until: float = 0.1  # progress at which training changes to whole puzzles

    def __post_init__(self) -> None:
        _require_range(self, ("side",), 0, MOST, "window.")
        _require_range(self, ("until",), 0.0, 1.0, "window.")


@dataclass(frozen=True)
class Scan:
    """The checkpoint scan of Appendix E: three inference methods on a fixed part of val."""

    every: float = 0.0  # seconds of training between two scans; 0: none by the clock
    steps: tuple[int, ...] = ()  # training steps after which to scan as well
    puzzles: int = 100  # the first so many of val
    particles: int = 16
    noise: float = 0.3
    beta: float = 0.25
    resample_below: float = 0.3
    outer_steps: int = 48

    def __post_init__(self) -> None:
        _require_range(self, ("every", "noise", "beta"), 0.0, math.inf, "scan.")
        _require_range(self, ("resample_below",), 0.0, 1.0, "scan.")
        _require_range(self, ("puzzles", "particles", "outer_steps"), 1, MOST, "scan.")
        if any(not 1 <= step <= MOST for step in self.steps):
            raise SettingsError(f"scan.steps must be at least 1, got {min(self.steps)}")


@dataclass(frozen=True)
class Table:
    """The puzzle embedding of a run on the task arc, a row for each augmentation of a task.

    Trained by SignSGD with the peers' rate and decay; the schedule's factor holds for it too.
    """

    augmentations: int = 0  # rows of a task, the first of them unchanged; 0: there is no table
    rate: float = 0.01
    weight_decay: float = 0.1

    def __post_init__(self) -> None:
        _require_range(self, ("augmentations",), 0, 2**20, "table.")
        _require_range(self, ("rate", "weight_decay"), 0.0, math.inf, "table.")


@dataclass(frozen=True)
class TrainSettings:
    """One training run. Units: rates per step, progress in 0..1, noise in units of the state."""

    task: str
    model: TRMConfig = field(default_factory=TRMConfig)
    initial_scale: float = 1.0

    batch: int = 768
    steps: int = 50_000
    minutes: float = 0.0  # > 0: the run ends by the clock (evaluations and saves count), not steps
    precision: str = "auto"  # of the products; auto: bfloat16 on a GPU, float32 on a CPU
    compile: bool = False  # on a CPU, by torch's compiler, which needs one for C++
    seed: int = 0
    augment: str = "endless"
    shuffles: int = 1000  # puzzles made of each where augment is "fixed", "moved" or "fresh"
    window: Window = field(default_factory=Window)
    hints: Hints = field(default_factory=Hints)
    hold_out: float = 0.0  # share of ARC tasks that keep a demonstration for validation
    table: Table = field(default_factory=Table)

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
    restart_every: int = 500  # steps between two points where a state may be saved
    evaluate_steps: int = 48  # N of the validation runs
    scan: Scan = field(default_factory=Scan)

    def __post_init__(self) -> None:
        _require_choice("loss", self.loss, LOSSES)
        _require_choice("optimiser", self.optimiser, OPTIMISERS)
        _require_choice("precision", self.precision, PRECISIONS)
        _require_choice("augment", self.augment, AUGMENTATIONS)
        counts = (
            "batch", "steps", "shuffles", "halt_max_steps", "evaluate_steps", "restart_every",
        )  # fmt: skip
        _require_range(self, counts, 1, MOST)
        _require_range(self, ("newton_schulz",), 1, 99)
        _require_range(self, ("seed",), 0, 2**63 - 1)
        shares = ("label_smoothing", "halt_exploration", "ema", "momentum", "hold_out")
        _require_range(self, shares, 0.0, 1.0)
        not_negative = (
            "rate", "weight_decay", "head_rate", "head_weight_decay", "clip", "initial_scale",
            "halt_weight", "noise", "minutes", "evaluate_every", "save_every",
        )  # fmt: skip
        _require_range(self, not_negative, 0.0, math.inf)
        _require_range(self, ("mixing_weight_decay",), -math.inf, math.inf)
        if not all(0.0 <= beta < 1.0 for beta in self.betas):
            raise SettingsError(f"betas must be in [0, 1), got {self.betas}")
        if self.hints.most and not self.task.startswith(("sudoku", "pencil")):
            raise SettingsError(f"hints.most must be 0 for {self.task}: its answers are no clues")
        if self.window.side and not self._supports_windows():
            raise SettingsError(
                "window.side must be 0, or at most the grid's for a model with attention, rotary "
                f"positions, and augment 'moved' or a table, got {self.window.side}"
            )
        if bool(self.table.augmentations) != bool(self.model.id_cells):
            raise SettingsError(
                "table.augmentations and model.id_cells must both be above 0 or both 0, got "
                f"{self.table.augmentations} and {self.model.id_cells}"
            )
        sizes("trm", asdict(self.model))  # checks their upper limits

    def _supports_windows(self) -> bool:
        model = self.model
        by_angle = model.rotary and not (model.token_mixing or model.learned_positions)
        moves = self.augment == "moved" or self.table.augmentations > 0
        return by_angle and moves and 2 <= self.window.side**2 <= model.cells


def load_preset(task: str, name: str) -> TrainSettings:
    """The preset `<task>-<name>.toml` or `any-<name>.toml` of the package, or a TOML file.

    A preset without model.cells and model.vocabulary takes them from its task.
    """
    try:
        values = {"task": task} | tomllib.loads(_preset_text(task, name))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingsError(f"preset {name} is not valid TOML: {error}") from None
    model, grid = values.get("model", {}), by_name(str(values["task"]))
    if isinstance(model, dict):
        cells = grid.cells - int(model.get("id_cells", 0))
        values["model"] = {"cells": cells, "vocabulary": grid.vocabulary} | model
    return build_record(TrainSettings, values)


def _preset_text(task: str, name: str) -> str:
    if name.endswith(".toml"):
        try:
            return Path(name).read_text("utf-8")
        except (OSError, ValueError) as error:
            raise SettingsError(f"expected a preset file at {name}, got: {error}") from None
    folder = resources.files("tiltrm.train") / "presets"
    known = sorted(file.name.removesuffix(".toml") for file in folder.iterdir())
    for owner in (task, ANY_TASK):
        if f"{owner}-{name}" in known:
            return (folder / f"{owner}-{name}.toml").read_text("utf-8")
    pairs = (each.rpartition("-")[::2] for each in known)  # a task may have a hyphen itself
    fitting = [preset for owner, preset in pairs if owner in (task, ANY_TASK)]
    raise SettingsError(
        f"no preset {name!r} for {task}; expected one of {', '.join(fitting)}, or a file that "
        "ends in .toml"
    )


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The values of `new` that differ from `old`; a tuple equals the list that JSON makes of it."""

    def as_stored(value: Any) -> Any:
        return json.loads(json.dumps(value))

    return {
        name: value for name, value in new.items() if as_stored(old.get(name)) != as_stored(value)
    }


def _require_choice(name: str, value: str, allowed: Iterable[str]) -> None:
    if value not in allowed:
        raise SettingsError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")


def _require_range(
    record: object, names: Iterable[str], least: float, most: float, prefix: str = ""
) -> None:
    """Each of these fields must be a finite number in [least, most]."""
    for name in names:
        value = getattr(record, name)
        if not least <= value <= most or math.isinf(value):  # NaN fails the comparison
            limits = f"in [{least:g}, {most:.10g}]" if most < math.inf else f"at least {least:g}"
            raise SettingsError(f"{prefix}{name} must be a number {limits}, got {value!r}")
