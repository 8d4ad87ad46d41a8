"""The checkpoint scan of Appendix E: three inference methods with the current weights."""

from dataclasses import replace
from typing import NamedTuple

import torch

from tiltrm import kernels
from tiltrm.data import Puzzles
from tiltrm.explore import Exploration, explore
from tiltrm.model.build import Model, assemble
from tiltrm.model.trm import TRM
from tiltrm.tasks.base import exactly_right
from tiltrm.train.settings import Scan


class ScanPoint(NamedTuple):
    """Accuracy and cost of one inference method at one training step."""

    exact: float  # share of puzzles right in every cell
    evaluations: float  # network calls per puzzle


def inference_methods(settings: Scan) -> dict[str, Exploration]:
    """Deterministic TRM, unguided MAP (beta = 0) and guided MAP, all over the same outer steps."""
    guided = Exploration(
        particles=settings.particles, noise=settings.noise, beta=settings.beta,
        resample_below=settings.resample_below, outer_steps=settings.outer_steps,
        entropy_every=0, on_degenerate="abstain",
    )  # fmt: skip
    return {
        "deterministic": replace(guided, particles=1, noise=0.0, beta=0.0),
        "unguided": replace(guided, beta=0.0),
        "guided": guided,
    }


def scan(
    model: TRM, puzzles: Puzzles, settings: Scan, dtype: torch.dtype, seed: int
) -> dict[str, ScanPoint]:
    """Accuracy and cost of each method on the first `settings.puzzles` puzzles."""
    fixed = puzzles.take(slice(0, settings.puzzles))
    frozen = freeze(model, dtype)
    points = {}
    for name, exploration in inference_methods(settings).items():
        result = explore(frozen, fixed.questions, exploration, seed=seed)
        right = exactly_right(result.answers, fixed.labels())
        points[name] = ScanPoint(
            float(right.double().mean()), float(result.evaluations.double().mean())
        )
    return points


def freeze(model: TRM, dtype: torch.dtype) -> Model:
    """A copy as `tiltrm.model.load` gives it, so that a scan measures the model that is saved."""
    device = model.embedding.device
    frozen = assemble(
        model.config, model.state_dict(), source="training", device=device, dtype=dtype
    )
    frozen.puzzle_table = model.puzzle_table
    return kernels.fuse(frozen) if device.type == "cuda" and kernels.available() else frozen
