"""Which path a call takes: the kernels where they fit, plain torch everywhere else."""

import functools
import importlib
import importlib.util
import os
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.kernels import plain
from tiltrm.kernels.plain import Noise, Rotary

SHARED_MEMORY = 220 * 1024  # bytes per block that the launches were chosen for: Hopper's
LARGEST = 2**31  # elements; tiles are addressed with 32 bits


def interpreted() -> bool:
    """Whether Triton was told to run its kernels on the CPU, as tests do."""
    return os.environ.get("TRITON_INTERPRET", "0") == "1"


@functools.cache
def _ready() -> bool:
    if importlib.util.find_spec("triton") is None:
        return False
    if not interpreted():
        if not torch.cuda.is_available() or torch.version.hip is not None:
            return False
        device: Any = torch.cuda.get_device_properties()
        if device.major < 9 or device.shared_memory_per_block_optin < SHARED_MEMORY:
            return False
    importlib.import_module("tiltrm.kernels.ops")  # registers the operators
    return True


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def available() -> bool:
    """Whether fused kernels can run here: Triton, and a GPU of Hopper's kind or newer."""
    return _ready()


def _usable(x: Tensor, hidden: int) -> bool:
    """Whether the kernels take this tensor. The interpreter's bfloat16 products are wrong."""
    dtypes = (torch.bfloat16, torch.float16) if x.is_cuda else (torch.float32, torch.float16)
    placed = x.is_cuda or (x.device.type == "cpu" and interpreted())
    shaped = x.shape[-1] % 64 == 0 and hidden % 128 == 0 and 0 < x.numel() < LARGEST
    return placed and shaped and x.dtype in dtypes and available()


