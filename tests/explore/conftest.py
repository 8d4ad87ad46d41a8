"""A tiny TRM with a halting head that has opinions."""

import pytest
import torch
from torch import Tensor

from tiltrm.model.trm import TRM, TRMConfig


@pytest.fixture(scope="session")
def model() -> TRM:
    torch.manual_seed(0)
    config = TRMConfig(cells=16, vocabulary=6, width=32, layers=1, heads=2, prefix=1, inner_steps=3)
    tiny = TRM(config).eval().requires_grad_(False)
    torch.nn.init.normal_(tiny.halt_head.weight, std=0.3)
    torch.nn.init.zeros_(tiny.halt_head.bias)
    return tiny


@pytest.fixture(scope="session")
def tokens() -> Tensor:
    return torch.randint(1, 6, (6, 16), generator=torch.Generator().manual_seed(1))
