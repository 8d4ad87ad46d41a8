"""Which batch is next: neither old and long puzzles nor new and short ones wait for the others."""

from collections import Counter
from typing import Any

import pytest
import torch

from tiltrm.explore.batches import Batch
from tiltrm.explore.cloud import make_problem
from tiltrm.explore.plan import Adaptive, parse_stages
from tiltrm.explore.running import run_search
from tiltrm.explore.search import adaptive_search
from tiltrm.model.base import State
from tiltrm.model.trm import TRM
from tiltrm.serve.quotas import REMEMBERED, RecentService
from tiltrm.serve.runner import BatchRunner, PendingPuzzle, PendingRequest
from tiltrm.serve.scheduler import (
    FIRST_ROWS,
    LoadedModel,
    Scheduler,
    SharedSearch,
    WaitingBatch,
    join,
    load_model,
    shared_search,
)
from tiltrm.solving import build_search, plan_clues, plan_views, solve_texts
from tiltrm.tasks import Sudoku

from .service import serving

PUZZLE = "1...3..2.1....2."
TASK, CPU = Sudoku(2), torch.device("cpu")
LONG, SHORT = 12, 3  # outer steps


class CountedRunner:
    """A runner, and how many steps the puzzles of each client were given."""

    def __init__(self, searches: dict[str, SharedSearch], monkeypatch: pytest.MonkeyPatch) -> None:
        self.searches, self.steps = searches, Counter[str]()
        self.runner = BatchRunner(CPU, lambda _: None, turn_seconds=1e9)
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
    models = [load_model(name, toy, TASK, CPU, 2) for name in ("first", "second")]
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


def halves_of(shared: SharedSearch, model: TRM, steps: int) -> list[WaitingBatch]:
    """Two batches of one puzzle each that have taken so many steps."""
    search, halves = shared.search, []
    for seed in range(2):
        tokens = TASK.generate(seed)[0][None]
        with torch.inference_mode():
            rest: Batch | None = Batch(torch.tensor([seed]), make_problem(model, tokens, 1))
            for _ in range(steps):
                assert rest is not None
                rest = search.finish(search.propose(search.open(rest))).rest
        assert rest is not None
        halves.append(WaitingBatch(shared, rest))
    return halves


def test_joined_batches_keep_what_each_has_visited(toy: TRM) -> None:
    """Their later steps are those that each takes alone."""
    settings = {"method": "guided", "outer_steps": 6, "particles": 4, "select": "best_so_far"}
    loaded = load_model("toy", toy, TASK, CPU, 1)
    halves = halves_of(shared_search(loaded, None, tuple(sorted(settings.items()))), toy, 2)
    banks = [half.batch.cloud.bank for half in halves if half.batch.cloud is not None]
    whole = join(halves).batch.cloud
    assert whole is not None
    assert whole.bank is not None
    for column, *parts in zip(whole.bank, *(bank for bank in banks if bank), strict=True):
        assert torch.equal(column, torch.cat(parts))


def test_joined_batches_guess_as_each_alone(toy: TRM) -> None:
    plan = Adaptive(parse_stages("4x2 3x2?1"), noise=1.0, symmetric_views=True)
    seen, clues = plan_views(plan, TASK, toy, CPU), plan_clues(plan, TASK)
    search = adaptive_search(toy, plan, {}, views=seen, clues=clues)
    shared = SharedSearch(load_model("toy", toy, TASK, CPU, 1), TASK, search)
    halves = halves_of(shared, toy, 2)  # the votes are counted, nothing is guessed yet
    whole = [step.cloud.state.answer for step in search.run(join(halves).batch)]
    alone = [[step.cloud.state.answer for step in search.run(half.batch)] for half in halves]
    assert len(whole) == 2
    for together, *parts in zip(whole, *alone, strict=True):
        assert torch.equal(together, torch.cat(parts))


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


class CountingModel(TRM):
    """Counts the trajectories of its inner updates by the width of their clouds."""

    def __init__(self, toy: TRM) -> None:
        super().__init__(toy.config)
        self.load_state_dict(toy.state_dict())
        self.eval().requires_grad_(False)
        self.task = toy.task
        self.calls: list[int] = []

    def refine(self, inputs: torch.Tensor, state: State) -> torch.Tensor:
        self.calls.append(state.answer.shape[:-2].numel())
        return super().refine(inputs, state)


