"""The variance of the log-evidence, estimated from the ancestry of a single run.

Particles whose paths begin at the same ancestor are dependent. With r resamplings before the last
weighing, S particles, last weights W and their first ancestors e, the relative variance of the
evidence is estimated by 1 - (S / (S - 1))^(r + 1) (1 - sum over e of (sum of W with ancestor e)^2)
(Lee and Whiteley, 2018). Times the squared evidence it is unbiased for multinomial resampling;
for other resamplers, which have less variance, it errs on the large side.
"""

import torch
from torch import Tensor

from tiltrm.explore.cloud import Cloud, StepInfo, take


class Ancestry:
    """Follows the first ancestor of every particle. Proved by tests/theory/test_ancestry.py."""

    def __init__(self, *, always: bool = False) -> None:
        """With `always`, every step resamples, even one that happens to change nothing."""
        self.always = always
        self.roots: Tensor | None = None  # (puzzle, particle): before the last resampling
        self.resampled: Tensor | None = None  # (puzzle,): resamplings before the last weighing
        self._after: tuple[Tensor, Tensor] | None = None
        self.log_weights: Tensor | None = None  # (puzzle, particle), of the last weighing

    def add(self, cloud: Cloud, info: StepInfo) -> None:
        """Note one outer step: its report, and the cloud after it."""
        particles = info.ancestors.shape[-1]
        stay = torch.arange(particles, device=info.ancestors.device).expand_as(info.ancestors)
        if self._after is None:
            self._after = stay, torch.zeros_like(info.ess)
        self.roots, self.resampled = self._after
        self.log_weights = info.log_weights
        now = (info.ancestors != stay).any(-1) | (cloud.log_weights != info.log_weights).any(-1)
        now |= self.always
        self._after = take(self.roots, info.ancestors), self.resampled + now

    def relative_variance(self) -> Tensor:
        """Of the evidence, (puzzle,) float64; inf for a single particle or a dead cloud."""
        assert self.roots is not None
        assert self.resampled is not None
        assert self.log_weights is not None
        weights = self.log_weights.double().exp()
        particles = weights.shape[-1]
        if particles < 2:
            return torch.full_like(weights[:, 0], torch.inf)
        families = torch.zeros_like(weights).scatter_add_(1, self.roots, weights)
        apart = 1.0 - families.square().sum(-1)
        power = torch.full_like(apart, particles / (particles - 1)) ** (self.resampled + 1)
        dead = weights.sum(-1) == 0
        return torch.where(dead, torch.inf, 1.0 - power * apart)
