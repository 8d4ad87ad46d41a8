"""Training puzzles on the device: a batch is a function of (seed, step) and nothing else."""

import random
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from tiltrm.data import Puzzles
from tiltrm.errors import SettingsError
from tiltrm.tasks import Maze
from tiltrm.tasks.base import Task
from tiltrm.tasks.grid import BLANK
from tiltrm.train.augmented import AugmentedDemonstrations
from tiltrm.train.settings import Depth, Hints, TrainSettings

BLOCK = 2**16  # puzzles augmented at once: their symmetry maps take 20 times the puzzles' memory


class TrainingSet(NamedTuple):
    """The training puzzles on the device."""

    task: Task
    questions: Tensor  # (puzzle, cell)
    labels: Tensor  # (puzzle, cell)
    augmented: AugmentedDemonstrations | None = None  # ARC, if augmentations have their own ids


def batch_seed(seed: int, step: int) -> int:
    """The seed of everything random in one step; the error about a bad loss names it."""
    return random.Random(f"{seed}/{step}").getrandbits(62)


def training_set(
    puzzles: Puzzles, settings: TrainSettings, device: torch.device, window: int = 0,
    names: Sequence[str] | None = None,
) -> TrainingSet:  # fmt: skip
    """Move the puzzles to the device, with `settings.shuffles` variants of each if asked for.

    augment "fixed" makes symmetries of every puzzle. "moved" makes new puzzles in the same walls,
    or in windows with a side of `window` cells. "fresh" takes puzzles of the task's generator.
    names: by puzzle id, if each augmentation has its own (`settings.table`).
    """
    if settings.table.augmentations:
        return _with_ids(puzzles, settings, device, window, names)
    task, generator = puzzles.task, Generator(device).manual_seed(settings.seed)
    questions, labels = puzzles.questions.to(device), puzzles.labels().to(device)
    if settings.augment in ("fixed", "moved"):
        rows = torch.arange(len(puzzles), device=device).repeat(settings.shuffles).split(BLOCK)
    if settings.augment == "fixed":
        made = [task.symmetries(questions[part], labels[part], generator) for part in rows]
    elif settings.augment == "moved":
        maze = _require_maze(task, settings)
        made = [maze.moved(questions[part], generator, window) for part in rows]
    elif settings.augment == "fresh":
        count = len(puzzles) * settings.shuffles
        made = [_require_maze(task, settings).fresh(count, generator)]
    else:
        made = [(questions, labels)]
    questions, labels = (torch.cat(part) for part in zip(*made, strict=True))
    return TrainingSet(task, questions, labels)


def _with_ids(
    puzzles: Puzzles, settings: TrainSettings, device: torch.device, window: int,
    names: Sequence[str] | None,
) -> TrainingSet:  # fmt: skip
    if names is None or settings.augment not in ("none", "endless"):
        raise SettingsError(
            "table.augmentations is for ARC tasks with augment 'endless' (moved grids) or 'none', "
            f"got {puzzles.task.name} with {settings.augment!r}; set table.augmentations to 0"
        )
    moves = settings.augment == "endless"
    side = window or puzzles.task.side
    augmented = AugmentedDemonstrations(puzzles, names, device, translate=moves, side=side)
    questions, labels = augmented.draw(1, Generator(device).manual_seed(settings.seed))
    return TrainingSet(puzzles.task, questions, labels, augmented)


def _require_maze(task: Task, settings: TrainSettings) -> Maze:
    if not isinstance(task, Maze):
        raise SettingsError(
            f"augment {settings.augment!r} is for mazes, got {task.name}; use 'endless', or "
            "generate a file with tiltrm data --generate and train on it"
        )
    return task


def window_side(settings: TrainSettings, progress: float) -> int:
    """The side of the windows that a step at this progress trains on; 0: whole puzzles."""
    return settings.window.side if progress < settings.window.until else 0


def draw(
    puzzles: TrainingSet, settings: TrainSettings, generator: Generator
) -> tuple[Tensor, Tensor]:
    """A batch of questions and labels, each row with its own symmetry if augment is "endless"."""
    if puzzles.augmented is not None:
        return puzzles.augmented.draw(settings.batch, generator)
    chosen = torch.randint(
        len(puzzles.questions), (settings.batch,), generator=generator, device=generator.device
    )
    questions, labels = puzzles.questions[chosen], puzzles.labels[chosen]
    if settings.augment == "endless":
        questions, labels = puzzles.task.symmetries(questions, labels, generator)
    if settings.hints.most:
        questions = _with_hints(questions, labels, settings.hints, generator)
    return questions, labels


def _with_hints(questions: Tensor, labels: Tensor, hints: Hints, generator: Generator) -> Tensor:
    """A share of the puzzles gets 1..most further clues from their answers, in blank cells.

    The answer stays unique, so this augmentation needs nothing but the training puzzles.
    """
    rows, device = len(questions), generator.device
    chosen = torch.rand(rows, 1, generator=generator, device=device) < hints.share
    count = torch.randint(1, hints.most + 1, (rows, 1), generator=generator, device=device)
    blank = questions == BLANK
    order = torch.rand(questions.shape, generator=generator, device=device)
    order = order.masked_fill(~blank, 2.0).argsort(-1).argsort(-1)
    shown = chosen & (order < count) & blank
    return torch.where(shown, labels.to(questions.dtype), questions)


def draw_depth(depth: Depth, progress: float, seed: int) -> int:
    """Outer steps of this supervision step, uniform in the range that holds at `progress`."""
    first, last = depth.over
    done = min(1.0, max(0.0, (progress - first) / max(last - first, 1e-9)))
    low, high = (round(a + done * (b - a)) for a, b in zip(depth.start, depth.end, strict=True))
    return random.Random(seed).randint(low, high)
