"""The best weights by validation, in `best/` of the run's folder."""

import math
from pathlib import Path

from safetensors import SafetensorError

from tiltrm import folders
from tiltrm.errors import CheckpointError, DataError
from tiltrm.model import checkpoint
from tiltrm.model.trm import TRM

BEST = "best"


def best(model: TRM, folder: Path, card: str, decide_above: float) -> None:
    """Replace the best weights by the model's, whole or not at all; NaN is no threshold."""
    try:
        with folders.replacing(folder / BEST) as fresh:
            known = None if math.isnan(decide_above) else decide_above
            checkpoint.save(model, fresh, card=card, decide_above=known)
    except (OSError, SafetensorError, CheckpointError) as error:
        raise DataError(
            f"the best weights could not be written to {folder / BEST}: {error}; "
            "make room there and go on with --resume"
        ) from None


def recover(folder: Path) -> None:
    """Put the best weights back in place after a kill while they were replaced."""
    folders.recover(folder / BEST)
