"""Quotas of clients: who asks too much is refused and told when to come back; others are served."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra [serve] is not installed")

from tiltrm.cli import main
from tiltrm.model.trm import TRM
from tiltrm.serve import quotas as quotas_module
from tiltrm.serve.limits import Limits
from tiltrm.serve.quotas import Quotas, client_name

from .service import Service, request_of, serving

PUZZLE = "1...3..2.1....2."
QUICK: dict[str, Any] = {"puzzles": [PUZZLE], "method": "deterministic", "outer_steps": 1}
SLOW: dict[str, Any] = {"puzzles": [PUZZLE], "method": "guided", "particles": 64,
                        "outer_steps": 1000}  # fmt: skip


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_then_the_rate_and_never_more() -> None:
    clock = Clock()
    quotas = Quotas(Limits(client_rate=2.0, client_burst=3), clock)

    def ask(name: str = "a") -> int:
        """0, or the seconds to wait."""
        refused = quotas.enter(name)
        if refused is None:
            quotas.leave(name)
        return 0 if refused is None else refused.seconds

    assert [ask() for _ in range(4)] == [0, 0, 0, 1]
    assert ask("b") == 0  # another client
    clock.now = 0.5
    assert [ask(), ask()] == [0, 1]
    clock.now = 1000.0
    assert [ask() for _ in range(4)] == [0, 0, 0, 1]
    clock.now = 0.0  # a clock that goes back gives nothing, and breaks nothing
    assert ask() == 1


def test_the_time_to_come_back_is_enough() -> None:
    clock = Clock()
    quotas = Quotas(Limits(client_rate=0.1, client_burst=1), clock)
    assert quotas.enter("a") is None
    refused = quotas.enter("a")
    assert refused is not None
    assert refused.seconds == 10
    clock.now = float(refused.seconds)
    assert quotas.enter("a") is None


def test_clients_without_requests_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas_module, "REMEMBERED", 3)
    quotas = Quotas(Limits())
    assert quotas.enter("stays") is None
    for number in range(10):
        assert quotas.enter(str(number)) is None
        quotas.leave(str(number))
    assert len(quotas._clients) <= 4
    quotas.leave("stays")


@pytest.mark.parametrize(
    ("address", "headers", "name"),
    [
        ("192.0.2.7", [], "192.0.2.7"),
        ("::ffff:192.0.2.7", [], "192.0.2.7"),
        ("2001:db8:1:2:3::4", [], "2001:db8:1:2::/64"),
        ("127.0.0.1", [(b"x-real-ip", b"203.0.113.9")], "203.0.113.9"),
        ("127.0.0.1", [(b"x-real-ip", b"spoofed, 203.0.113.9")], "203.0.113.9"),
        ("127.0.0.1", [(b"x-forwarded-for", b"203.0.113.9")], "127.0.0.1"),
        (None, [], ""),
    ],
)
def test_the_name_of_a_client(address: str | None, headers: list[Any], name: str) -> None:
    scope = {"client": None if address is None else (address, 1), "headers": headers}
    assert client_name(scope, "X-Real-IP") == name
    assert client_name({**scope, "headers": []}) == ("127.0.0.1" if headers else name)


def test_too_many_requests_a_second_are_told_when_to_come_back(toy: TRM) -> None:
    with serving(toy, client_rate=0.5, client_burst=2) as service:
        found = [service.ask("/v1/solve", QUICK) for _ in range(3)]
        assert [status for status, _, _ in found] == [200, 200, 429]
        assert found[2][1]["retry-after"] == "2"
        assert "come back after 2 s" in found[2][2]["error"]
        assert service.ask("/healthz")[0] == 200  # it costs nothing
        assert service.ask("/v1/generate?task=sudoku4")[0] == 429


def test_too_many_requests_at_once(toy: TRM) -> None:
    with serving(toy, client_requests=1) as service:
        with service.raw(request_of(SLOW)):
            service.until(held=1)
            status, headers, _ = service.ask("/v1/solve", QUICK)
            assert (status, headers["retry-after"]) == (429, "1")
        service.until(held=0)
        assert service.ask("/v1/solve", QUICK)[0] == 200


def test_too_many_puzzles_of_one_client(toy: TRM) -> None:
    with serving(toy, client_puzzles=3) as service:
        two = {**SLOW, "puzzles": [PUZZLE] * 2}
        assert service.ask("/v1/solve", {**QUICK, "puzzles": [PUZZLE] * 4})[0] == 422
        with service.raw(request_of(two)):
            service.until(held=2)
            status, headers, answer = service.ask("/v1/solve", {**QUICK, "puzzles": [PUZZLE] * 2})
            assert (status, int(headers["retry-after"]) >= 1) == (429, True)
            assert "puzzles of a client" in answer["error"]
            assert service.ask("/v1/solve", QUICK)[0] == 200
        service.until(held=0)
        assert service.ask("/v1/solve", {**QUICK, "puzzles": [PUZZLE] * 3})[0] == 200
        assert not service.engine._held_by


def test_streams_of_one_client(toy: TRM) -> None:
    with serving(toy, client_streams=1) as service:
        first = request_of(SLOW).replace(b"/v1/solve", b"/v1/solve/stream")
        with service.raw(first) as line:
            assert b"200 OK" in line.recv(100)
            assert service.ask("/v1/solve/stream", SLOW)[0] == 429
        service.until(held=0)


def test_connections_of_one_client(toy: TRM) -> None:
    """More are refused at once, and places are free again when others close."""
    with serving(toy, client_connections=2) as service:
        held = [service.raw(b"") for _ in range(2)]
        time.sleep(0.2)
        with service.raw(b"") as third:
            assert third.recv(1000).startswith(b"HTTP/1.1 429 ")
        for line in held:
            line.close()
        end = time.monotonic() + 10.0
        while not _answers(service):
            assert time.monotonic() < end
        assert len(service.server.config.http_protocol_class.clients) <= 1  # type: ignore[attr-defined]


def _answers(service: Service) -> bool:
    try:
        return service.ask("/healthz")[0] == 200
    except (OSError, socket.timeout):  # noqa: UP041
        return False


def test_a_request_that_needs_too_much_memory_is_refused_before_it_runs(toy: TRM) -> None:
    with serving(toy, memory=1_000_000) as service:
        status, _, answer = service.ask("/v1/solve", {**SLOW, "particles": 256})
        assert (status, "at most 1 MB" in answer["error"]) == (422, True)
        assert service.ask("/v1/solve/stream", {**SLOW, "particles": 256})[0] == 422
        assert service.ask("/v1/solve", QUICK)[0] == 200
        assert service.engine.counts.failed == 0


@pytest.mark.parametrize("name", ["particles", "outer_steps"])
def test_limits_of_settings_are_the_servers(toy: TRM, name: str) -> None:
    with serving(toy, **{name: 3}) as service:
        body = {"puzzles": [PUZZLE], "method": "guided", "particles": 3, "outer_steps": 3}
        assert service.ask("/v1/solve", body)[0] == 200
        status, _, answer = service.ask("/v1/solve", {**body, name: 4})
        assert (status, answer["error"]) == (422, f"{name}: expected at most 3, got 4")
        rows = {row["name"]: row for row in service.ask("/v1/settings")[2]["settings"]}
        assert rows[name]["most"] == 3


def test_a_diagnosis_of_too_many_puzzles(toy: TRM) -> None:
    with serving(toy, diagnosed=1) as service:
        body = {"puzzles": [PUZZLE] * 2, "task": "sudoku4"}
        assert service.ask("/v1/diagnose", body)[0] == 422


def test_every_limit_is_told_and_has_a_flag(toy: TRM, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(toy) as service:
        told = service.ask("/v1/limits")[2]
    assert set(told) == set(Limits.__dataclass_fields__)
    assert told["running"] == 256  # the CPU's
    for name in told:
        assert main(["serve", "--limit", f"{name}=-1"]) == 2
        assert name in capsys.readouterr().err


def test_small_requests_of_others_are_answered_beside_one_client_that_fills_its_quota(
    toy: TRM,
) -> None:
    with serving(toy, client_puzzles=8, queue=16, turn_seconds=0.01) as service:
        full = request_of({**SLOW, "puzzles": [PUZZLE] * 8})
        with service.raw(full), ThreadPoolExecutor(1) as pool:
            service.until(held=8)
            assert service.ask("/v1/solve", QUICK)[0] == 429  # the same client
            guard: Any = service.server.config.app
            guard.client_header = "X-Real-IP"
            other = pool.submit(service.ask, "/v1/solve", QUICK, {"X-Real-IP": "203.0.113.9"})
            assert other.result(20)[0] == 200
            assert service.engine.held == 8