def test_a_small_request_waits_for_no_whole_step_of_a_huge_cloud(
    toy: TRM, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets its turns inside the first step of 200 particles."""
    model = CountingModel(toy)
    loaded = load_model("toy", model, TASK, CPU, 1)
    runner = BatchRunner(CPU, lambda _: None, turn_seconds=1e-6)
    note = runner.scheduler.note
    monkeypatch.setattr(runner.scheduler, "note", lambda _: note(1.0))  # turns of equal length

    def add(**settings: Any) -> PendingRequest:
        shared = shared_search(loaded, None, tuple(sorted(settings.items())))
        request = PendingRequest(1, lambda: None)
        puzzle = PendingPuzzle(shared, TASK.encode(PUZZLE), 0, request, 0, lambda f, r, _: f)
        runner.add([puzzle])
        return request

    with torch.inference_mode():
        huge = add(method="guided", particles=200, outer_steps=2)
        runner.step()  # before anything is timed, a few trajectories
        assert max(model.calls) <= FIRST_ROWS
        small = add(method="deterministic", outer_steps=SHORT)
        model.calls.clear()
        while small.outcomes == [None]:
            runner.step()
        assert sum(model.calls) <= 2 * model.inner_steps * (SHORT + 1)  # of both
        assert huge.outcomes == [None]
        while huge.outcomes == [None]:
            runner.step()
    alone = run_search(
        build_search(model, TASK, method="guided", particles=200, outer_steps=2),
        TASK.encode(PUZZLE)[None],
    )
    found = huge.outcomes[0]
    assert torch.equal(found.answers, alone.answers)
    assert torch.equal(found.confidence, alone.confidence)


def test_a_huge_cloud_is_not_starved_by_small_requests(
    toy: TRM, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load_model("toy", toy, TASK, CPU, 1)
    runner = BatchRunner(CPU, lambda _: None, turn_seconds=1e-6)
    note = runner.scheduler.note
    monkeypatch.setattr(runner.scheduler, "note", lambda _: note(1.0))
    huge = shared_search(loaded, None, (("method", "guided"), ("outer_steps", 2), ("particles", 9)))
    small = shared_search(loaded, None, (("method", "deterministic"), ("outer_steps", 1)))
    request = PendingRequest(1, lambda: None)
    tokens = TASK.encode(PUZZLE)
    with torch.inference_mode():
        runner.add([PendingPuzzle(huge, tokens, 0, request, 0, lambda *_: "done")])
        for _ in range(2 * 2 * 9):
            other = PendingRequest(1, lambda: None)
            runner.add([PendingPuzzle(small, tokens, 0, other, 0, lambda *_: "done")])
            runner.step()
    assert request.outcomes == ["done"]


def test_turns_grow_and_shrink_with_their_time(toy: TRM) -> None:
    scheduler = Scheduler(1 << 30, 0.25)
    loaded = LoadedModel("toy", toy, TASK, rows=100, trajectory_bytes=1, threads=2)
    assert scheduler.rows(loaded) == 2 * FIRST_ROWS
    scheduler.time_rows(loaded, 8, 0.05)  # short: twice as many, at most
    assert scheduler.rows(loaded) == 16
    scheduler.time_rows(loaded, 1, 0.2)  # a small turn tells little
    assert scheduler.rows(loaded) == 16
    scheduler.time_rows(loaded, 16, 1.0)  # four times too long
    assert scheduler.rows(loaded) == 4
    scheduler.time_rows(loaded, 4, 1e9)
    assert scheduler.rows(loaded) == 2  # one for each thread
    for _ in range(9):
        scheduler.time_rows(loaded, scheduler.rows(loaded), 1e-6)
    assert scheduler.rows(loaded) == 100
    scheduler.limit_rows(loaded, 3)  # memory ran out
    assert scheduler.rows(loaded) == 3


def test_a_cloud_is_cut_over_http(toy: TRM) -> None:
    body = {"puzzles": [PUZZLE], "method": "guided", "particles": 40, "outer_steps": 3}
    with serving(toy, turn_seconds=1e-6) as service:
        status, _, found = service.ask("/v1/solve", body)
        assert status == 200
        assert service.engine.counts.batches > 3 * 40 / (2 * FIRST_ROWS)
    (alone,) = solve_texts(toy, [PUZZLE], method="guided", particles=40, outer_steps=3)
    assert found["results"][0]["answer"] == alone.answer
    assert found["results"][0]["confidence"] == alone.confidence


def test_a_small_request_is_not_behind_the_puzzles_of_a_large_one(
    toy: TRM, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One turn takes one puzzle here, and 60 puzzles of the large request have had none yet."""
    loaded = load_model("toy", toy, TASK, CPU, 1)
    runner = BatchRunner(CPU, lambda _: None, turn_seconds=1e-6)
    note = runner.scheduler.note
    monkeypatch.setattr(runner.scheduler, "note", lambda _: note(1.0))  # turns of the same time
    settings = (("method", "deterministic"), ("outer_steps", 4))
    shared, tokens = shared_search(loaded, None, settings), TASK.encode(PUZZLE)

    def request(puzzles: int, client: str) -> PendingRequest:
        made = PendingRequest(puzzles, lambda: None, client)
        runner.add([
            PendingPuzzle(shared, tokens, 0, made, index, lambda *_: "done")
            for index in range(puzzles)
        ])  # fmt: skip
        return made

    with torch.inference_mode():
        large = request(70, "a")
        for _ in range(10):
            runner.step()
        small = request(1, "a")
        turns = 0
        while small.outcomes == [None]:
            runner.step()
            turns += 1
        assert turns <= 2 * 4 + 1
        while None in large.outcomes:
            runner.step()
    assert large.outcomes == ["done"] * 70


def test_clients_share_the_time_whatever_the_number_of_their_requests() -> None:
    now = [0.0]
    service = RecentService(lambda: now[0])
    service.add("busy", 5.0)
    service.add("light", 0.4)
    assert (service.level("busy"), service.level("light"), service.level("new")) == (5, 0, 0)
    now[0] = 10.0
    assert service.level("busy") == 1  # 5 / e
    now[0] = -10.0  # a clock that goes back
    assert service.level("busy") == 5
    for number in range(REMEMBERED + 3000):
        service.add(str(number), 0.001)
    assert len(service._given) <= REMEMBERED + 1


def test_a_client_with_many_requests_is_behind_one_with_few(toy: TRM) -> None:
    loaded = load_model("toy", toy, TASK, CPU, 1)
    runner = BatchRunner(CPU, lambda _: None, turn_seconds=1e-6)
    runner._service.add("many", 3.0)
    shared = shared_search(loaded, None, (("method", "deterministic"), ("outer_steps", 4)))
    ended: list[str] = []

    def add(client: str) -> None:
        request = PendingRequest(1, lambda: ended.append(client), client)
        runner.add([PendingPuzzle(shared, TASK.encode(PUZZLE), 0, request, 0, lambda *_: "done")])

    with torch.inference_mode():
        for _ in range(20):
            add("many")
        add("few")
        while "few" not in ended:
            runner.step()
    assert len(ended) <= 4
