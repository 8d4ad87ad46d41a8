"""Evaluates in a child process and kills that, again and again, until all shards are there.

Run by test_kill.py in an interpreter of its own: `python kill_loop.py MODEL DATA FOLDER`. Prints
how often it killed, and how often while a shard was half-written. This process never computes
itself before the last child is gone: threads do not survive a fork.
"""

import math
import os
import random
import select
import signal
import struct
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import pyarrow.parquet  # noqa: F401  # so that no child spends its life on that
import torch

from tiltrm.evaluate import Job, Store, eval_target, plans, run

with suppress(ModuleNotFoundError):  # pyarrow imports it where it is there
    import pandas  # noqa: F401

CPU = torch.device("cpu")
PIECES = 16  # in which the disk takes a file


def fail(sentence: str) -> NoReturn:
    raise AssertionError(sentence)


def write_slowly(path: Path, data: bytes) -> int:
    """As a slow disk does, so that kills fall into the midst of it."""
    step = len(data) // PIECES + 1
    with path.open("wb", buffering=0) as file:
        for first in range(0, len(data), step):
            file.write(data[first : first + step])
            time.sleep(0.001)
    return len(data)


def wanted(model: str, data: str) -> list[Job]:
    target = eval_target(model, data, "Test")
    settings = {"outer_steps": 2, "particles": 2, "cells": True, "by_step": True}
    return [
        *plans.jobs(target, "deterministic", {"outer_steps": 2}, folds=6),
        *plans.jobs(target, "guided", settings, folds=6, seeds=6),
    ]


def start_child(jobs: list[Job], folder: Path) -> tuple[int, int]:
    """A child that does what is missing: its id, and a pipe that says where it is."""
    readable, writable = os.pipe()
    child = os.fork()
    if child:
        os.close(writable)
        return child, readable
    code = 1
    try:
        store = Store(folder, fail)  # a damaged shard is the end of the test
        run(jobs, store, CPU, lambda done, of: os.write(writable, struct.pack("d", done)) and None)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def last_place(pipe: int) -> float:
    """How far the child had come, in jobs; the one it was at counts in part."""
    data = b""
    while block := os.read(pipe, 2**16):
        data += block
    os.close(pipe)
    return float(struct.unpack_from("d", data, len(data) - 8)[0]) if data else 0.0


def stored(folder: Path) -> int:
    return len(list(folder.glob("*.parquet")))


def trial(jobs: list[Job], folder: Path, patience: float) -> bool:
    """Let a child compute so long and kill it; whether there was still something to kill."""
    before = stored(folder)
    child, pipe = start_child(jobs, folder)
    select.select([pipe], [], [])  # it computes now, or is done
    time.sleep(patience)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    place, after = last_place(pipe), stored(folder)
    assert status in (0, signal.SIGKILL), f"the child ended with {status}"
    # It works in order, so it had begun ceil(place) jobs, and all but the last must be stored.
    assert after - before >= math.ceil(place) - 1, f"{after - before} shards at job {place}"
    return status != 0


def main(model: str, data: str, folder: Path) -> None:
    torch.set_num_threads(1)
    Path.write_bytes = write_slowly  # type: ignore[assignment, method-assign]
    jobs = wanted(model, data)
    folder.mkdir()
    begun = time.monotonic()
    child, pipe = start_child(jobs, folder.with_name("elsewhere"))
    last_place(pipe)
    assert os.waitpid(child, 0)[1] == 0
    whole = time.monotonic() - begun
    chance, kills = random.Random(0), 0
    while trial(jobs, folder, chance.uniform(0.0, whole / 10)):
        kills += 1
        assert kills < 1000, "it never comes to an end"
    print(kills, len(list(folder.glob("*.part"))))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
