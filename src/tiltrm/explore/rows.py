"""Evaluating many trajectories so that none of them notices the others.

On a CPU the last bits of a matrix product depend on how many rows share the call and on how many
threads split it: a Linear with one output differs between 15 and 16 rows, and with 3 threads the
whole network differs between 15 and 16 trajectories. With one thread to an operation the rows of
the network are exact in any batch, so each worker thread here takes trajectories of its own and
runs them alone; heads, which see one row a trajectory, are called on groups of one fixed size.
Proved by tests/theory/test_invariance.py.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache

import torch
from torch import Tensor

GROUP = 16  # trajectories in one call of a head
BLOCK = 3 << 18  # numbers in one tensor of a block: 3 MiB, 17 Sudoku trajectories, near the cache


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
    """How many threads torch had before anybody inside `one_thread_each` asked for one."""

    lock = threading.Lock()
    users = 0
    before = 1


@contextmanager
def one_thread_each() -> Iterator[int]:
    """Inside, torch uses one thread to an operation; yields how many workers that leaves.

    torch's setting is part global and part per thread, so callers that overlap (a server's
    requests) must not take one another's 1 for what the user had set.
    """
    with _Threads.lock:
        if _Threads.users == 0:
            _Threads.before = torch.get_num_threads()
        _Threads.users += 1
        threads = _Threads.before
        torch.set_num_threads(1)
    try:
        yield threads
    finally:
        with _Threads.lock:
            _Threads.users -= 1
            torch.set_num_threads(threads)


@lru_cache(maxsize=1)
def workers(count: int) -> ThreadPoolExecutor:
    """A pool whose threads each use one thread to an operation, all started when it returns."""
    pool = ThreadPoolExecutor(count, "tiltrm", initializer=torch.set_num_threads, initargs=(1,))
    ready = threading.Barrier(count)
    list(pool.map(lambda _: ready.wait(), range(count)))
    return pool
