"""The best weights by validation, in `best/` of the run's folder."""

from pathlib import Path

from safetensors import SafetensorError

from tiltrm import folders
from tiltrm.errors import CheckpointError, DataError
from tiltrm.model import checkpoint
from tiltrm.model.trm import TRM

BEST = "best"


def best(model: TRM, folder: Path, card: str) -> None:
    """Replace the best weights by the model's, whole or not at all."""
    try:
        with folders.replacing(folder / BEST) as fresh:
            checkpoint.save(model, fresh, card=card)
    except (OSError, SafetensorError, CheckpointError) as error:
        raise DataError(
            f"the best weights could not be written to {folder / BEST}: {error}; "
            "make room there and go on with --resume"
        ) from None


def recover(folder: Path) -> None:
    """Put the best weights back in place after a kill while they were replaced."""
    folders.recover(folder / BEST)
