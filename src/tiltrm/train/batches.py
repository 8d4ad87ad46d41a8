"""Training puzzles on the device: a batch is a function of (seed, step) and nothing else."""

import random
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from tiltrm.data import Puzzles
from tiltrm.tasks.base import Task
from tiltrm.train.settings import Depth, Settings

BLOCK = 2**16  # puzzles shuffled at once: their maps take twenty times the memory of the puzzles


class Source(NamedTuple):
    """The training set, on the device."""

    task: Task
    questions: Tensor  # (puzzle, cell)
    labels: Tensor  # (puzzle, cell)


def batch_seed(seed: int, step: int) -> int:
    """The seed of everything random in one step; named when a step goes wrong."""
    return random.Random(f"{seed}/{step}").getrandbits(62)


def source(puzzles: Puzzles, settings: Settings, device: torch.device) -> Source:
    """Move the puzzles to the device; with 'fixed' augmentation, all their symmetries instead."""
    questions, labels = puzzles.questions.to(device), puzzles.labels().to(device)
    if settings.augment == "fixed":
        generator = Generator(device).manual_seed(settings.seed)
        moved = [
            puzzles.task.symmetries(questions[rows], labels[rows], generator)
            for rows in _repeated(len(puzzles), settings.shuffles, device).split(BLOCK)
        ]
        questions, labels = (torch.cat(part) for part in zip(*moved, strict=True))
    return Source(puzzles.task, questions, labels)


def _repeated(puzzles: int, times: int, device: torch.device) -> Tensor:
    return torch.arange(puzzles, device=device).repeat(times)


def draw(source: Source, settings: Settings, generator: Generator) -> tuple[Tensor, Tensor]:
    """A batch of puzzles and labels, each row under a symmetry of its own where asked."""
    chosen = torch.randint(
        len(source.questions), (settings.batch,), generator=generator, device=generator.device
    )
    questions, labels = source.questions[chosen], source.labels[chosen]
    if settings.augment == "endless":
        return source.task.symmetries(questions, labels, generator)
    return questions, labels


def draw_depth(depth: Depth, progress: float, seed: int) -> int:
    """Outer steps of this supervision step, uniform in the range that holds at `progress`."""
    first, last = depth.over
    done = min(1.0, max(0.0, (progress - first) / max(last - first, 1e-9)))
    low, high = (round(a + done * (b - a)) for a, b in zip(depth.start, depth.end, strict=True))
    return random.Random(seed).randint(low, high)
