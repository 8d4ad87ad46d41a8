"""Other sites, rebound names, clients that leave, and requests too large for one turn."""

import json
import logging
import socket
import time
from typing import Any

import pytest
import torch

from tiltrm.errors import SettingsError
from tiltrm.model import base as model_base
from tiltrm.model.trm import TRM
from tiltrm.serve.guard import own_names
from tiltrm.serve.limits import MOST_RUNNING
from tiltrm.serve.logs import ACCESS, JsonLines
from tiltrm.serve.runner import BatchRunner
from tiltrm.serve.scheduler import CHEAPEST, OLDEST, Scheduler
from tiltrm.serve.server import build
from tiltrm.solving import PuzzleRecord
from tiltrm.tasks import Sudoku

from .service import request_of, serving

TASK = Sudoku(2)
PUZZLE, OTHER = "1...3..2.1....2.", "2...3..1.1....3."
QUICK: dict[str, Any] = {"method": "deterministic", "outer_steps": 1}
SLOW: dict[str, Any] = {"outer_steps": 1000, "particles": 64, "halt_above": 1000}


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_pages_of_other_sites_are_refused(toy: TRM, headers: dict[str, str]) -> None:
    """Before any work is done, for routes that a plain link could reach, too."""
    with serving(toy) as service:
        for path, body in (("/v1/solve", {"puzzles": [PUZZLE], **QUICK}), ("/v1/generate", None)):
            status, _, answer = service.ask(path, body, headers)
            assert (status, "another site" in answer["error"]) == (403, True)
        assert service.engine.counts.solved == 0
        assert service.ask("/", None, {"Sec-Fetch-Site": "cross-site"})[0] == 200  # a link to it
        own = {"Origin": f"http://127.0.0.1:{service.port}", "Sec-Fetch-Site": "same-origin"}
        assert service.ask("/v1/solve", {"puzzles": [PUZZLE], **QUICK}, own)[0] == 200


def test_a_rebound_name_is_refused_on_every_address() -> None:
    assert "evil.example" not in own_names("127.0.0.1", "127.0.0.1")
    names = own_names("0.0.0.0", "0.0.0.0", ["Puzzles.example"])
    assert {"*", "puzzles.example", "localhost"} <= set(names)


def test_a_server_for_all_answers_to_addresses_and_its_own_names(toy: TRM) -> None:
    with serving(toy) as service:
        guard = service.server.config.app
        guard.hosts = own_names("0.0.0.0", "0.0.0.0", ["puzzles.example"])  # type: ignore[union-attr]
        asked = {"evil.example": 421, "192.0.2.7:80": 200, "puzzles.example": 200, "[::1]:9": 200}
        for host, status in asked.items():
            assert service.ask("/healthz", None, {"Host": host})[0] == status, host


@pytest.mark.parametrize("host", ["a..b", "a" * 70 + ".example", "é" * 70])
def test_a_host_that_is_no_name_is_one_sentence(toy: TRM, host: str) -> None:
    with pytest.raises(SettingsError, match="expected an address that is free here"):
        build({"toy": toy}, torch.device("cpu"), host=host, port=0)


