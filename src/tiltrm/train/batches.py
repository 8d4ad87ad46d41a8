"""Training puzzles on the device: a batch is a function of (seed, step) and nothing else."""

import random
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from tiltrm.data import Puzzles
from tiltrm.errors import SettingsError
from tiltrm.tasks import Maze
from tiltrm.tasks.base import Task
from tiltrm.train.settings import Depth, Hints, Settings

BLOCK = 2**16  # puzzles shuffled at once: their maps take twenty times the memory of the puzzles


class Source(NamedTuple):
    """The training set, on the device."""

    task: Task
    questions: Tensor  # (puzzle, cell)
    labels: Tensor  # (puzzle, cell)


def batch_seed(seed: int, step: int) -> int:
    """The seed of everything random in one step; named when a step goes wrong."""
    return random.Random(f"{seed}/{step}").getrandbits(62)


def source(puzzles: Puzzles, settings: Settings, device: torch.device, window: int = 0) -> Source:
    """Move the puzzles to the device, or what the settings make of them, `shuffles` of each.

    'fixed': their symmetries; 'moved': new puzzles in the same walls, or in a window of so many
    cells' side; 'fresh': puzzles of the task's own generator.
    """
    task, generator = puzzles.task, Generator(device).manual_seed(settings.seed)
    questions, labels = puzzles.questions.to(device), puzzles.labels().to(device)
    if settings.augment == "fixed":
        made = [
            task.symmetries(questions[part], labels[part], generator)
            for part in _repeated(len(puzzles), settings.shuffles, device)
        ]
    elif settings.augment == "moved":
        maze = _maze(task, settings)
        made = [
            maze.moved(questions[part], generator, window)
            for part in _repeated(len(puzzles), settings.shuffles, device)
        ]
    elif settings.augment == "fresh":
        made = [_maze(task, settings).fresh(len(puzzles) * settings.shuffles, generator)]
    else:
        made = [(questions, labels)]
    return Source(task, *(torch.cat(part) for part in zip(*made, strict=True)))


def _repeated(puzzles: int, times: int, device: torch.device) -> tuple[Tensor, ...]:
    """The places of all puzzles, so many times, in blocks."""
    blocks: tuple[Tensor, ...] = torch.arange(puzzles, device=device).repeat(times).split(BLOCK)
    return blocks


def _maze(task: Task, settings: Settings) -> Maze:
    if not isinstance(task, Maze):
        raise SettingsError(
            f"augment {settings.augment!r} is for mazes, got {task.name}; use 'endless', or "
            "generate a file with tiltrm data --generate and train on it"
        )
    return task


def window(settings: Settings, progress: float) -> int:
    """The side of the windows that a step at this progress sees; 0: whole puzzles."""
    return settings.window.side if progress < settings.window.until else 0


def draw(source: Source, settings: Settings, generator: Generator) -> tuple[Tensor, Tensor]:
    """A batch of puzzles and labels, each row under a symmetry of its own where asked."""
    chosen = torch.randint(
        len(source.questions), (settings.batch,), generator=generator, device=generator.device
    )
    questions, labels = source.questions[chosen], source.labels[chosen]
    if settings.augment == "endless":
        questions, labels = source.task.symmetries(questions, labels, generator)
    if settings.hints.most:
        questions = _with_hints(source.task, questions, labels, settings.hints, generator)
    return questions, labels


def _with_hints(
    task: Task, questions: Tensor, labels: Tensor, hints: Hints, generator: Generator
) -> Tensor:
    """Some puzzles get 1..most further clues from their answer, at random places.

    The answer stays the only one, so this is augmentation with nothing but the training puzzles.
    """
    rows, device = len(questions), generator.device
    chosen = torch.rand(rows, 1, generator=generator, device=device) < hints.share
    count = torch.randint(1, hints.most + 1, (rows, 1), generator=generator, device=device)
    order = torch.rand(questions.shape, generator=generator, device=device)
    order = order.masked_fill(task.given(questions), 2.0).argsort(-1).argsort(-1)
    shown = chosen & (order < count) & ~task.given(questions)
    return torch.where(shown, labels.to(questions.dtype), questions)


def draw_depth(depth: Depth, progress: float, seed: int) -> int:
    """Outer steps of this supervision step, uniform in the range that holds at `progress`."""
    first, last = depth.over
    done = min(1.0, max(0.0, (progress - first) / max(last - first, 1e-9)))
    low, high = (round(a + done * (b - a)) for a, b in zip(depth.start, depth.end, strict=True))
    return random.Random(seed).randint(low, high)