def attend(
    x: Tensor, qkv: Tensor, out: Tensor, eps: float, heads: int, rotary: Rotary | None = None
) -> Tensor:
    """rms_norm(x + attention(x)) over channels, turned by the rotary angles where they are given.

    x is (..., position, channel), qkv (3 x channel, channel), out (channel, channel).
    Proved by tests/kernels/test_attention.py.
    """
    positions, width = x.shape[-2:]
    tables = () if rotary is None else rotary
    fitting = all(t.shape == (positions, width // heads) for t in tables)
    if not (_usable(x, 128) and fitting):
        return plain.attend(x, qkv, out, eps, heads, rotary)
    rows = x.contiguous().view(-1, width)
    with torch.autocast(x.device.type, enabled=False):  # x has the precision that is wanted
        parts = _split(F.linear(rows, _as(qkv, x)), tables)
        query, key, value = (
            part.unflatten(-1, (heads, -1)).unflatten(0, (-1, positions)).transpose(1, 2)
            for part in parts
        )  # (batch, head, position, -)
        mixed = F.scaled_dot_product_attention(query, key, value)
        change = F.linear(mixed.transpose(1, 2).reshape(rows.shape), _as(out, x))
        y: Tensor = torch.ops.tiltrm.residual_norm(rows, change, eps)[0]
    return y.view(x.shape)


def _split(qkv: Tensor, tables: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Query, key and value, each (row, channel), the first two turned.

    Where a slope is wanted they get memory of their own, so that qkv can go, and that their slopes
    are put together in the pass that turns them back.
    """
    if not tables:
        return qkv.chunk(3, dim=1)
    angles = [t.contiguous() for t in tables]
    if torch.is_grad_enabled() and qkv.requires_grad:
        parts: tuple[Tensor, ...] = torch.ops.tiltrm.split_heads(qkv, *angles)
        return parts
    torch.ops.tiltrm.rotate_(qkv, *angles)
    return qkv.chunk(3, dim=1)


def mix_tokens(x: Tensor, gate_up: Tensor, down: Tensor, eps: float) -> Tensor:
    """rms_norm(x' + down(silu(gate x') * up x')) over positions, x' = x turned; then turned back.

    x is (..., position, channel), gate_up (2 x hidden, position), down (position, hidden).
    Proved by tests/kernels/test_tokens.py.
    """
    positions = x.shape[-2]
    aligned = positions % 8 == 0 or not x.is_cuda  # other row lengths fault on Hopper: docs/LOG.md
    if not (64 < positions <= 128 and aligned and _usable(x, down.shape[1])):
        return plain.mix_tokens(x, gate_up, down, eps)
    rows = x.contiguous().view(-1, *x.shape[-2:])
    y: Tensor = torch.ops.tiltrm.mix_tokens(rows, _as(gate_up, x), _as(down, x), eps)[0]
    return y.view(x.shape)


def mix_channels(
    x: Tensor, gate_up: Tensor, down: Tensor, eps: float, noise: Noise | None = None
) -> Tensor:
    """rms_norm(x + down(silu(gate x) * up x)) over channels [+ sigma xi(key, site)].

    x is (..., position, channel); with noise, its leading sizes multiply to the number of keys.
    Noise is part of the last pass over x unless a slope is wanted.
    Proved by tests/kernels/test_channels.py.
    """
    if not _usable(x, down.shape[1]):
        y = plain.mix_channels(x, gate_up, down, eps)
        return y if noise is None else y + _noise_like(y, noise)
    rows = x.contiguous().view(-1, x.shape[-1])
    weights = _as(gate_up, x), _as(down, x)
    wanted = torch.is_grad_enabled() and any(t.requires_grad for t in (x, gate_up, down))
    if noise is not None and not wanted:
        noisy: Tensor = torch.ops.tiltrm.mix_channels_noisy(rows, *weights, eps, *_check(x, noise))
        return noisy.view(x.shape)
    clean: Tensor = torch.ops.tiltrm.mix_channels(rows, *weights, eps)[0].view(x.shape)
    return clean if noise is None else clean + _noise_like(clean, noise)


def add_inputs(a: Tensor, b: Tensor, inputs: Tensor) -> Tensor:
    """a + (b + inputs), in this order, inputs being shared by particles: (puzzle, particle, ...).

    Proved by tests/kernels/test_sums.py, bit for bit.
    """
    shapes = {a.shape, (len(a), 1, *a.shape[2:])} if a.dim() > 2 else set()
    fitting = b.shape == a.shape and inputs.shape in shapes
    whole = all(t.is_contiguous() and t.dtype == a.dtype for t in (a, b, inputs))
    slopes = torch.is_grad_enabled() and any(t.requires_grad for t in (a, b, inputs))
    if not (fitting and whole and not slopes and _usable(a, 128)) or torch.compiler.is_compiling():
        return a + (b + inputs)
    from tiltrm.kernels import sums  # here, since it needs Triton

    return sums.add_inputs(a, b, inputs)


@torch.no_grad()
def keyed_normal_(x: Tensor, keys: Tensor, site: int, sigma: float) -> Tensor:
    """x += sigma xi(key, site) in place; x is (trajectory, ...) and contiguous.

    The noise of a trajectory depends on its key, the site and the element, not on the batch.
    Proved by tests/kernels/test_noise.py.
    """
    if not x.is_contiguous():
        raise SettingsError("keyed_normal_ needs a contiguous tensor; call .contiguous() first")
    noise = _check(x, Noise(keys, site, sigma), rows=x.shape[0])
    flat = x.view(x.shape[0], -1)
    if _usable(x, 128) and flat.shape[1] % 4 == 0:
        torch.ops.tiltrm.add_noise(flat, *noise)
    else:
        flat += sigma * plain.normals(keys, site, flat.shape[1])
    return x


def _as(weight: Tensor, x: Tensor) -> Tensor:
    return weight.to(x.dtype).contiguous()


def _noise_like(y: Tensor, noise: Noise) -> Tensor:
    zeros = torch.zeros_like(y.detach(), memory_format=torch.contiguous_format)
    return keyed_normal_(zeros.view(-1, *y.shape[-2:]), *noise).view(y.shape)


def _check(x: Tensor, noise: Noise, rows: int | None = None) -> Noise:
    """Refuse keys that are not one 64-bit integer per trajectory, and sites past 31 bits."""
    rows = x.shape[:-2].numel() if rows is None else rows
    if noise.keys.shape != (rows,) or noise.keys.dtype != torch.int64:
        raise SettingsError(
            f"noise needs one int64 key for each of {rows} trajectories, "
            f"got {noise.keys.dtype} of shape {tuple(noise.keys.shape)}"
        )
    if not 0 <= noise.site < LARGEST:
        raise SettingsError(
            f"a noise site must be in [0, 2^31), got {noise.site}; fold it into keys"
        )
    return noise