def test_answers_that_are_there_survive_the_time_limit(
    toy: TRM, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest is marked as not decided; a request of which nothing is done is still a 504."""
    finished = 1

    def submit(puzzles: list[Any]) -> None:
        for puzzle in puzzles[:finished]:
            puzzle.put(PuzzleRecord(PUZZLE, "1234341221434321", abstained=False))

    with serving(toy, seconds=0.3) as service:
        monkeypatch.setattr(service.engine, "submit", submit)
        body = {"puzzles": ["11..............", PUZZLE, OTHER, OTHER], **QUICK}
        status, _, answer = service.ask("/v1/solve", body)
        assert status == 200
        bad, done, *late = answer["results"]
        assert bad["error"] is not None
        assert done["answer"] == "1234341221434321"
        for each in late:
            told = [each[name] for name in ("puzzle", "answer", "abstained", "decided_by")]
            assert told == [OTHER, None, True, "time"]
        finished = 0
        assert service.ask("/v1/solve", body)[0] == 504


def test_limits_are_told_and_kept(toy: TRM) -> None:
    with serving(toy, puzzles=2, work=100) as service:
        told = service.ask("/v1/limits")[2]
        assert (told["puzzles"], told["work"], told["body"]) == (2, 100, 2 << 20)
        assert service.ask("/v1/solve", {"puzzles": [PUZZLE] * 3, **QUICK})[0] == 422
        large = {"puzzles": [PUZZLE], "method": "guided", "particles": 10, "outer_steps": 11}
        status, _, answer = service.ask("/v1/solve", large)
        assert (status, "at most 100 a puzzle, got 110" in answer["error"]) == (422, True)


def test_a_client_that_leaves_inside_its_body_is_no_error(
    toy: TRM, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(toy) as service:
        line = service.raw(
            b"POST /v1/solve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 1000\r\n\r\n{"
        )
        line.close()
        time.sleep(0.3)
        assert service.ask("/healthz")[0] == 200
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_every_answer_has_a_number_that_the_log_names(
    toy: TRM, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, ACCESS.name)
    with serving(toy) as service:
        headers = service.ask("/healthz")[1]
    said = [record for record in caplog.records if record.name == ACCESS.name]
    (line,) = [json.loads(JsonLines().format(record)) for record in said]
    assert line["request"] == headers["x-request-id"]
    assert (line["route"], line["status"]) == ("/healthz", 200)


def test_an_error_names_the_request_that_it_happened_in(
    toy: TRM, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("a bad model")

    monkeypatch.setattr(type(toy), "step", fail)
    monkeypatch.setattr(type(toy), "refine", fail)
    with serving(toy) as service:
        status, headers, _ = service.ask("/v1/solve", {"puzzles": [PUZZLE], **QUICK})
    lines = [json.loads(JsonLines().format(record)) for record in caplog.records]
    (line,) = [each for each in lines if each["level"] == "error"]
    assert (status, line["request"]) == (500, headers["x-request-id"])
    assert "ValueError: a bad model" in line["traceback"]


def test_a_dead_engine_is_not_healthy_and_keeps_nobody_waiting(
    toy: TRM, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model or a task may call sys.exit() in the engine's thread."""

    def leave(_: BatchRunner) -> None:
        raise SystemExit

    with serving(toy) as service:
        assert service.ask("/healthz")[0] == 200
        monkeypatch.setattr(BatchRunner, "step", leave)
        begun = time.monotonic()
        assert service.ask("/v1/solve", {"puzzles": [PUZZLE], **QUICK})[0] == 500
        assert service.ask("/healthz")[0] == 503
        assert service.ask("/v1/solve", {"puzzles": [PUZZLE], **QUICK})[0] == 503
        assert service.engine.held == 0
        assert time.monotonic() - begun < 5.0  # and `serving` sees it end after a signal


def test_one_client_cannot_take_every_place(toy: TRM) -> None:
    """Many small requests of one client leave places for another, as one large request does."""
    with serving(toy, running=8, turn_seconds=0.01) as service:
        service.server.config.app.client_header = "X-Real-IP"  # type: ignore[union-attr]
        slow = request_of({"puzzles": [PUZZLE], "method": "guided", "particles": 256,
                           "outer_steps": 1024})  # fmt: skip
        lines = [service.raw(_from(slow, "203.0.113.1")) for _ in range(8)]
        service.until(held=8)
        time.sleep(0.3)  # so that they are in batches
        quick = {"X-Real-IP": "203.0.113.2"}
        begun = time.monotonic()
        assert service.ask("/v1/solve", {"puzzles": [PUZZLE], **QUICK}, quick)[0] == 200
        assert time.monotonic() - begun < 10.0
        for line in lines:
            line.close()
        service.until(held=0, seconds=60.0)


def _from(request: bytes, address: str) -> bytes:
    """The request with a proxy's word for where it comes from."""
    return request.replace(b"Host:", f"X-Real-IP: {address}\r\nHost:".encode(), 1)


def test_a_client_that_never_reads_is_ended(toy: TRM) -> None:
    with serving(toy, write_seconds=0.5) as service:
        protocol: Any = service.server.config.http_protocol_class
        line = socket.socket()
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.connect(("127.0.0.1", service.port))
        line.sendall(b"GET /v1/replay HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200)
        begun = time.monotonic()
        while not protocol.clients:
            assert time.monotonic() - begun < 10.0
            time.sleep(0.01)
        while protocol.clients:
            assert time.monotonic() - begun < 10.0
            time.sleep(0.01)
        line.close()


def test_a_puzzle_can_have_a_time_limit(toy: TRM) -> None:
    body = {"puzzles": [PUZZLE], "method": "guided", "outer_steps": 1024, "particles": 64,
            "seconds": 0.2}  # fmt: skip
    with serving(toy) as service:
        begun = time.monotonic()
        (found,) = service.ask("/v1/solve", body)[2]["results"]
    assert (found["decided_by"], found["answer"] is None) == ("time", False)
    assert time.monotonic() - begun < 5.0


def test_the_page_is_told_that_a_puzzle_has_several_solutions(toy: TRM) -> None:
    with serving(toy) as service:
        text = service.ask("/v1/solve/stream", {"puzzles": ["." * 16], **QUICK})[2]
    assert json.loads(text.strip().rpartition("data: ")[2])["solutions"] == 2


def test_memory_that_runs_out_is_met_with_smaller_batches(
    toy: TRM, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine halves its batches, and all puzzles are answered as ever."""
    most, real = 3, type(toy).refine

    def refine(self: TRM, inputs: torch.Tensor, state: Any) -> torch.Tensor:
        if len(inputs) > most:
            raise torch.OutOfMemoryError("no memory")
        return real(self, inputs, state)

    texts = [TASK.decode(TASK.generate(seed)[0]) for seed in range(8)]
    body = {"puzzles": texts, "method": "deterministic", "outer_steps": 4}
    with serving(toy) as service:
        expected = service.ask("/v1/solve", body)[2]["results"]
        monkeypatch.setattr(type(toy), "refine", refine)
        monkeypatch.setattr(type(toy), "step", model_base.step)
        status, _, found = service.ask("/v1/solve", body)
    assert status == 200
    answers = [[each["answer"] for each in results] for results in (found["results"], expected)]
    assert answers[0] == answers[1]


def test_turns_share_the_time_not_the_steps() -> None:
    """A step of 2 s for the oldest batch is followed by 2 s of the cheapest ones' steps."""
    scheduler = Scheduler(1 << 30, 0.25)
    scheduler._turn = OLDEST
    scheduler.note(2.0)
    assert scheduler._time[OLDEST] == 2.0
    for _ in range(4):
        scheduler._turn = CHEAPEST
        scheduler.note(0.5)
    assert scheduler._time[OLDEST] == pytest.approx(0.0)


def test_a_large_request_leaves_places_for_others(toy: TRM) -> None:
    with serving(toy) as service:
        engine = service.engine
        large = [TASK.decode(TASK.generate(seed)[0]) for seed in range(300)]
        line = service.raw(_request(large))
        service.until(held=300)
        time.sleep(0.5)
        assert engine._runner.free >= MOST_RUNNING["cpu"] // 4
        line.close()
        service.until(held=0)


def _request(puzzles: list[str]) -> bytes:
    body = json.dumps({"puzzles": puzzles, **SLOW}).encode()
    head = (
        "POST /v1/solve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
