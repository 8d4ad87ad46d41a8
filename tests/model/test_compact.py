"""Compact models: units that contribute nothing are gone, the function is the same."""

from pathlib import Path

import pytest
import torch

from tiltrm.errors import CheckpointError
from tiltrm.model import load, save
from tiltrm.model.base import step
from tiltrm.model.compact import compact, contributions, kept_units
from tiltrm.model.layers import SwiGLU
from tiltrm.model.trm import TRM, TRMConfig


def decayed(units: int) -> SwiGLU:
    """A SwiGLU of 512 hidden units; every one from `units` on has decayed, in a shuffled order."""
    torch.manual_seed(0)
    mlp = SwiGLU(128, 6.0)
    order = torch.randperm(512)
    with torch.no_grad():
        gate, up = mlp.gate_up_proj.weight.chunk(2)
        gate[order[units:]] *= 1e-4
        up[order[units:]] *= 1e-4
    return mlp


def test_contribution_is_that_of_random_inputs() -> None:
    """Random rows: the output of one unit alone is 0.4 to 1 times the estimate."""
    mlp, x, unit = decayed(512).requires_grad_(False), torch.randn(4000, 128), 7
    gate, up = (part[unit] for part in mlp.gate_up_proj.weight.chunk(2))
    hidden = torch.nn.functional.silu(x @ gate) * (x @ up)
    alone = hidden[:, None] * mlp.down_proj.weight[:, unit]
    measured = float(alone.square().sum(1).mean().sqrt()) / 128**0.5
    assert 0.4 < measured / float(contributions(mlp)[unit]) <= 1.0


@pytest.mark.parametrize(("live", "kept"), [(130, 256), (128, 128), (512, 512), (1, 128)])
def test_kept_units_are_the_live_ones_and_whole_groups(live: int, kept: int) -> None:
    mlp = decayed(live)
    units = kept_units(mlp)
    assert len(units) == kept
    assert torch.equal(units, units.sort().values)
    assert set(contributions(mlp).topk(live).indices.tolist()) <= set(units.tolist())


def test_a_compact_layer_is_the_same_function() -> None:
    mlp, x = decayed(200).requires_grad_(False), torch.randn(50, 128)
    before = mlp(x)
    after = compact(mlp)(x)
    assert mlp.down_proj.weight.shape == (128, 256)
    assert float((after - before).norm() / x.norm()) < 1e-4


def test_a_bundled_model_answers_as_before_and_is_not_saved(tmp_path: Path) -> None:
    """An outer step from a state in the middle of a search; bfloat16 is 2e-2 away from it."""
    full, small = load("sudoku-extreme"), load("sudoku-extreme", compact=True)
    sizes = [sum(p.numel() for p in model.parameters()) for model in (full, small)]
    assert sizes[1] < 0.5 * sizes[0]
    with torch.inference_mode():
        inputs = full.embed(torch.randint(1, 11, (1, 81)))
        state = step(full, inputs, full.start(inputs))
        found, truth = step(small, inputs, state), step(full, inputs, state)
    assert float((found.answer - truth.answer).norm() / truth.answer.norm()) < 2e-3
    with pytest.raises(CheckpointError, match="without compact=True"):
        save(small, tmp_path / "small")


def test_a_fresh_model_keeps_all_units() -> None:
    model = TRM(TRMConfig(cells=16, vocabulary=6, width=64, heads=2, prefix=0))
    shapes = [p.shape for p in model.parameters()]
    assert [p.shape for p in compact(model).parameters()] == shapes
