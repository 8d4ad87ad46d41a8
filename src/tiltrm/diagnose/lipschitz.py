"""Three estimates of rho in Prop. 5.1, the Lipschitz constant of the inner update.

secants          the paper's: the largest |F(z + r u) - F(z)| / r over random unit directions u.
local_norm       the spectral norm of the Jacobian at z, by power iteration. Random directions miss
                 the few that stretch most, so it is larger; it is still a lower bound of rho.
along            |z_(m+1) - z_m| / |z_m - z_(m-1)|: the stretch in the direction of travel.
Proved by tests/diagnose/test_stability.py on maps whose norms are known.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from tiltrm.explore.keys import derive, normals
from tiltrm.model.unfused import MathAttention

PROBES = 16  # the paper's
ITERATIONS = 8
STILL = 1e-6  # a step shorter than this share of the state is rounding

Map = Callable[[Tensor], Tensor]  # (point, position, width) -> the same, point by point


def length(value: Tensor) -> Tensor:
    """Frobenius norm of every point: (..., position, width) -> (...) float32."""
    size: Tensor = torch.linalg.vector_norm(value.float(), dim=(-2, -1))
    return size


def directions(keys: Tensor, like: Tensor) -> Tensor:
    """A random unit vector for every key: (...,) -> (..., position, width) of `like`'s kind."""
    drawn = normals(keys.flatten(), like.shape[-2] * like.shape[-1]).to(like.device)
    drawn /= torch.linalg.vector_norm(drawn, dim=-1, keepdim=True)
    return drawn.view(*keys.shape, *like.shape[-2:]).to(like.dtype)


def secants(
    update: Map, points: Tensor, radius: float, key: Tensor, probes: int = PROBES
) -> Tensor:
    """The largest ratio over `probes` random secants of length `radius` at each point: (point,)."""
    keys = derive(key, torch.arange(len(points))[:, None], torch.arange(probes))
    unit = directions(keys.to(points.device), points)  # (point, probe, position, width)
    there = update((points[:, None] + radius * unit).flatten(0, 1)).view(unit.shape)
    return (length(there - update(points)[:, None]) / radius).amax(1)


def local_norm(update: Map, points: Tensor, key: Tensor, iterations: int = ITERATIONS) -> Tensor:
    """|J(z)|_2 at each point by power iteration on J'J, from below: (point,).

    Each round is a Jacobian-vector product and a vector-Jacobian product; J is never built. As J'u
    is linear in u, its derivative by u in the direction v is J v: backward passes are enough, and
    the network runs once. `update` must have second derivatives: `MathAttention` gives them to
    torch's attention, `tiltrm.model.unfused.unfused_copy` to a fused model.
    """
    vector = directions(derive(key, torch.arange(len(points))).to(points.device), points)
    stretch = torch.zeros(len(points), device=points.device)
    with torch.enable_grad():
        at = points.detach().requires_grad_()
        with MathAttention():
            out = update(at)
        dual = torch.zeros_like(out).requires_grad_()
        (pulled,) = torch.autograd.grad(out, at, dual, create_graph=True)
        for _ in range(iterations):
            (pushed,) = torch.autograd.grad(pulled, dual, vector, retain_graph=True)
            stretch = length(pushed)
            (vector,) = torch.autograd.grad(out, at, pushed, retain_graph=True)
            size = length(vector)[:, None, None].clamp_min(torch.finfo(torch.float32).tiny)
            vector = (vector / size).to(points.dtype)
    return stretch


def along(path: Tensor) -> Tensor:
    """The gain from each step of travel to the next: (point, ...) -> (point - 2,).

    NaN if the path stands still.
    """
    step = length(path[1:] - path[:-1])
    moving = step[:-1] > STILL * length(path[1:-1])
    return torch.where(moving, step[1:] / step[:-1], torch.nan)
