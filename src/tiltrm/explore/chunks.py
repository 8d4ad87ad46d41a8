"""How many puzzles to explore at once, and what to do when they turn out to be too many."""

import os
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

from tiltrm.errors import DeviceError
from tiltrm.explore.rows import BLOCK

Part = TypeVar("Part")
TENSORS = 40  # tensors the size of a state's half that one trajectory needs at its peak, roughly
CUDA_NUMBERS = 1 << 29  # beyond this many numbers in half a state a GPU is busy anyway
SHARE = 0.5  # of the free memory


def free_memory(device: torch.device) -> int:
    """Bytes that a run may count on."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):  # not every system says
        return 1 << 31


def chunk_size(inputs: Tensor, particles: int, threads: int) -> int:
    """Puzzles to explore at once, for `inputs` (puzzle, ..., position, width).

    On a CPU a few cache-sized blocks for every thread are fastest; a GPU wants all that fits.
    """
    numbers = inputs.shape[-2] * inputs.shape[-1]
    fits = SHARE * free_memory(inputs.device) / (TENSORS * numbers * inputs.element_size())
    best = threads * max(1, BLOCK // numbers)
    if inputs.device.type == "cuda":
        best = CUDA_NUMBERS // numbers
    return max(1, int(min(fits, best)) // particles)


def too_small() -> DeviceError:
    """What to say when not even one puzzle fits."""
    return DeviceError(
        "one puzzle must fit in memory, and this one did not; use fewer particles, "
        "a smaller model or a larger device"
    )


def out_of_memory(error: BaseException) -> bool:
    """Whether this is how torch says that memory ran out."""
    known = isinstance(error, torch.OutOfMemoryError | MemoryError)
    return known or (isinstance(error, RuntimeError) and "not enough memory" in str(error))


def in_chunks(total: int, size: int, run: Callable[[slice], Part]) -> list[Part]:
    """run over 0..total in chunks, halving them each time memory runs out.

    Proved by tests/explore/test_chunks.py.
    """
    parts: list[Part] = []
    start = 0
    while start < total:
        try:
            parts.append(run(slice(start, min(start + size, total))))
            start += size
            continue
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            if size == 1:
                raise too_small() from error
        # Outside the handler, so that the failed chunk's tensors are gone before the next try.
        size = max(1, min(size, total - start) // 2)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    return parts
