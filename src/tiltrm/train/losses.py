"""What training minimises: cross-entropy of the cells and of the halting head."""

import torch
import torch.nn.functional as F
from torch import Tensor

from tiltrm.tasks.base import PAD


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


def halt_loss(halt_logit: Tensor, right: Tensor) -> Tensor:
    """Binary cross-entropy of the halting head against 'every cell is right': (puzzle,)."""
    target = right.to(halt_logit.dtype)
    return F.binary_cross_entropy_with_logits(halt_logit, target, reduction="none")
