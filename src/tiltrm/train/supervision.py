"""One supervision step: outer steps, a gradient through the last of them, and the loss."""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from tiltrm.model.base import State
from tiltrm.model.puzzle_ids import cut_rows
from tiltrm.model.trm import TRM
from tiltrm.tasks.base import PAD, exactly_right
from tiltrm.train.carry import Carry
from tiltrm.train.distributed import World
from tiltrm.train.settings import TrainSettings

EMBED_NUMBERS = 36 << 20  # embedded at once in float32, before they take the dtype of the step

AddNoise = Callable[[State], State]


class SupervisionResult(NamedTuple):
    """The result of a supervision step, one value per row."""

    state: State  # (row, position, width), with a gradient
    loss: Tensor  # (row,)
    halt_logit: Tensor  # (row,), detached
    right: Tensor  # (row,) bool: every cell is right


def supervise(
    model: TRM, carry: Carry, depth: int, add_noise: AddNoise, settings: TrainSettings,
    dtype: torch.dtype, puzzle_rows: Tensor | None = None,
) -> SupervisionResult:  # fmt: skip
    """`depth` outer steps from the carried state; only the last one has a gradient."""
    inputs = embed(model, carry.questions, dtype, puzzle_rows)
    state = carry.state
    with torch.no_grad():
        for _ in range(depth - 1):
            state = model.step(inputs, add_noise(state))
    torch.clear_autocast_cache()  # weights cast without a gradient must not serve the last step
    return last_step(model, inputs, add_noise(state), carry.labels, settings)


def last_step(
    model: TRM, inputs: Tensor, state: State, labels: Tensor, settings: TrainSettings
) -> SupervisionResult:
    """The last outer step of a supervision step: cross-entropy + halt_weight x BCE at its end.

    The target of the halting head is whether the answer is right in every cell (paper, sec. 3).
    """
    state = model.step(inputs, state)
    logits, halt = model.decode(state.answer), model.halt_logit(state.answer)
    right = exactly_right(logits.detach().argmax(-1), labels)
    loss = token_loss(logits, labels, settings.loss, settings.label_smoothing)
    loss = loss + settings.halt_weight * halt_loss(halt, right)
    return SupervisionResult(state, loss, halt.detach(), right)


def token_loss(logits: Tensor, labels: Tensor, kind: str, label_smoothing: float) -> Tensor:
    """Mean cross-entropy per puzzle over its labelled cells: (puzzle, cell, id) -> (puzzle,).

    With smoothing e the target is 1 - e on the label and e spread evenly over all ids.
    A cell labelled with the pad id does not count.
    """
    labels = labels.long()
    log_p = log_stablemax(logits) if kind == "stablemax" else torch.log_softmax(logits, dim=-1)
    loss = -log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    if label_smoothing > 0:
        loss = torch.lerp(loss, -log_p.mean(-1), label_smoothing)
    counted = labels != PAD
    return (loss * counted).sum(-1) / counted.sum(-1).clamp(min=1)


def log_stablemax(logits: Tensor) -> Tensor:
    """log s(x) / sum s(x), with s(x) = x + 1 for x >= 0 and 1 / (1 - x) below.

    Each branch is clamped to its side, because the branch not taken would still send NaN
    gradients back where its denominator is zero (at a logit of exactly 1).
    Proved by tests/train/test_losses.py::test_stablemax_gradient_is_finite_at_one.
    """
    log_s = torch.where(
        logits < 0, -torch.log1p(-logits.clamp(max=0.0)), torch.log1p(logits.clamp(min=0.0))
    )
    return log_s - torch.logsumexp(log_s, dim=-1, keepdim=True)


def halt_loss(halt_logit: Tensor, right: Tensor) -> Tensor:
    """Binary cross-entropy of the halting head against 'every cell is right': (puzzle,)."""
    target = right.to(halt_logit.dtype)
    return F.binary_cross_entropy_with_logits(halt_logit, target, reduction="none")


def embed(
    model: TRM, questions: Tensor, dtype: torch.dtype, puzzle_rows: Tensor | None = None
) -> Tensor:
    """The embedded puzzles in `dtype`, made in parts, so that the float32 copy stays small.

    puzzle_rows: (row, number) their rows of the puzzle embedding, if they collect a gradient.
    Proved by tests/train/test_supervision.py::test_embedding_in_parts_changes_nothing.
    """
    positions, width = model.config.positions, model.config.width
    rows = max(1, EMBED_NUMBERS // (positions * width))
    if puzzle_rows is None:
        return torch.cat([model.embed(part).to(dtype) for part in questions.split(rows)])
    prefix = model.config.prefix
    parts = zip(puzzle_rows.split(rows), questions.split(rows), strict=True)
    embedded = (model.embed_after(cut_rows(own, prefix, width), part) for own, part in parts)
    return torch.cat([part.to(dtype) for part in embedded])


def latent_noise(scale: float, batch: int, world: World, generator: Generator) -> AddNoise:
    """Noise on the latent against memorising, its scale drawn uniformly in [0, scale] per puzzle.

    Every process draws for the whole batch and keeps its own rows, so the noise of a row does not
    depend on the number of processes.
    """
    rows = world.rows(batch)

    def add_noise(state: State) -> State:
        latent = state.latent
        if scale == 0.0:
            return state
        device, dtype = latent.device, latent.dtype
        factor = scale * torch.rand(batch, 1, 1, generator=generator, device=device)[rows]
        shape = (batch, *latent.shape[1:])
        noise = torch.randn(shape, generator=generator, device=device, dtype=dtype)[rows]
        return State(state.answer, torch.addcmul(latent, factor.to(dtype), noise))

    return add_noise
