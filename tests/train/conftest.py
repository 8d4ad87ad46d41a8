"""A tiny model with a halting head that has opinions."""

import pytest
import torch

from tiltrm.model.trm import TRM

from . import toys


@pytest.fixture
def model() -> TRM:
    torch.manual_seed(0)
    model = TRM(toys.settings().model)
    torch.nn.init.normal_(model.halt_head.weight)
    return model
