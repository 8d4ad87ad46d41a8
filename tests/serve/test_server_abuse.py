"""Other sites, rebound names, clients that leave, and requests too large for one turn."""

import json
import logging
import time
from typing import Any

import pytest
import torch

from tiltrm.errors import SettingsError
from tiltrm.model.trm import TRM
from tiltrm.serve.guard import ACCESS, own_names
from tiltrm.serve.limits import MOST_RUNNING
from tiltrm.serve.scheduler import CHEAPEST, OLDEST, Scheduler
from tiltrm.serve.server import build
from tiltrm.solving import PuzzleRecord
from tiltrm.tasks import Sudoku

from .service import serving

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
    assert headers["x-request-id"] in caplog.text
    assert '"route": "/healthz", "status": 200' in caplog.text


def test_a_dead_engine_is_not_healthy(toy: TRM, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(toy) as service:
        assert service.ask("/healthz")[0] == 200
        monkeypatch.setattr(type(service.engine), "alive", property(lambda _: False))
        assert service.ask("/healthz")[0] == 503


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
