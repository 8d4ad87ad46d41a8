"""The learned guide: a small head on the frozen state that says which particles will end right.

It reads both halves of the state, the decoded probabilities, the halt logit and the outer step.
Before it is fitted it is the halting head, bit for bit. `tiltrm fit-guide` fits it.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tiltrm.explore.batching import in_groups
from tiltrm.explore.cloud import Context
from tiltrm.explore.guides import Guide
from tiltrm.model.base import RecursiveModel, State

STATISTICS = 3  # of the decoded probabilities of a cell: largest, entropy, margin
OTHERS = 3  # the halt logit, n / N, and whether the step is known
LARGEST_HALT = 20.0  # halt logits are cut off beyond
PIECE = 1 << 28  # numbers of the state that the head sees at once


@dataclass(frozen=True)
class HeadSizes:
    """The sizes of a guide's head."""

    width: int  # of the model's state
    hidden: int = 128  # channels of a position
    mixed: int = 64  # channels after the mean and the maximum over positions
    outer_steps: int = 48  # N of the clouds that it was fitted on


def cell_statistics(logits: Tensor) -> Tensor:
    """Largest probability, entropy in [0, 1], and margin: (..., cell, vocabulary) -> (..., 3)."""
    shares = torch.softmax(logits.float(), -1)
    first, second = shares.topk(2, -1).values.unbind(-1)
    entropy = torch.special.entr(shares).sum(-1) / math.log(shares.shape[-1])
    return torch.stack((first, entropy, first - second), -1)


def _row_by_row(layer: nn.Linear, rows: Tensor) -> Tensor:
    """layer(rows), on a CPU as one product a row: in one product of few columns the last bits of a
    row depend on its place (see batching.py)."""
    if rows.device.type != "cpu":
        found: Tensor = layer(rows)
        return found
    weight = layer.weight.T.expand(len(rows), -1, -1)
    return torch.bmm(rows[:, None], weight)[:, 0] + layer.bias


class GuideHead(nn.Module):
    """One logit for every trajectory: that it will end right.

    Layer norm of [y, z, statistics] -> linear -> GELU at every position; mean and maximum over
    positions, joined with the halt logit and the step -> two layers, added to the halt logit.
    """

    def __init__(self, sizes: HeadSizes) -> None:
        super().__init__()
        self.sizes = sizes
        features = 2 * sizes.width + STATISTICS
        self.norm = nn.LayerNorm(features)
        self.position = nn.Linear(features, sizes.hidden)
        self.mix = nn.Linear(2 * sizes.hidden + OTHERS, sizes.mixed)
        self.out = nn.Linear(sizes.mixed, 1)
        self.halt_scale = nn.Parameter(torch.ones(()))
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, state: Tensor, logits: Tensor, halt: Tensor, step: Tensor) -> Tensor:
        """The logits, (row,) float32.

        Args:
            state: y and z side by side, (row, position, 2 width).
            logits: Of the decoded cells, (row, cell, vocabulary).
            halt: Halt logits, (row,).
            step: The outer steps, (row,); 0 where the age of a particle is not known.
        """
        ahead = state.shape[1] - logits.shape[1]  # prefix positions come first and have no cell
        cells = F.pad(cell_statistics(logits), (0, 0, ahead, 0)).to(state.dtype)
        seen = F.gelu(self._normed_positions(state, cells))
        pooled = torch.cat((seen.mean(1), seen.amax(1)), -1).float()
        known = (step > 0).float()
        age = (step.float() / self.sizes.outer_steps).clamp(max=1.0)
        opinion = halt.float().clamp(-LARGEST_HALT, LARGEST_HALT) / LARGEST_HALT
        others = torch.stack((opinion, age, known), -1)
        change = _row_by_row(
            self.out, F.gelu(_row_by_row(self.mix, torch.cat((pooled, others), -1)))
        )
        logit: Tensor = self.halt_scale * halt.float() + change[..., 0].float()
        return logit

    def _normed_positions(self, state: Tensor, cells: Tensor) -> Tensor:
        """position(norm([state, cells])) without a copy of the state: (row, position, hidden).

        The norm is linear but for two numbers a position, so it follows the product: with W the
        weights times the norm's, (W x - mean W 1) / deviation + bias.
        Proved by tests/explore/test_learned.py::test_positions_are_normed.
        """
        weight = self.position.weight * self.norm.weight
        bias = F.linear(self.norm.bias, self.position.weight, self.position.bias)
        wide, features = state.shape[-1], weight.shape[1]
        product = F.linear(state, weight[:, :wide]) + F.linear(cells, weight[:, wide:])
        sums = [part.sum(-1, dtype=torch.float32) for part in (state, cells)]
        norms = [
            torch.linalg.vector_norm(part, dim=-1, dtype=torch.float32) for part in (state, cells)
        ]
        mean = (sums[0] + sums[1]) / features
        square = (norms[0].square() + norms[1].square()) / features
        variance = (square - mean.square()).clamp(min=0.0)
        scale = torch.rsqrt(variance + self.norm.eps)[..., None]
        return (product - mean[..., None] * weight.sum(-1)) * scale + bias


def head_logits(model: RecursiveModel, head: GuideHead, state: Tensor, step: Tensor) -> Tensor:
    """The head's logits of trajectories: state (row, position, 2 width), step (row,) -> (row,).

    States in bfloat16 are computed on in bfloat16.
    """
    answer = state[..., : head.sizes.width]
    with torch.no_grad():
        logits, halt = model.decode(answer), model.halt_logit(answer)
    reduced = state.dtype not in (torch.float32, torch.float64)
    with torch.autocast(state.device.type, state.dtype if reduced else None, enabled=reduced):
        found: Tensor = head(state, logits, halt, step)
        return found


def learned(model: RecursiveModel, head: GuideHead, *, staged: bool = False) -> Guide:
    """log sigmoid of the head's logit.

    In a `staged` search, fresh particles join later, so the step does not tell a particle's age;
    the head is then told that it is not known, as it was for half of the clouds of its fit.
    Proved by tests/explore/test_learned.py.
    """

    def score(state: State, context: Context) -> Tensor:
        step = 0 if staged else context.clock.step

        def logits(rows: Tensor) -> Tensor:
            return head_logits(model, head, rows, rows.new_full((len(rows),), step).float())

        size = max(1, PIECE // (2 * state.answer[0].numel()))
        pieces = zip(state.answer.split(size), state.latent.split(size), strict=True)
        found = [in_groups(logits, torch.cat(halves, -1)) for halves in pieces]
        return F.logsigmoid(torch.cat(found))

    return Guide(score)
