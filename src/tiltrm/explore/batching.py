"""Batching: how many trajectories to step at once, and how to keep their results independent.

On a CPU the last bits of a matrix product depend on how many rows share the call and on how many
threads split it: a Linear with one output differs between 15 and 16 rows, and with 3 threads the
whole network differs between 15 and 16 trajectories. With one thread per operation the rows of the
network are exact in any batch, so each worker thread here steps trajectories of its own; heads,
which see one row per trajectory, are called on groups of one fixed size.
Proved by tests/theory/test_invariance.py and tests/explore/test_batching.py.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from tiltrm.errors import DeviceError

Part = TypeVar("Part")
GROUP = 16  # trajectories in one call of a head
BLOCK = 3 << 18  # numbers in one tensor of a block: 3 MiB, 17 Sudoku trajectories, near the cache
TENSORS = 40  # tensors of half a state's size that one trajectory needs at its peak, roughly
CUDA_NUMBERS = 1 << 29  # numbers in half a state beyond which a GPU gains nothing from more
STATES = 5  # halves of a state that exist at once during a step: both, before and after, and one
CONTAINER_LIMITS = (
    "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)  # fmt: skip
MEMORY_SHARE = 0.5  # share of the free memory that a batch may take


def in_groups(head: Callable[[Tensor], Tensor], value: Tensor) -> Tensor:
    """head(value), on a CPU always over exactly GROUP trajectories, the last group padded.

    value: (puzzle, particle, position, width); head: (row, position, width) -> (row, ...).
    """
    rows = value.flatten(0, 1)
    out = head(rows) if value.device.type != "cpu" else torch.cat(list(_groups(head, rows)))
    return out.view(*value.shape[:2], *out.shape[1:])


def _groups(head: Callable[[Tensor], Tensor], rows: Tensor) -> Iterator[Tensor]:
    for group in rows.split(GROUP):
        missing = GROUP - len(group)
        full = torch.cat((group, group[:1].expand(missing, -1, -1))) if missing else group
        yield head(full)[: len(group)]


def blocks(puzzles: int, particles: int, size: int, workers: int) -> list[tuple[slice, slice]]:
    """Cut a batch of clouds into (puzzles, particles) blocks: cache-sized, one a worker or more."""
    rows = max(1, min(BLOCK // size, -(-puzzles * particles // workers)))
    tall, wide = max(1, rows // particles), min(rows, particles)
    return [
        (slice(p, p + tall), slice(s, s + wide))
        for p in range(0, puzzles, tall)
        for s in range(0, particles, wide)
    ]


class _Threads:
    """The number of threads that torch had before the first `one_thread_each` was entered."""

    lock = threading.Lock()
    users = 0
    before = 1
    own = threading.local()  # `alone`: whether a thread is inside `one_worker`


@contextmanager
def one_thread_each() -> Iterator[int]:
    """Make torch use one thread per operation; yields the number of worker threads to use.

    torch's setting is part global and part per thread. Callers may overlap (a server's requests),
    so the user's setting is read by the first of them only.
    """
    with _Threads.lock:
        if _Threads.users == 0:
            _Threads.before = torch.get_num_threads()
        _Threads.users += 1
        threads = _Threads.before
        torch.set_num_threads(1)
    try:
        yield 1 if _alone() else threads
    finally:
        with _Threads.lock:
            _Threads.users -= 1
            torch.set_num_threads(threads)


def computing() -> bool:
    """Whether any thread of this process is inside `one_thread_each`."""
    return _Threads.users > 0


@contextmanager
def one_worker() -> Iterator[None]:
    """Let this thread do its own work, beside the worker threads and not in them.

    A long computation inside does not keep the worker threads from other callers.
    Proved by tests/explore/test_batching.py::test_one_worker_leaves_the_pool_alone.
    """
    _Threads.own.alone = True
    try:
        yield
    finally:
        _Threads.own.alone = False


def _alone() -> bool:
    return getattr(_Threads.own, "alone", False)


def single_threaded(device: torch.device) -> AbstractContextManager[int]:
    """`one_thread_each` on a CPU; nothing on other devices. Yields the number of workers."""
    return one_thread_each() if device.type == "cpu" else nullcontext(1)


def worker_threads() -> int:
    """The workers that `one_thread_each` yielded, if one is open; else 1."""
    return _Threads.before if _Threads.users and not _alone() else 1


@lru_cache(maxsize=1)
def workers(count: int) -> ThreadPoolExecutor:
    """A pool whose threads each use one thread per operation; all are started on return."""
    pool = ThreadPoolExecutor(count, "tiltrm", initializer=torch.set_num_threads, initargs=(1,))
    ready = threading.Barrier(count)
    list(pool.map(lambda _: ready.wait(), range(count)))
    return pool


def free_memory(device: torch.device) -> int:
    """Free bytes on the device; 2 GiB where the system does not tell."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 1 << 31


def require_memory(state: Tensor, particles: int) -> None:
    """Raise MemoryError if clouds of so many particles cannot fit, whatever is freed for them.

    Linux grants memory that it does not have and kills the process that uses it, so an allocation
    does not fail by itself. state: half a state of the batch, (puzzle, particle, position, width).
    Proved by tests/explore/test_batching.py.
    """
    if state.device.type != "cpu":
        return  # CUDA's allocator raises by itself
    needed = STATES * len(state) * particles * state[0, 0].numel() * state.element_size()
    if needed > total_memory():
        raise MemoryError(f"clouds of {particles} particles need {needed / 1e9:.0f} GB")


def total_memory() -> int:
    """Bytes that processes may use here: of the machine, or of the container if that is less."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return sys.maxsize
    for path in CONTAINER_LIMITS:
        with suppress(OSError, ValueError):  # no container, or a limit of "max"
            total = min(total, int(Path(path).read_text()))
    return total


def chunk_size(inputs: Tensor, particles: int, threads: int) -> int:
    """Puzzles to explore at once, for `inputs` (puzzle, ..., position, width).

    A CPU is fastest with a few cache-sized blocks per thread, a GPU with all that fits.
    """
    numbers = inputs.shape[-2] * inputs.shape[-1]
    fits = MEMORY_SHARE * free_memory(inputs.device) / (TENSORS * numbers * inputs.element_size())
    best = threads * max(1, BLOCK // numbers)
    if inputs.device.type == "cuda":
        best = CUDA_NUMBERS // numbers
    return max(1, int(min(fits, best)) // particles)


def too_small() -> DeviceError:
    """The error for a single puzzle that does not fit in memory."""
    return DeviceError(
        "one puzzle must fit in memory, and this one did not; use fewer particles, "
        "a smaller model or a larger device"
    )


def out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out."""
    known = isinstance(error, torch.OutOfMemoryError | MemoryError)
    words = ("not enough memory", "can't allocate memory")  # the allocators of Windows and Linux
    return known or (isinstance(error, RuntimeError) and any(w in str(error) for w in words))


def in_chunks(total: int, size: int, run: Callable[[slice], Part]) -> list[Part]:
    """run(part) for consecutive parts of 0..total, halving their size when memory runs out."""
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
