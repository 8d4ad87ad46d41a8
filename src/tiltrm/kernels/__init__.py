"""Fused Triton kernels for CUDA behind plain functions; plain torch is the reference.

`mix_tokens` or `attend`, and `mix_channels`, are the two halves of `tiltrm.model.layers.Block`;
`fuse` makes a model use them. Proved by tests/kernels; timed by `python -m benchmarks.kernels`.
"""

from tiltrm.kernels.dispatch import attend, available, interpreted, mix_channels, mix_tokens
from tiltrm.kernels.fuse import fuse, fused
from tiltrm.model.unfused import unfuse

__all__ = [
    "attend",
    "available",
    "fuse",
    "fused",
    "interpreted",
    "mix_channels",
    "mix_tokens",
    "unfuse",
]
