"""Clients of the server: host names, methods, idle connections, disconnects, signals."""

import json
import logging
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
import torch

pytest.importorskip("fastapi", reason="the extra [serve] is not installed")
pytest.importorskip("prometheus_client", reason="the extra [serve] is not installed")


from tiltrm.errors import SettingsError
from tiltrm.explore.plan import Adaptive, Stage
from tiltrm.model.trm import TRM
from tiltrm.serve import long_calls
from tiltrm.serve.engine import Engine
from tiltrm.serve.guard import own_names
from tiltrm.serve.handler import RequestHandler
from tiltrm.serve.limits import Limits
from tiltrm.serve.recording import Recording
from tiltrm.serve.requests import Refusal
from tiltrm.serve.scheduler import LoadedModel, shared_search
from tiltrm.solving import solve_texts
from tiltrm.tasks import SUDOKU, Sudoku

from .service import Service, request_of, serving

TASK = Sudoku(2)
PUZZLE = "1...3..2.1....2."
SLOW = {"method": "guided", "particles": 64, "outer_steps": 1000}


@pytest.fixture(scope="module")
def service(toy: TRM) -> Iterator[Service]:
    with serving(toy) as running:
        yield running


def answer_to(service: Service, text: bytes) -> bytes:
    """All that comes back until the server hangs up."""
    with service.raw(text) as line:
        return b"".join(iter(lambda: line.recv(65536), b""))


def frames_of(text: str) -> list[dict[str, Any]]:
    """The `step` events of a stream."""
    blocks = [block.split("\n") for block in text.strip().split("\n\n")]
    return [json.loads(data[6:]) for name, data in blocks if name == "event: step"]


@pytest.mark.parametrize("path", ["/", "/healthz", "/v1/models", "/static/main.js"])
def test_head_is_get_without_the_body(service: Service, path: str) -> None:
    ask = f"{{}} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    head, _, body = answer_to(service, ask.format("GET").encode()).partition(b"\r\n\r\n")
    bare, _, nothing = answer_to(service, ask.format("HEAD").encode()).partition(b"\r\n\r\n")
    assert b"200 OK" in head.splitlines()[0]
    assert body
    assert nothing == b""
    changing = (b"date:", b"x-request-id:")
    own = {line for line in head.splitlines() if not line.startswith(changing)}
    assert own == {line for line in bare.splitlines() if not line.startswith(changing)}


def test_a_path_or_method_that_is_not_here_is_one_sentence(service: Service) -> None:
    assert service.ask("/nowhere")[2] == {
        "error": "expected a path of this server, got another; /docs lists them"
    }
    status, headers, found = service.ask("/v1/solve")
    assert (status, headers["allow"]) == (405, "POST")
    assert found["error"].startswith("expected the method POST, got another")


def test_the_page_is_asked_for_again_after_an_update(service: Service) -> None:
    for path in ("/", "/static/main.js"):
        headers = service.ask(path)[1]
        assert headers["cache-control"] == "no-cache"
        assert headers["etag"]
    stream = service.ask("/v1/solve/stream", {"puzzles": [PUZZLE], "outer_steps": 1})[1]
    assert stream["cache-control"] == "no-store"


def test_every_loopback_address_has_its_own_names_only() -> None:
    for address in ("127.0.0.1", "127.0.0.2", "127.255.0.1", "::1"):
        names = own_names("Some-Host", address)
        assert {"localhost", "127.0.0.1", address, "some-host"} <= set(names)
        assert "*" not in names
    for host, address in (("0.0.0.0", "0.0.0.0"), ("::", "::"), ("example.org", "192.0.2.1")):
        assert {"*", host, address} <= set(own_names(host, address))  # and any address


def test_idle_connections_are_closed(toy: TRM) -> None:
    again = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"

    def whole(line: socket.socket) -> bytes:
        text = b""
        while not text.endswith(b'"ok"}'):
            text += (part := line.recv(65536))
            assert part, text
        return text

    with serving(toy, idle_seconds=0.4) as service:
        assert answer_to(service, b"") == b""
        assert answer_to(service, again) == b""  # its head does not end
        with service.raw(again + b"\r\n") as line:
            assert whole(line)
            line.sendall(again)  # nor this one's, the second on its line
            assert line.recv(65536) == b""
        with service.raw(again + b"\r\n") as line:
            assert whole(line)
            time.sleep(0.6)  # between two requests a client may rest
            line.sendall(again + b"\r\n")
            assert whole(line)
        with service.raw(request_of({"puzzles": [PUZZLE], **SLOW})):
            service.until(held=1)
            time.sleep(0.6)  # and who waits for an answer has asked
            assert service.engine.held == 1


def test_a_disconnected_stream_drops_its_puzzles(toy: TRM) -> None:
    with serving(toy, streams=1) as service:
        body = {"puzzles": [PUZZLE], "baseline": True, **SLOW}
        with service.raw(request_of(body).replace(b"/v1/solve", b"/v1/solve/stream")) as line:
            assert b"200 OK" in line.recv(100)
            service.until(held=1)  # the deterministic run beside it is soon done
            assert service.ask("/v1/solve/stream", body)[0] == 429
        service.until(held=0)
        quick = {"puzzles": [PUZZLE], "outer_steps": 1}
        assert service.ask("/v1/solve/stream", quick)[0] == 200


