"""A model ready to run on a device."""

import torch

from tiltrm.model import load
from tiltrm.model.build import Model


def open_model(source: str, device: torch.device, config: str | None = None) -> Model:
    """`tiltrm.load` with the arguments of the command line."""
    return load(source, config=config, device=device)
