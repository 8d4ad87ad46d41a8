"""Stopping a run that has gone wrong, with what is needed to look into it."""

import math
from collections.abc import Sequence
from pathlib import Path

from tiltrm.errors import DegenerateError
from tiltrm.train import state
from tiltrm.train.batches import batch_seed
from tiltrm.train.settings import Settings

EXPLODED = 4.0  # a loss this many times that of a blind guess stops the run


def check(losses: Sequence[float], first: int, settings: Settings, folder: Path) -> None:
    """Raise at a NaN or an explosion among the losses of the steps from `first` on.

    The blind guess spreads the ids evenly; 5 is the halting head's loss at its first bias, -5.
    """
    blind = math.log(settings.model.vocabulary) + settings.halt_weight * 5
    for step, loss in enumerate(losses, first):
        if not loss <= EXPLODED * blind:  # so that NaN fails too
            raise DegenerateError(
                f"the loss was {loss:.3g} at step {step} "
                f"(batch seed {batch_seed(settings.seed, step)}); "
                f"the last good state is {state.latest(folder) or 'none'}"
            )
