"""What timing whole programs shares: waiting for a device, its ceiling, and where the time went."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch


def wait(device: torch.device) -> None:
    """Until everything that was asked of the device is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds(work: Callable[[], Any], device: torch.device) -> float:
    """How long it takes, with all that it started on the device."""
    wait(device)
    begun = time.perf_counter()
    work()
    wait(device)
    return time.perf_counter() - begun


def ceiling(device: torch.device) -> float:
    """FLOP/s of a large matrix product on this device."""
    on_gpu = device.type == "cuda"
    side, dtype = (8192, torch.bfloat16) if on_gpu else (1024, torch.float32)
    a, b = (torch.randn(side, side, device=device, dtype=dtype) for _ in range(2))
    return 2 * side**3 / statistics.median(seconds(lambda: a @ b, device) for _ in range(8))


def profile(work: Callable[[], Any], device: torch.device, rows: int) -> None:
    """Print the kernels that take longest on the device."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as watch

    with watch(activities=[ProfilerActivity.CUDA]) as seen:
        work()
        wait(device)
    events = [event for event in seen.key_averages() if event.self_device_time_total > 0]
    events.sort(key=lambda event: -event.self_device_time_total)
    for event in events[:rows]:
        milliseconds = event.self_device_time_total / 1e3
        print(f"    {milliseconds:8.2f} ms {event.count:5d} x {event.key[:80]}", flush=True)
