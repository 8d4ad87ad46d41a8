"""Data-parallel training: every process draws the same global batch and takes its own rows."""

import os
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn

from tiltrm.device import choose
from tiltrm.errors import SettingsError


class World(NamedTuple):
    """This process among the processes of the run, as torchrun describes it."""

    rank: int = 0
    size: int = 1

    @property
    def is_leader(self) -> bool:
        """Whether this process writes files and prints."""
        return self.rank == 0

    def rows(self, batch: int) -> slice:
        """The rows of a global batch that belong to this process."""
        if batch % self.size:
            raise SettingsError(f"batch {batch} must be a multiple of the {self.size} processes")
        share = batch // self.size
        return slice(self.rank * share, (self.rank + 1) * share)


SINGLE_PROCESS = World()


def join(device: str) -> tuple[World, torch.device]:
    """Join the processes that torchrun started, if any, and choose the device of this one.

    'auto' is a GPU where there is one; with several processes each takes its own.
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    rank = int(os.environ.get("RANK", "0")) if size > 1 else 0
    where = choose(device, int(os.environ.get("LOCAL_RANK", rank)) if size > 1 else None)
    if where.type == "cuda":
        torch.cuda.set_device(where)
    if size > 1 and not dist.is_initialized():
        dist.init_process_group("nccl" if where.type == "cuda" else "gloo")
    return World(rank, size), where


def leave() -> None:
    """Leave the process group, so that no other process waits for this one."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


def average_gradients(model: nn.Module, world: World) -> None:
    """Replace every gradient by its mean over the processes, in one message."""
    if world.size == 1:
        return
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    flat = mean(torch.cat([g.reshape(-1) for g in gradients]), world)
    for gradient, part in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
        gradient.copy_(part.view_as(gradient))


def broadcast(value: float, world: World, device: torch.device) -> float:
    """The leader's number, on every process."""
    if world.size == 1:
        return value
    held = torch.tensor(value, dtype=torch.float64, device=device)
    dist.broadcast(held, 0)
    return float(held)


def any_process(flag: bool, world: World, device: torch.device) -> bool:
    """Whether the flag is true on at least one process."""
    return bool(total(torch.tensor(float(flag), device=device), world) > 0)


def gather(values: Tensor, world: World) -> Tensor:
    """The rows of all processes, those of the leader first."""
    if world.size == 1:
        return values
    parts = [torch.empty_like(values) for _ in range(world.size)]
    dist.all_gather(parts, values.contiguous())
    return torch.cat(parts)


def total(values: Tensor, world: World) -> Tensor:
    """The sum of the values over the processes."""
    if world.size > 1:
        dist.all_reduce(values)
    return values


def mean(values: Tensor, world: World) -> Tensor:
    """The mean of the values over the processes."""
    return total(values, world) / world.size
