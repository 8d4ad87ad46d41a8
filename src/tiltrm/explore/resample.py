"""Resamplers, and the triggers that wrap them. All draw from float64 cumulative weights."""

from collections.abc import Callable

import torch
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.explore.keys import uniforms
from tiltrm.explore.weights import degenerate, ess

# (log-weights, a key for every puzzle) -> the parent of each slot, (puzzle, particle)
Resampler = Callable[[Tensor, Tensor], Tensor]
# the same -> ancestors, and the weights afterwards
Resample = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def _invert(weights: Tensor, levels: Tensor) -> Tensor:
    """The first particle whose cumulative weight reaches each level in (0, 1)."""
    cdf = weights.cumsum(-1)
    cdf = cdf / cdf[:, -1:].clamp_min(torch.finfo(cdf.dtype).tiny)  # ends at 1 exactly
    return torch.searchsorted(cdf, levels.contiguous()).clamp_max(weights.shape[-1] - 1)


def _weights(log_weights: Tensor) -> Tensor:
    weights = log_weights.double().exp()
    return weights / weights.sum(-1, keepdim=True)


def systematic(log_weights: Tensor, keys: Tensor) -> Tensor:
    """Levels (s + u) / S with one u a puzzle (section 4.3): floor or ceil of S w offspring each.

    Proved by tests/theory/test_resample.py::test_systematic_gives_floor_or_ceil.
    """
    return stratified_at(log_weights, uniforms(keys, 1))


def stratified(log_weights: Tensor, keys: Tensor) -> Tensor:
    """Levels (s + u_s) / S, a u for every slot."""
    return stratified_at(log_weights, uniforms(keys, log_weights.shape[-1]))


def stratified_at(log_weights: Tensor, offsets: Tensor) -> Tensor:
    """Ancestors at the levels (s + offset) / S."""
    particles = log_weights.shape[-1]
    slots = torch.arange(particles, device=log_weights.device)
    return _invert(_weights(log_weights), (slots + offsets) / particles)


def multinomial(log_weights: Tensor, keys: Tensor) -> Tensor:
    """Independent draws from the weights."""
    return _invert(_weights(log_weights), uniforms(keys, log_weights.shape[-1]))


def residual(log_weights: Tensor, keys: Tensor) -> Tensor:
    """floor(S w) copies each, the rest drawn independently from what the floors left."""
    particles = log_weights.shape[-1]
    expected = particles * _weights(log_weights)
    copies = torch.floor(expected + 1e-9)  # 1/S as a float64 may fall just short of 1/S
    slots = torch.arange(particles, device=log_weights.device, dtype=copies.dtype)
    ends = copies.cumsum(-1)
    certain = torch.searchsorted(ends, slots.expand_as(ends).contiguous(), right=True)
    drawn = _invert((expected - copies).clamp_min(0.0), uniforms(keys, particles))
    return torch.where(slots < ends[:, -1:], certain, drawn)


def _resample_where(
    chosen: Tensor, log_weights: Tensor, ancestors: Tensor
) -> tuple[Tensor, Tensor]:
    """New ancestors and weights 1/S where chosen; no change elsewhere."""
    stay = torch.arange(log_weights.shape[-1], device=log_weights.device)
    uniform = torch.log_softmax(torch.zeros_like(log_weights), -1)
    chosen = chosen[:, None]
    return torch.where(chosen, ancestors, stay), torch.where(chosen, uniform, log_weights)


def when_ess_below(fraction: float, resampler: Resampler) -> Resample:
    """Resample the puzzles with ESS / S < fraction (Algorithm 1, lines 16-18); 0 is never."""
    if not 0.0 <= fraction <= 1.0:
        raise SettingsError(f"the ESS fraction must lie in [0, 1], got {fraction}")

    def resample(log_weights: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        poor = ess(log_weights) < fraction * log_weights.shape[-1]
        chosen = poor & ~degenerate(log_weights)  # a dead cloud has no parent to copy
        if chosen.device.type == "cpu" and not chosen.any():
            return _resample_where(chosen, log_weights, chosen[:, None].long())
        return _resample_where(chosen, log_weights, resampler(log_weights, keys))

    return resample


def always(resampler: Resampler) -> Resample:
    """Resample every cloud that has weight left, at every step."""

    def resample(log_weights: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        return _resample_where(~degenerate(log_weights), log_weights, resampler(log_weights, keys))

    return resample


def never(log_weights: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    """No resampling."""
    nobody = torch.zeros(len(log_weights), dtype=torch.bool, device=log_weights.device)
    return _resample_where(nobody, log_weights, nobody[:, None].long())
