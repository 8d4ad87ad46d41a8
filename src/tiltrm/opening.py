"""A model ready to run where it is to run."""

import torch

from tiltrm.model import load
from tiltrm.model.build import Model


def open_model(source: str, device: torch.device, config: str | None = None) -> Model:
    """Load a model, with its fast path where the device has one."""
    model = load(source, config=config, device=device)
    if device.type == "cuda":
        from tiltrm.kernels import fuse  # here, since it loads torch's compiler: a second and more

        fuse(model)
    return model
