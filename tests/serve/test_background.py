"""Diagnoses and generators: they end with their client, their time and the server."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra [serve] is not installed")

import tiltrm
from tiltrm.errors import SettingsError
from tiltrm.model.trm import TRM
from tiltrm.serve import long_calls
from tiltrm.serve.background import BackgroundCalls, StoppedError
from tiltrm.serve.long_calls import DIAGNOSIS
from tiltrm.tasks import SUDOKU, Sudoku

from .service import request_of, serving

PUZZLE = "1...3..2.1....2."
BODY: dict[str, Any] = {"puzzles": [PUZZLE], "task": "sudoku4"}
GENERATE = b"GET /v1/generate?task=sudoku4&seed=1 HTTP/1.1\r\nHost: localhost\r\n\r\n"


SOON = 1.0 + 4.0  # a second, and what a busy machine may add


class Endless:
    """A computation that knows nothing of clients and never ends by itself."""

    def __init__(self) -> None:
        self.begun, self.ended = threading.Event(), threading.Event()
        self.thread: threading.Thread | None = None

    def __call__(self, *_: Any, **__: Any) -> Any:
        self.thread = threading.current_thread()
        self.begun.set()
        try:
            while True:
                time.sleep(0.005)
        finally:
            self.ended.set()


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endless]:
    """In the place of the diagnosis and of the generator."""
    made = Endless()
    monkeypatch.setattr(long_calls, "diagnose", made)
    monkeypatch.setattr(Sudoku, "generate", made)
    yield made
    assert made.ended.wait(5)


def diagnosis(puzzles: int = 1) -> bytes:
    body = {**BODY, "puzzles": [PUZZLE] * puzzles}
    return request_of(body).replace(b"/v1/solve", b"/v1/diagnose")


@pytest.mark.parametrize("asked", [diagnosis(), GENERATE])
def test_a_call_ends_within_a_second_of_its_client(
    toy: TRM, endless: Endless, asked: bytes
) -> None:
    with serving(toy) as service:
        line = service.raw(asked)
        assert endless.begun.wait(10)
        line.close()
        assert endless.ended.wait(SOON)
        assert endless.thread is not None
        assert endless.thread.daemon  # else the process would wait for it at its end
        assert service.ask("/healthz")[0] == 200


def test_one_diagnosis_at_a_time(toy: TRM, endless: Endless) -> None:
    with serving(toy) as service, service.raw(diagnosis()):
        assert endless.begun.wait(10)
        status, headers, _ = service.ask("/v1/diagnose", BODY)
        assert (status, headers["retry-after"]) == (429, "5")


def test_after_a_diagnosis_was_left_the_next_one_is_served(
    toy: TRM, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(toy) as service:
        made = Endless()
        monkeypatch.setattr(long_calls, "diagnose", made)
        for _ in range(3):  # however early a client leaves
            service.raw(diagnosis()).close()
        monkeypatch.undo()
        end = time.monotonic() + 10.0
        while (status := service.ask("/v1/diagnose", BODY)[0]) == 429:
            assert time.monotonic() < end
        assert status == 200


def test_calls_have_time_limits(toy: TRM, endless: Endless) -> None:
    with serving(toy, seconds=0.3, generate_seconds=0.3) as service:
        assert service.ask("/v1/diagnose", BODY)[0] == 504
        assert service.ask("/v1/generate?task=sudoku4")[0] == 504


def test_abandoned_generators_do_not_pile_up(toy: TRM, endless: Endless) -> None:
    """Every client leaves; all routes still answer, and no thread is left."""
    with serving(toy, generating=3) as service:
        for _ in range(12):
            service.raw(GENERATE).close()
        assert service.ask("/healthz")[0] == 200
        end = time.monotonic() + 5.0
        while service.server.background.running("call"):
            assert time.monotonic() < end
            time.sleep(0.02)
        lines = [service.raw(GENERATE) for _ in range(3)]
        assert endless.begun.wait(5)
        time.sleep(0.3)
        assert service.ask("/v1/generate?task=sudoku4")[0] == 429
        for line in lines:
            line.close()


@pytest.mark.parametrize("path", ["/v1/diagnose", "/v1/generate?task=sudoku4"])
def test_a_signal_ends_calls_and_tells_their_clients(toy: TRM, endless: Endless, path: str) -> None:
    answers: list[int] = []
    with serving(toy) as service:
        body = BODY if "diagnose" in path else None
        asking = threading.Thread(target=lambda: answers.append(service.ask(path, body)[0]))
        asking.start()
        assert endless.begun.wait(10)
        service.server.handle_exit(15, None)
        assert endless.ended.wait(SOON)
        asking.join(10)
    assert answers == [503]


def test_a_real_diagnosis_of_the_bundled_model_stops_within_a_second() -> None:
    """Its steps are long: between two calls of `progress` there are many seconds."""
    model = tiltrm.load("sudoku-extreme", device="cpu")
    puzzle = SUDOKU.decode(SUDOKU.generate(0)[0])
    with serving(model) as service:
        text = request_of({"puzzles": [puzzle] * 8}).replace(b"/v1/solve", b"/v1/diagnose")
        line = service.raw(text)
        background = service.server.background
        _until(lambda: background.running(DIAGNOSIS), 10.0)
        time.sleep(1.5)
        assert background.running(DIAGNOSIS)
        line.close()
        begun = time.monotonic()
        _until(lambda: not background.running(DIAGNOSIS), 10.0)
        assert time.monotonic() - begun < SOON


def test_a_puzzle_is_solved_beside_a_diagnosis(toy: TRM, endless: Endless) -> None:
    with serving(toy) as service, service.raw(diagnosis()):
        assert endless.begun.wait(10)
        body = {"puzzles": [PUZZLE], "method": "deterministic", "outer_steps": 1}
        assert service.ask("/v1/solve", body)[0] == 200


def test_a_generator_that_fails_or_exits_is_an_answer(
    toy: TRM, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    errors: list[tuple[BaseException, int]] = [
        (SettingsError("no such size"), 422), (ValueError("secret"), 500), (SystemExit(0), 503)
    ]  # fmt: skip
    with serving(toy) as service, caplog.at_level(logging.CRITICAL):
        for error, expected in errors:

            def fail(*_: Any, error: BaseException = error) -> None:
                raise error

            monkeypatch.setattr(Sudoku, "generate", fail)
            status, _, answer = service.ask("/v1/generate?task=sudoku4")
            assert status == expected
            assert "secret" not in answer["error"]


def test_a_counter_that_never_ends_does_not_hold_a_request(
    toy: TRM, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = Endless()
    monkeypatch.setattr(Sudoku, "count_solutions", endless)
    with serving(toy, counting_seconds=0.2) as service:
        body = {"puzzles": [PUZZLE], "method": "deterministic", "outer_steps": 1}
        status, _, found = service.ask("/v1/solve", body)
        assert (status, found["results"][0]["solutions"]) == (200, None)
        assert endless.ended.wait(SOON)


def test_solutions_are_counted_in_one_thread_at_a_time(
    toy: TRM, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many threads of Python would keep the event loop from its connections."""
    running: list[int] = []
    most: list[int] = []

    def count(*_: Any) -> int:
        running.append(1)
        most.append(len(running))
        time.sleep(0.02)
        running.pop()
        return 1

    monkeypatch.setattr(Sudoku, "count_solutions", count)
    body = {"puzzles": [PUZZLE], "method": "deterministic", "outer_steps": 1}
    with serving(toy) as service, ThreadPoolExecutor(12) as pool:
        found = list(pool.map(lambda _: service.ask("/v1/solve", body), range(12)))
    assert [answer["results"][0]["solutions"] for _, _, answer in found] == [1] * 12
    assert max(most) == 1


def test_values_errors_and_the_end_of_calls() -> None:
    async def play() -> None:
        calls = BackgroundCalls()
        assert await calls.run(lambda: 3) == 3
        with pytest.raises(ZeroDivisionError):
            await calls.run(lambda: 1 // 0)
        endless = Endless()
        waiting = asyncio.ensure_future(calls.run(endless))
        await asyncio.to_thread(endless.begun.wait, 5)
        assert not calls.join(0.05)
        calls.close()
        with pytest.raises(StoppedError):
            await waiting
        assert await asyncio.to_thread(calls.join, 5.0)
        with pytest.raises(StoppedError):
            await calls.run(lambda: 3)

    asyncio.run(play())


def _until(true: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)
