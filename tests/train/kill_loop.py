"""Saves a state again and again in a child process and kills that, many times over.

Run by test_kill.py in an interpreter of its own: `python kill_loop.py FOLDER TRIALS`.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import torch
from torch import nn

from tiltrm.train import state
from tiltrm.train.optimiser import EMA
from tiltrm.train.state import TrainState

state.SMALL, state.PIECE_BYTES = 64, 2**12


def fresh() -> TrainState:
    model = nn.Sequential(nn.Linear(32, 32), nn.Linear(32, 32))
    adam = torch.optim.AdamW(model.parameters(), lr=0.0, weight_decay=0.0)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    adam.step()
    return TrainState(model, [adam], EMA(list(model.parameters()), 0.9))


@torch.no_grad()
def fill(live: TrainState, value: int) -> None:
    """Every number that is saved becomes `value`."""
    for parameter, average in zip(live.ema.weights, live.ema.average, strict=True):
        parameter.fill_(value)
        average.fill_(value)
        live.optimisers[0].state[parameter]["exp_avg"].fill_(value)


def save_forever(folder: Path, value: int, done: int) -> None:
    live = fresh()
    while True:
        value += 1
        fill(live, value)
        # Two saves for every step: the second replaces a folder of the same name.
        state.write(folder, {"step": value // 2, "value": value}, state.collect(live))
        os.write(done, value.to_bytes(8, "little"))


def last_value(pipe: int) -> int | None:
    """The last value whose save had returned."""
    data = b""
    while block := os.read(pipe, 2**16):
        data += block
    whole = len(data) // 8 * 8
    return int.from_bytes(data[whole - 8 : whole], "little") if whole else None


def check(folder: Path, at_least: int) -> int:
    saved = state.latest(folder)
    assert saved is not None or at_least == 0, "no state is left"
    if saved is None:
        return 0
    live = fresh()
    value = int(state.restore(saved, live)["value"])
    assert value >= at_least, f"{value} was restored, but {at_least} had been saved"
    for weight, average in zip(live.ema.weights, live.ema.average, strict=True):
        moment = live.optimisers[0].state[weight]["exp_avg"]
        for tensor in (weight, average, moment):
            assert ((tensor - value).abs() < 1e-3 * value).all(), "a mixture of states"
    return value


def duration(folder: Path) -> float:
    """Seconds that a save takes here and now. Also imports what no child should spend life on."""
    live, begun = fresh(), time.monotonic()
    for step in range(4):
        state.write(folder.with_name("elsewhere"), {"step": step}, state.collect(live))
    return (time.monotonic() - begun) / 4


def main(folder: Path, trials: int) -> None:
    torch.set_num_threads(1)
    chance, value = random.Random(0), 0
    usual = duration(folder)
    for _ in range(trials):
        readable, writable = os.pipe()
        child = os.fork()
        if child == 0:
            save_forever(folder, value, writable)
        os.close(writable)
        time.sleep(chance.uniform(0.0, 4 * usual))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        acknowledged = last_value(readable)
        os.close(readable)
        usual *= 1.25 if acknowledged is None else 0.9  # the machine may have become slower
        value = check(folder, value if acknowledged is None else acknowledged)
    print(value)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
