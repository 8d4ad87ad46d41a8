"""Which batch is next: neither old and long puzzles nor new and short ones wait for the others."""

from collections import Counter
from typing import Any

import pytest
import torch

from tiltrm.model.trm import TRM
from tiltrm.serve.runner import BatchRunner, PendingPuzzle, PendingRequest
from tiltrm.serve.scheduler import SharedSearch, WaitingBatch, load_model, shared_search
from tiltrm.tasks import Sudoku

TASK, CPU = Sudoku(2), torch.device("cpu")
LONG, SHORT = 12, 3  # outer steps


class CountedRunner:
    """A runner, and how many steps the puzzles of each client were given."""

    def __init__(self, searches: dict[str, SharedSearch], monkeypatch: pytest.MonkeyPatch) -> None:
        self.searches, self.steps = searches, Counter[str]()
        self.runner = BatchRunner(CPU, lambda: None)
        names = {shared: name for name, shared in searches.items()}
        take = self.runner.scheduler.take

        self.seconds = {"old": 1.0, "new": 1.0}  # of a step
        self.last = ""
        note = self.runner.scheduler.note

        def counted() -> WaitingBatch:
            batch = take()
            self.last = names[batch.shared]
            self.steps[self.last] += 1
            return batch

        monkeypatch.setattr(self.runner.scheduler, "take", counted)
        monkeypatch.setattr(self.runner.scheduler, "note", lambda _: note(self.seconds[self.last]))

    def add(self, client: str, seed: int = 0) -> PendingRequest:
        request = PendingRequest(1, lambda: None)
        tokens = TASK.generate(seed)[0]
        shared = self.searches[client]
        self.runner.add([PendingPuzzle(shared, tokens, 0, request, 0, lambda *_: "done")])
        return request


@pytest.fixture(params=["two models", "one model"])
def counted(request: Any, toy: TRM, monkeypatch: pytest.MonkeyPatch) -> CountedRunner:
    """An old client with a long puzzle of eight trajectories, and a new one with short puzzles."""
    models = [load_model(name, toy, TASK, CPU, 1) for name in ("first", "second")]
    if request.param == "one model":
        models = [models[0]] * 2
    sizes: tuple[dict[str, object], ...] = (
        {"method": "guided", "outer_steps": LONG, "particles": 8},
        {"method": "deterministic", "outer_steps": SHORT},
    )
    made = [
        shared_search(loaded, None, tuple(sorted(size.items())))
        for loaded, size in zip(models, sizes, strict=True)
    ]
    return CountedRunner(dict(zip(("old", "new"), made, strict=True)), monkeypatch)


def test_an_old_puzzle_does_not_starve_among_new_ones(counted: CountedRunner) -> None:
    """New puzzles have always cost less, and they never stop coming."""
    request = counted.add("old")
    for turn in range(2 * LONG):
        counted.add("new", turn)
        counted.runner.step()
    assert (counted.steps["old"], request.outcomes) == (LONG, ["done"])


def test_a_new_puzzle_does_not_wait_for_an_old_one(counted: CountedRunner) -> None:
    counted.add("old")
    for _ in range(3):
        counted.runner.step()
    request = counted.add("new")
    for _ in range(2 * SHORT):
        counted.runner.step()
    assert (counted.steps["new"], request.outcomes) == (SHORT, ["done"])
    assert counted.steps["old"] == 3 + SHORT  # steps went in turn


def test_a_short_puzzle_waits_for_one_long_step_at_most(counted: CountedRunner) -> None:
    """A step of the old puzzle takes as long as all steps of a new one."""
    counted.seconds["old"] = 2.0 * SHORT
    counted.add("old")
    counted.runner.step()
    for seed in range(3):
        before = counted.steps["old"]
        request = counted.add("new", seed)
        while request.outcomes == [None]:
            counted.runner.step()
        assert counted.steps["old"] - before <= 1
