"""Whose turn it is: neither old and long puzzles nor new and short ones wait for the others."""

from collections import Counter
from typing import Any

import pytest
import torch

from tiltrm.model.trm import TRM
from tiltrm.serve.floor import Group
from tiltrm.serve.orders import Job, Order
from tiltrm.serve.stepper import Stepper
from tiltrm.serve.tracks import Track, host, track
from tiltrm.tasks import Sudoku

TASK, CPU = Sudoku(2), torch.device("cpu")
LONG, SHORT = 12, 3  # outer steps


class Room:
    """A stepper, and how many steps each client's puzzles were given."""

    def __init__(self, tracks: dict[str, Track], monkeypatch: pytest.MonkeyPatch) -> None:
        self.tracks, self.steps = tracks, Counter[str]()
        self.stepper = Stepper(CPU, lambda: None)
        self.names = {one: name for name, one in tracks.items()}
        take = self.stepper.floor.take

        def counted() -> Group:
            group = take()
            self.steps[self.names[group.track]] += 1
            return group

        monkeypatch.setattr(self.stepper.floor, "take", counted)

    def enter(self, client: str, seed: int = 0) -> Order:
        order = Order(1, lambda: None)
        tokens = TASK.generate(seed)[0]
        self.stepper.enter([Job(self.tracks[client], tokens, 0, order, 0, lambda *_: "done")])
        return order


@pytest.fixture(params=["two models", "one model"])
def room(request: Any, toy: TRM, monkeypatch: pytest.MonkeyPatch) -> Room:
    """An old client with a long puzzle of eight trajectories, and a new one with short puzzles."""
    hosts = [host(name, toy, TASK, CPU, 1) for name in ("first", "second")]
    if request.param == "one model":
        hosts = [hosts[0]] * 2
    sizes: tuple[dict[str, object], ...] = (
        {"method": "guided", "outer_steps": LONG, "particles": 8},
        {"method": "deterministic", "outer_steps": SHORT},
    )
    made = [
        track(one, None, tuple(sorted(size.items())))
        for one, size in zip(hosts, sizes, strict=True)
    ]
    return Room(dict(zip(("old", "new"), made, strict=True)), monkeypatch)


def test_who_came_first_does_not_starve_among_newcomers(room: Room) -> None:
    """Newcomers have always cost less, and there is no end of them."""
    order = room.enter("old")
    for turn in range(2 * LONG):
        room.enter("new", turn)
        room.stepper.turn()
    assert (room.steps["old"], order.outcomes) == (LONG, ["done"])


def test_a_newcomer_does_not_wait_for_who_came_first(room: Room) -> None:
    room.enter("old")
    for _ in range(3):
        room.stepper.turn()
    order = room.enter("new")
    for _ in range(2 * SHORT):
        room.stepper.turn()
    assert (room.steps["new"], order.outcomes) == (SHORT, ["done"])
    assert room.steps["old"] == 3 + SHORT  # nor has it pushed in
