"""The same functions on a CUDA device; skipped where there is none."""

from copy import deepcopy

import pytest
import torch
from torch import Tensor

from tiltrm.explore import Clock, Exploration, Noise, NoiseFreeFirst, everywhere, explore
from tiltrm.explore.learned import GuideHead, HeadSizes, learned
from tiltrm.explore.noise import INNER, Where
from tiltrm.model.trm import TRM
from tiltrm.tasks import Maze

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


def test_a_learned_guide_scores_as_on_a_cpu(model: TRM, tokens: Tensor) -> None:
    torch.manual_seed(0)
    head = GuideHead(HeadSizes(model.config.width, 16, 8)).requires_grad_(False)
    torch.nn.init.normal_(head.out.weight)
    settings = Exploration(particles=8, outer_steps=1, trigger="never")
    here = explore(model, tokens, settings, guide=learned(model, head))
    for dtype, tolerance in ((torch.float32, 1e-2), (torch.bfloat16, 0.3)):
        there = deepcopy(model).to("cuda", dtype)
        guide = learned(there, deepcopy(head).cuda())
        found = explore(there, tokens, settings, guide=guide)
        assert torch.allclose(here.scores, found.scores, atol=tolerance)


def test_a_bank_on_a_gpu(model: TRM, tokens: Tensor) -> None:
    half = deepcopy(model).to("cuda", torch.bfloat16)
    settings = Exploration(
        particles=4, outer_steps=4, select="best_so_far", target_ess=0.8, noise=0.8
    )
    found = explore(half, tokens, settings, trace=True)
    assert found.trace is not None
    assert torch.equal(found.score, found.trace.scores.flatten(1).amax(-1))


def test_unique_mazes_on_a_gpu() -> None:
    task = Maze(12, unique=True)
    questions, answers = task.fresh(64, torch.Generator("cuda").manual_seed(0))
    assert questions.is_cuda
    assert task.has_one_shortest(questions).all()
    assert task.is_solved(questions, answers).all()
