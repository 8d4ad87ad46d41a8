"""A guide is fitted on a CUDA device in bfloat16; skipped where there is none."""

from copy import deepcopy

import pytest
import torch
from tests.train import toys

from tiltrm.model.trm import TRM
from tiltrm.train.guide_clouds import Sampling
from tiltrm.train.guide_cost import guide_cost
from tiltrm.train.guide_fit import FitSettings, GuideFitter

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


def test_a_fit_on_a_gpu(toy: TRM) -> None:
    model, puzzles = deepcopy(toy).to("cuda", torch.bfloat16), toys.puzzles(60)
    settings = FitSettings(Sampling(4, 4, (0.5,)), "rules", held_out=10, puzzles=100)
    found = GuideFitter(model, puzzles, settings).run()
    assert found.quality.loss <= found.halting.loss
    assert all(torch.isfinite(weight).all() for weight in found.head.parameters())
    assert guide_cost(model, found.head, puzzles.questions, 4).guide_flops > 0
