"""One supervision step: recurse, the last outer step with a gradient, and take the loss."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from tiltrm.model.base import State
from tiltrm.model.trm import TRM
from tiltrm.tasks.base import exactly_right
from tiltrm.train import losses
from tiltrm.train.carry import Carry
from tiltrm.train.distributed import World
from tiltrm.train.settings import Settings

EMBED_NUMBERS = 36 << 20  # embedded at once in float32, before they take the dtype of the step

Disturb = Callable[[State], State]


class Outcome(NamedTuple):
    """What a supervision step gives, one value a row."""

    state: State  # (row, position, width), with a gradient
    loss: Tensor  # (row,)
    halt_logit: Tensor  # (row,), detached
    right: Tensor  # (row,) bool


def supervise(
    model: TRM, live: Carry, depth: int, disturb: Disturb, settings: Settings, dtype: torch.dtype
) -> Outcome:
    """`depth` outer steps from the carried state, cross-entropy + halt_weight x BCE at their end.

    The target of the halting head is whether the answer is right in every cell (paper, sec. 3).
    """
    inputs = embed(model, live.questions, dtype)
    state = live.state
    with torch.no_grad():
        for _ in range(depth - 1):
            state = model.step(inputs, disturb(state))
    torch.clear_autocast_cache()  # weights cast without a gradient must not serve the last step
    return conclude(model, inputs, disturb(state), live.labels, settings)


def conclude(
    model: TRM, inputs: Tensor, state: State, labels: Tensor, settings: Settings
) -> Outcome:
    """The last outer step of a supervision step, and the loss at its end."""
    state = model.step(inputs, state)
    logits, halt = model.decode(state.answer), model.halt_logit(state.answer)
    right = exactly_right(logits.detach().argmax(-1), labels)
    loss = losses.token_loss(logits, labels, settings.loss, settings.label_smoothing)
    loss = loss + settings.halt_weight * losses.halt_loss(halt, right)
    return Outcome(state, loss, halt.detach(), right)


def embed(model: TRM, questions: Tensor, dtype: torch.dtype) -> Tensor:
    """The embedded puzzles in `dtype`. The whole batch never exists in float32, where that is big.

    Proved by tests/train/test_supervision.py::test_embedding_in_parts_changes_nothing.
    """
    positions, width = model.config.positions, model.config.width
    rows = max(1, EMBED_NUMBERS // (positions * width))
    return torch.cat([model.embed(part).to(dtype) for part in questions.split(rows)])


def latent_noise(scale: float, batch: int, world: World, generator: Generator) -> Disturb:
    """Noise on the latent against memorising, its scale drawn uniformly in [0, scale] per puzzle.

    Every process draws for the whole batch and keeps its rows, so that their number is no matter.
    """
    rows = world.rows(batch)

    def disturb(state: State) -> State:
        latent = state.latent
        if scale == 0.0:
            return state
        device, dtype = latent.device, latent.dtype
        factor = scale * torch.rand(batch, 1, 1, generator=generator, device=device)[rows]
        shape = (batch, *latent.shape[1:])
        noise = torch.randn(shape, generator=generator, device=device, dtype=dtype)[rows]
        return State(state.answer, torch.addcmul(latent, factor.to(dtype), noise))

    return disturb
