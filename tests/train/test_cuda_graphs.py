"""A recorded supervision step is the plain one: the same losses, states, gradients, weights."""

import pytest
import torch
from torch import Tensor

from tiltrm.train.distributed import World
from tiltrm.train.learner import Learner

from . import toys

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


def learner(*, recorded: bool, **changes: object) -> Learner:
    model = {**toys.TINY["model"], "width": 64}
    depth = {"start": [1, 4], "end": [1, 4]}
    settings = toys.settings(batch=32, model=model, depth=depth, rate=0.01, **changes)
    made = Learner(settings, toys.puzzles(), World(), torch.device("cuda"))
    if not recorded:
        made.use_graphs = False
    return made


def followed(made: Learner, steps: int) -> tuple[list[Tensor], list[Tensor]]:
    sums = [made.step(number, 0.5) for number in range(steps)]
    return sums, [p.detach().float().clone() for p in made.model.parameters()]


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_recorded_equals_plain(noise: float) -> None:
    """Several steps of several depths, so that stale inputs, states or gradients would show."""
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    plain, recorded = (learner(recorded=choice, noise=noise) for choice in (False, True))
    ours, weights = followed(recorded, 6)
    theirs, truth = followed(plain, 6)
    assert recorded.graph_step is not None
    assert plain.graph_step is None
    assert torch.allclose(torch.stack(ours), torch.stack(theirs), atol=2e-2)
    for new, old in zip(weights, truth, strict=True):
        assert (new - old).norm() <= 0.1 * old.norm()  # bfloat16 sums in another order
    assert recorded.carry.steps.max() > 1
    assert torch.equal(recorded.carry.questions, plain.carry.questions)