def test_a_disconnect_before_the_first_step_frees_the_place(
    toy: TRM, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"puzzles": [PUZZLE], **SLOW}
    with serving(toy, queue=2, running=1) as service, service.raw(request_of(body)):
        service.until(held=1)
        with service.raw(request_of(body)):
            service.until(held=2)
        service.until(held=1)
        assert service.engine.counts.abandoned == 1


def test_evaluations_of_all_puzzles_are_counted(toy: TRM) -> None:
    with serving(toy) as service:
        asked = {"puzzles": [PUZZLE], "method": "guided", "particles": 2, "outer_steps": 3}
        spent = [service.ask("/v1/solve", asked)[2]["results"][0]["evaluations"] for _ in range(2)]
        assert f"tiltrm_evaluations_total {sum(spent):.1f}\n" in service.ask("/metrics")[2]


def test_seconds_are_shares_of_the_time_that_passed(service: Service) -> None:
    """Puzzles that step together divide the time of their steps among them."""
    texts = [TASK.decode(TASK.generate(seed)[0]) for seed in range(8)]
    begun = time.perf_counter()
    asked = {"puzzles": texts, "method": "guided", "outer_steps": 20}
    records = service.ask("/v1/solve", asked)[2]["results"]
    assert 0.0 < sum(record["seconds"] for record in records) <= time.perf_counter() - begun


def test_a_task_finds_its_model_among_several(toy: TRM) -> None:
    engine = Engine(torch.device("cpu"), Limits(queue=1))
    other: Any = SimpleNamespace(cells=81, vocabulary=11, task="sudoku")
    models = [
        LoadedModel("first", other, SUDOKU, 1, 1), LoadedModel("second", toy, TASK, 1, 1)
    ]  # fmt: skip
    requests = RequestHandler(engine, models, Limits())
    assert [requests.find(None, task)[0].name for task in (None, "sudoku", "sudoku4")] == [
        "first", "first", "second"
    ]  # fmt: skip
    with pytest.raises(Refusal, match="expected a model for sudoku4"):
        requests.find("first", "sudoku4")
    engine.close()


def test_a_stream_shows_the_heaviest_particles(service: Service) -> None:
    asked = {"puzzles": [PUZZLE], "method": "guided", "particles": 9, "outer_steps": 6, "beta": 4.0}
    for frame in frames_of(service.ask("/v1/solve/stream", asked)[2]):
        shown = [grid["weight"] for grid in frame["grids"]]
        assert shown == sorted(frame["weights"], reverse=True)[:6]


@pytest.mark.parametrize(
    ("error", "said"),
    [(SettingsError("a sentence for users"), "a sentence for users"),
     (ValueError("a secret of the inside"), "internal error")],
)  # fmt: skip
def test_a_diagnosis_that_fails_says_so_and_frees_its_place(
    service: Service, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    body = {"puzzles": [PUZZLE], "task": "sudoku4"}
    monkeypatch.setattr(long_calls, "diagnose", fail)
    for _ in range(2):
        status, _, found = service.ask("/v1/diagnose", body)
        assert (status, found) == (500, {"error": said})


def test_the_first_signal_says_what_is_still_open(
    toy: TRM, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {"method": "guided", "particles": 32, "outer_steps": 150}
    with serving(toy) as service, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(service.ask, "/v1/solve", {"puzzles": [PUZZLE], **settings})
        service.until(held=1)
        with caplog.at_level(logging.WARNING, "tiltrm.serve"):
            service.server.handle_exit(15, None)
        assert asked.result(30)[0] == 200
    assert "closing after 1 open requests; a second signal ends it at once" in caplog.text


def test_frames_do_not_ask_the_halting_head_again(stubborn: Any) -> None:
    calls = []

    class Counted(stubborn):  # type: ignore[misc]
        def halt_logit(self, answer: Any) -> Any:
            calls.append(len(answer))
            return super().halt_logit(answer)

    model = Counted(TASK.encode("1234341221434321"), halt=-5.0)
    given: dict[str, Any] = {"method": "guided", "seed": 0, "outer_steps": 4, "particles": 3}
    solve_texts(model, [PUZZLE], **given)
    unwatched = len(calls)
    recording = Recording(model, TASK, given, None)
    solve_texts(model, [PUZZLE], watch=recording, **given)
    assert len(recording.steps) == 4
    assert len(calls) == 2 * unwatched


@pytest.mark.parametrize(("symmetric_views", "kept"), [(False, 1), (True, 0)])
def test_a_stream_says_which_particles_are_fresh(
    toy: TRM, monkeypatch: pytest.MonkeyPatch, symmetric_views: bool, kept: int
) -> None:
    """In a plan with symmetric views, a stage keeps no particle of the one before."""
    plan = Adaptive((Stage(1, 2), Stage(4, 2)), symmetric_views=symmetric_views)
    monkeypatch.setattr("tiltrm.solving.methods.default_plan", lambda *_, **__: plan)
    shared_search.cache_clear()
    with serving(toy) as service:
        text = service.ask("/v1/solve/stream", {"puzzles": [PUZZLE], "task": "sudoku4"})[2]
    shared_search.cache_clear()
    assert [step["fresh"] for step in frames_of(text)] == [
        *[[True]] * 2, *[[slot >= kept for slot in range(4)]] * 2
    ]  # fmt: skip
