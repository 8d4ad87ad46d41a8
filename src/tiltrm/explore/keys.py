"""Keyed randomness: a draw is a function of its key alone, so batches and order cannot matter.

A key is a 64-bit integer. Keys are derived from one another (seed, puzzle, particle, step, site)
with the splitmix64 finaliser, and a draw hashes its key with a counter. All of it is plain torch
on int64, whose arithmetic wraps, and the same on every device.
"""

import math
from functools import lru_cache

import torch
from torch import Tensor

GOLDEN = 0x9E3779B97F4A7C15


def signed(value: int) -> int:
    """The int64 that has the low 64 bits of value."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def mix(x: Tensor) -> Tensor:
    """The splitmix64 finaliser, a bijection of int64; masks make the shifts logical."""
    x = (x ^ ((x >> 30) & ((1 << 34) - 1))) * signed(0xBF58476D1CE4E5B9)
    x = (x ^ ((x >> 27) & ((1 << 37) - 1))) * signed(0x94D049BB133111EB)
    return x ^ ((x >> 31) & ((1 << 33) - 1))


def derive(keys: Tensor, *indices: Tensor | int) -> Tensor:
    """A new key for every (key, index), index after index; indices broadcast against keys."""
    for index in indices:
        if isinstance(index, Tensor):
            keys = mix(keys + (index + 1) * signed(GOLDEN))
        else:
            keys = mix(keys + signed((index + 1) * GOLDEN))
    return keys


def puzzle_keys(tokens: Tensor) -> Tensor:
    """A key for every puzzle from its tokens alone: (puzzle, cell) -> (puzzle,)."""
    cells = torch.arange(tokens.shape[-1], device=tokens.device)
    return mix(derive(mix(cells + 1), tokens.long()).sum(-1))


@lru_cache(maxsize=16)
def _counters(count: int, device: torch.device) -> Tensor:
    return derive(torch.zeros((), dtype=torch.int64, device=device), torch.arange(count).to(device))


def pair_counters(count: int, device: torch.device) -> Tensor:
    """The counters that `box_muller` needs for at least `count` normals."""
    return _counters((count + 1) // 2, device)


def box_muller(keys: Tensor, counters: Tensor) -> Tensor:
    """Two standard normals for every (key, counter): (..., ) and (pair,) -> (..., 2 pair).

    The radius takes the high 31 bits of the hash, so that it is finite and reaches 6.5; the angle
    takes the low 32.
    """
    bits = mix(keys[..., None] ^ counters)
    uniform = (((bits >> 33) & 0x7FFFFFFF).float() + 1.0) * 2.0**-31  # (0, 1]
    radius = torch.sqrt(-2.0 * torch.log(uniform))
    angle = (bits & 0xFFFFFFFF).float() * (math.tau * 2.0**-32)
    return torch.cat((radius * torch.cos(angle), radius * torch.sin(angle)), dim=-1)


def normals(keys: Tensor, count: int) -> Tensor:
    """Independent standard normals: (row,) keys -> (row, count) float32.

    Proved by tests/theory/test_noise.py.
    """
    return box_muller(keys, pair_counters(count, keys.device))[:, :count]


def uniforms(keys: Tensor, count: int) -> Tensor:
    """Independent uniforms, at least 2^-33 away from 0 and 1: (row,) -> (row, count) float64."""
    bits = mix(keys[:, None] ^ _counters(count, keys.device))
    return (((bits >> 32) & 0xFFFFFFFF).double() + 0.5) * 2.0**-32
