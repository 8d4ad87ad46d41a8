"""A fused Triton path for CUDA behind plain functions; plain torch is the reference.

`mix_tokens` and `mix_channels` are the two halves of `tiltrm.model.layers.Block`, `fuse` makes a
model use them. Proved by tests/kernels; timed by `python -m benchmarks.kernels`.
"""

from tiltrm.kernels.dispatch import (
    available,
    interpreted,
    keyed_normal_,
    mix_channels,
    mix_tokens,
)
from tiltrm.kernels.fuse import fuse, unfuse
from tiltrm.kernels.plain import Noise

__all__ = [
    "Noise",
    "available",
    "fuse",
    "interpreted",
    "keyed_normal_",
    "mix_channels",
    "mix_tokens",
    "unfuse",
]
