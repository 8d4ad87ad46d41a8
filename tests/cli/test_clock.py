"""A wall clock that jumps or fails changes no result and ends no run early or late."""

import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.solving.test_tune import tuner

from tiltrm.model import load
from tiltrm.solving.tune import Tuner

Run = Callable[..., tuple[int, str, str]]
LEEWAY = 60.0  # seconds that a run may take beyond its minutes, on a busy machine
pytestmark = pytest.mark.usefixtures("one_thread")


def jumping(size: float) -> Callable[[], float]:
    """A clock that jumps by this at every second reading."""
    real, turn = time.time, itertools.cycle((0.0, size))
    return lambda: real() + next(turn)


def failing() -> float:
    raise OSError("the clock cannot be read")


CLOCKS = {"right": time.time, "ahead": jumping(1e9), "behind": jumping(-1e9), "failing": failing}


def with_clock(monkeypatch: pytest.MonkeyPatch, clock: str, work: Callable[[], Any]) -> Any:
    """The outcome of work under this clock; AssertionError if it takes long."""
    begun = time.monotonic()
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", CLOCKS[clock])
        found = work()
    assert time.monotonic() - begun < LEEWAY
    return found


def test_train_by_steps_gives_the_same_weights(
    tiltrm: Run, csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {}
    for clock in CLOCKS:
        out = tmp_path / clock
        words = ("train", "--task", "sudoku4", "--preset", "toy", "--data", csv, "--out", out,
                 "--set", "model.width=16", "--set", "batch=4", "--device", "cpu", "--steps", "6",
                 "--set", "save_every=0.0", "--set", "restart_every=2")  # fmt: skip
        code, _, err = with_clock(monkeypatch, clock, lambda words=words: tiltrm(*words))
        assert code == 0, err
        found[clock] = load(out / "best").state_dict()
    for clock, weights in found.items():
        assert all(torch.equal(weights[n], value) for n, value in found["right"].items()), clock


@pytest.mark.parametrize("clock", CLOCKS)
def test_train_by_minutes_ends_in_time(
    tiltrm: Run, csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: str
) -> None:
    """Neither at once nor never: it spends about the second that it was given."""
    words = ("train", "--task", "sudoku4", "--preset", "toy", "--data", csv, "--out",
             tmp_path / "run", "--set", "model.width=16", "--set", "batch=4", "--device", "cpu",
             "--minutes", "0.017", "--json")  # fmt: skip
    code, out, err = with_clock(monkeypatch, clock, lambda: tiltrm(*words))
    assert code == 0, err
    assert 0.1 < json.loads(out)["seconds"] < LEEWAY


def test_tune_by_minutes_gives_the_same_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two seconds at a speed that is always the same."""
    monkeypatch.setattr(Tuner, "_speed", lambda self: 25_000.0)
    found = {}
    for clock in CLOCKS:
        by_minutes = tuner(tmp_path / clock, evaluations=None, minutes=0.03)
        assert by_minutes.budget == 45_000
        found[clock] = with_clock(monkeypatch, clock, by_minutes.run).as_mapping()
    assert all(mapping == found["right"] for mapping in found.values())
