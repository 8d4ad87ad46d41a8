"""Muon for the network's matrices, AdamW for the rest, the rate schedule, and the average (EMA)."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from tiltrm.cpu_precision import avoid_illegal_instructions
from tiltrm.train.normuon import NorMuon
from tiltrm.train.settings import Schedule, TrainSettings


class ParameterGroups(NamedTuple):
    """Every parameter of a model, in exactly one group."""

    matrices: list[nn.Parameter]  # of the network, over channels
    mixing: list[nn.Parameter]  # of the network, over positions
    rest: list[nn.Parameter]  # embedding, prefix, heads


def build_optimisers(model: nn.Module, settings: TrainSettings) -> list[Optimizer]:
    """One or two optimisers. Each parameter group keeps its full rate as `base_rate`."""
    parameters = parameter_groups(model)
    decay, mixing_decay = settings.weight_decay, settings.mixing_weight_decay
    network: list[dict[str, Any]] = [
        {"params": parameters.matrices, "weight_decay": decay},
        {"params": parameters.mixing, "weight_decay": decay if mixing_decay < 0 else mixing_decay},
    ]
    network = [{"lr": settings.rate} | group for group in network if group["params"]]
    heads: dict[str, Any] = {
        "params": parameters.rest, "lr": settings.head_rate,
        "weight_decay": settings.head_weight_decay,
    }  # fmt: skip
    on_gpu = parameters.rest[0].is_cuda
    optimisers: list[Optimizer]
    if settings.optimiser == "adamw":
        optimisers = [torch.optim.AdamW([*network, heads], betas=settings.betas, fused=on_gpu)]
    else:
        if not on_gpu:
            avoid_illegal_instructions()  # Muon multiplies in bfloat16
        optimisers = [
            _muon(network, settings),
            torch.optim.AdamW([heads], betas=settings.betas, fused=on_gpu),
        ]
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group["base_rate"] = group["lr"]
    return optimisers


def _muon(groups: list[dict[str, Any]], settings: TrainSettings) -> Optimizer:
    if settings.optimiser == "normuon":
        return NorMuon(groups, momentum=settings.momentum, ns_steps=settings.newton_schulz,
                       unit_decay=settings.betas[1])  # fmt: skip
    return torch.optim.Muon(
        groups, momentum=settings.momentum, nesterov=True, ns_steps=settings.newton_schulz,
        adjust_lr_fn="original",
    )  # fmt: skip


def parameter_groups(model: nn.Module) -> ParameterGroups:
    """The parameters by kind. Proved by tests/train/test_optimiser.py."""
    found = ParameterGroups([], [], [])
    for name, parameter in model.named_parameters():
        if ".layers." not in name or parameter.ndim != 2:
            found.rest.append(parameter)
        else:
            (found.mixing if ".mlp_t." in name else found.matrices).append(parameter)
    return found


def set_rates(optimisers: list[Optimizer], factor: float) -> None:
    """Set every group's rate to its full rate times the factor."""
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group["lr"] = group["base_rate"] * factor


def rate_factor(schedule: Schedule, step: int, progress: float) -> float:
    """Warm-up by steps, then `hold` at 1, then the shape down to `final` at progress 1."""
    warm = min(1.0, (step + 1) / schedule.warmup_steps) if schedule.warmup_steps else 1.0
    progress = min(1.0, progress)
    if schedule.shape == "constant" or progress <= schedule.hold:
        return warm
    done = (progress - schedule.hold) / (1.0 - schedule.hold)
    left = 1.0 - done if schedule.shape == "linear" else 0.5 * (1.0 + math.cos(math.pi * done))
    return warm * (schedule.final + (1.0 - schedule.final) * left)


class EMA:
    """The exponential moving average of the weights, which is evaluated and saved as the model.

    average <- decay * average + (1 - decay) * weights, with a short warm-up of the decay.
    """

    def __init__(self, weights: list[Tensor], decay: float) -> None:
        self.decay = decay
        self.weights = weights
        self.average = [w.detach().clone() for w in weights]

    def decay_at(self, step: int) -> float:
        """(1 + step) / (10 + step) while that is below the decay, so that the start fades soon."""
        return min(self.decay, (1 + step) / (10 + step))

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Add the weights after `step`, which counts from 0, to the average."""
        weights = [w.detach() for w in self.weights]
        torch._foreach_lerp_(self.average, weights, 1 - self.decay_at(step))

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The model holds the average inside; afterwards it holds its weights, bit for bit."""
        kept = [w.detach().clone() for w in self.weights]
        with torch.no_grad():
            torch._foreach_copy_(self.weights, self.average)
        try:
            yield
        finally:
            with torch.no_grad():
                torch._foreach_copy_(self.weights, kept)
