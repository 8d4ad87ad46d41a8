"""A recorded supervision step is the plain one: the same losses, states, gradients, weights."""

import pytest
import torch
from torch import Tensor

from tiltrm.tasks.arc import ARC
from tiltrm.train.demonstrations import read_demonstrations
from tiltrm.train.distributed import World
from tiltrm.train.learner import Learner

from . import arc_toys, toys

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


def test_recorded_equals_plain_with_a_table_of_puzzle_ids() -> None:
    """The rows of every batch reach the recording, and their gradients come back."""
    made = []
    for recorded in (False, True):
        model = {**arc_toys.LARGE["model"], "width": 64}
        settings = arc_toys.table_settings(batch=16, model=model, clip=0.0)
        data = read_demonstrations(ARC, arc_toys.tasks(5), settings)
        own = Learner(settings, data.train, World(), torch.device("cuda"), data.names)
        own.use_graphs = recorded
        followed(own, 4)
        made.append(own)
    plain, recorded_one = (own.table.weights for own in made if own.table is not None)
    assert made[1].graph_step is not None
    touched = plain.abs().sum(-1) > 0
    assert torch.equal(touched, recorded_one.abs().sum(-1) > 0)
    assert touched.any()
    agree = (plain.sign() == recorded_one.sign())[touched].float().mean()
    assert float(agree) > 0.9  # the sign of a small slope may differ in bfloat16
