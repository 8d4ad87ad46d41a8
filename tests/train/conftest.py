"""A tiny model whose halting head is not constant; training that is the same on a busy machine."""

import math

import pytest
import torch

from tiltrm.model.trm import TRM
from tiltrm.train import trainer

from . import toys


@pytest.fixture(autouse=True)
def whole_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Losses are logged every ten steps, however slow the steps are."""
    monkeypatch.setattr(trainer, "PATIENCE", math.inf)


@pytest.fixture
def model() -> TRM:
    torch.manual_seed(0)
    model = TRM(toys.settings().model)
    torch.nn.init.normal_(model.halt_head.weight)
    return model
