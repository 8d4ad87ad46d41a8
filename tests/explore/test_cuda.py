"""The same functions on a CUDA device; skipped where there is none."""

from copy import deepcopy

import pytest
import torch
from torch import Tensor

from tiltrm.explore import Clock, Exploration, Noise, NoiseFreeFirst, everywhere, explore
from tiltrm.explore.noise import INNER, Where
from tiltrm.model.trm import TRM

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # torch.compile's own imports
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


def test_a_gpu_draws_the_noise_of_a_cpu() -> None:
    noise = Noise(1.0, NoiseFreeFirst(everywhere))
    value, keys = torch.zeros(4, 3, 17, 32), torch.arange(12).view(4, 3) * 7
    where = Where(Clock(3, 9), INNER, torch.arange(3))
    there = where._replace(particles=where.particles.cuda())
    with torch.inference_mode():
        drawn = noise(value.cuda(), keys.cuda(), there).cpu()
        part = noise(value[1:2].cuda(), keys[1:2].cuda(), there).cpu()
    assert torch.allclose(drawn, noise(value, keys, where), atol=1e-4)
    assert torch.equal(part, drawn[1:2])


def test_a_gpu_finds_what_a_cpu_finds(model: TRM, tokens: Tensor) -> None:
    """float32 and a single step: roundings have had no time to grow."""
    settings = Exploration(particles=8, outer_steps=1, trigger="always")
    here = explore(model, tokens, settings, trace=True)
    there = explore(deepcopy(model).cuda(), tokens, settings, trace=True)
    assert torch.allclose(here.scores, there.scores, atol=1e-2)
    assert here.trace is not None
    assert there.trace is not None
    assert torch.equal(here.trace.ancestors, there.trace.ancestors)
    assert here.trace.scores.device == there.trace.scores.device


def test_bfloat16_runs_in_any_chunk(model: TRM, tokens: Tensor) -> None:
    half = deepcopy(model).to("cuda", torch.bfloat16)
    for chunk in (None, 4):
        result = explore(half, tokens, Exploration(particles=8, outer_steps=4), chunk=chunk)
        assert torch.allclose(result.log_weights.exp().sum(-1), torch.ones(6))
        assert not result.degenerate.any()
