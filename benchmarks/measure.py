"""What benchmarks of device code share: a table, its ceilings and clock, timing, errors."""

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

WRONG = 2e-2  # relative error that bfloat16 cannot explain


class Row(NamedTuple):
    """One line of the table; rate is TFLOP/s, or TB/s where bytes were counted."""

    section: str
    name: str
    ms: float | None = None
    rate: float = 0.0
    share: float = 0.0
    error: float | None = None
    note: str = ""

    def __str__(self) -> str:
        ms = "      -" if self.ms is None else f"{self.ms:7.3f}"
        rate = " " * 13 if self.ms is None else f"{self.rate:7.1f} {self.share:5.0%}"
        error = "       -" if self.error is None else f"{self.error:8.1e}"
        return f"{self.section:9} {self.name:40} {ms} {rate} {error} {self.note}".rstrip()


class Check(NamedTuple):
    """Small work and its true result."""

    work: Callable[[], Any]
    truth: Tensor | Sequence[Tensor]


class Table:
    """Rows so far, the two ceilings measured in this run, and the clock."""

    def __init__(self, seconds: float) -> None:
        self.rows: list[Row] = []
        self.flops, self.bytes = 0.0, 0.0  # ceilings, per second
        self.started, self.seconds = time.monotonic(), seconds

    def add(
        self, section: str, name: str, work: Callable[[], Any], *,
        flops: float = 0.0, moved: float = 0.0, check: Check | None = None, wrong: float = WRONG,
    ) -> float:  # fmt: skip
        """Check, then time: milliseconds, infinite where it failed or no time was left."""
        row = Row(section, name)
        try:
            if time.monotonic() - self.started > self.seconds:
                raise TimeoutError("skipped, out of time")
            if check is not None:
                row = row._replace(error=error(poisoned(check.work), check.truth))
            ms = median_ms(work)
            amount, ceiling = (moved, self.bytes) if moved else (flops, self.flops)
            rate = amount / (ms * 1e-3)
            row = row._replace(ms=ms, rate=rate / 1e12, share=rate / ceiling if ceiling else 1.0)
            if row.error is not None and not row.error < wrong:
                row = row._replace(note="WRONG")
        except Exception as failure:
            row = row._replace(note=reason(failure))
        self.rows.append(row)
        print(f"{time.monotonic() - self.started:5.1f} s  {row}", flush=True)
        return float("inf") if row.note or row.ms is None else row.ms

    def print(self) -> None:
        print(f"\n{'section':9} {'variant':40} {'ms':>7} {'T/s':>7} {'share':>5} {'error':>8}")
        print("\n".join(str(row) for row in self.rows), flush=True)


def reason(failure: Exception) -> str:
    """One short line for a table."""
    return f"{type(failure).__name__}: {' '.join(str(failure).split())}"[:110]


def median_ms(work: Callable[[], Any]) -> float:
    """Median device time of one call, the cache cleared between calls; host time without a GPU."""
    if not torch.cuda.is_available():
        begin = time.perf_counter()
        work()
        return 1e3 * (time.perf_counter() - begin)
    from triton.testing import do_bench

    return float(do_bench(work, warmup=10, rep=50, return_mode="median"))


def poisoned(work: Callable[[], Any]) -> Any:
    """Run with fresh memory full of NaN, so that what is not written is seen."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return work()
    finally:
        torch.use_deterministic_algorithms(False)


def error(found: Tensor | Sequence[Tensor], truth: Tensor | Sequence[Tensor]) -> float:
    """The largest |found - truth| / |truth|; NaN stays NaN."""
    left = [found] if isinstance(found, Tensor) else found
    right = [truth] if isinstance(truth, Tensor) else truth
    each = [(a.double() - b).norm() / b.norm() for a, b in zip(left, right, strict=True)]
    return float(torch.stack(each).max())
