"""The server: the library's own answers in any batch, limits, and errors that it survives."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra [serve] is not installed")
pytest.importorskip("prometheus_client", reason="the extra [serve] is not installed")


from tiltrm.diagnose import SMALL, diagnose
from tiltrm.model.trm import TRM
from tiltrm.solving import METHODS, exploration_for, solve_texts
from tiltrm.tasks import Sudoku

from .service import Service, request_of, serving

TASK = Sudoku(2)
ANSWER = "1234341221434321"
PUZZLE, BAD = "1...3..2.1....2.", "11.............."
TEXTS = [TASK.decode(TASK.generate(seed)[0]) for seed in range(12)]
SLOW = {"method": "guided", "particles": 64, "outer_steps": 1000}


@pytest.fixture(scope="module")
def service(toy: TRM) -> Iterator[Service]:
    with serving(toy) as running:
        yield running


def untimed(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != "seconds"}


def library(model: Any, texts: list[str], **settings: Any) -> list[dict[str, Any]]:
    return [untimed(json.loads(s.as_json())) for s in solve_texts(model, texts, **settings)]


def solve(service: Service, texts: list[str], **settings: Any) -> list[dict[str, Any]]:
    status, _, found = service.ask("/v1/solve", {"puzzles": texts, **settings})
    assert status == 200, found
    return [untimed(record) for record in found["results"]]


@pytest.mark.parametrize("method", METHODS)
def test_answers_are_those_of_the_library(service: Service, toy: TRM, method: str) -> None:
    texts = [TEXTS[0], BAD, *TEXTS[1:4]]
    settings: dict[str, Any] = {"method": method, "outer_steps": 26, "seed": 3}
    found = solve(service, texts, **settings)
    assert found == library(toy, texts, **settings)
    assert found[1]["error"] is not None


def test_a_tilt_of_zero_is_not_left_out(service: Service, toy: TRM) -> None:
    settings: dict[str, Any] = {"method": "guided", "beta": 0.0, "outer_steps": 6}
    assert solve(service, TEXTS[:3], **settings) == library(toy, TEXTS[:3], **settings)
    assert library(toy, TEXTS[:3], **settings) != library(
        toy, TEXTS[:3], method="guided", beta=4.0, outer_steps=6
    )


def test_every_kind_of_setting_is_that_of_the_library(service: Service, toy: TRM) -> None:
    """A choice, a whole number, a number below zero; a switch that is off is not given."""
    own: list[dict[str, Any]] = [
        {"method": "guided", "outer_steps": 6, "select": "best_score", "trigger": "always"},
        {"method": "guided", "outer_steps": 6, "score_every": 2, "beta": 4.0},
        {"outer_steps": 26, "halt_above": -0.5, "agree_share": 1.0},
    ]
    for settings in own:
        found = solve(service, TEXTS[:3], **settings)
        assert found == library(toy, TEXTS[:3], **settings)
        assert found != library(toy, TEXTS[:3], method=settings.get("method", "adaptive"))
    off = {"method": "deterministic", "outer_steps": 3}
    assert solve(service, TEXTS[:1], rules=False, **off) == library(toy, TEXTS[:1], **off)


def test_results_do_not_depend_on_other_requests(service: Service, toy: TRM) -> None:
    kinds: list[dict[str, Any]] = [
        {"outer_steps": 40}, {"outer_steps": 40, "seed": 5}, {"method": "guided", "outer_steps": 9},
        {"method": "guided", "outer_steps": 30, "select": "best_so_far", "noise": 0.5},
    ]  # fmt: skip
    work = [(text, kind) for text in TEXTS for kind in kinds]
    with ThreadPoolExecutor(16) as pool:
        among = list(pool.map(lambda item: solve(service, [item[0]], **item[1]), work))
    for (text, kind), found in zip(work, among, strict=True):
        assert found == library(toy, [text], **kind)


def test_stream_shows_every_step_then_the_result(service: Service, toy: TRM) -> None:
    own = {
        "outer_steps": 28,
        "resample_below": 0.1,
    }  # without symmetric views, so particle 0 goes on
    body = {"puzzles": [PUZZLE], "baseline": True, **own}
    status, headers, text = service.ask("/v1/solve/stream", body)
    assert (status, headers["content-type"].partition(";")[0]) == (200, "text/event-stream")
    events = []
    for block in text.strip().split("\n\n"):
        name, data = block.split("\n")
        events.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    assert [name for name, _ in events] == ["start", *["step"] * 28, "baseline", "result"]
    steps = [data for name, data in events if name == "step"]
    assert [step["step"] for step in steps] == list(range(1, 29))
    assert [step["stage"] for step in steps] == [0] * 24 + [1] * 4
    assert steps[24]["fresh"] == [False, *[True] * 7]
    for step in steps:
        assert sum(step["weights"]) == pytest.approx(1.0, abs=1e-3)
        assert len(step["ancestors"]) == step["particles"]
    result = events[-1][1]
    assert steps[-1]["evaluations"] == result["evaluations"]
    assert result["outer_steps"] == 28
    extra = ("outer_steps", "particles")
    plain = {key: value for key, value in result.items() if key not in extra}
    expected = library(toy, [PUZZLE], **own)[0]
    assert untimed(plain) == expected


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[" * 100_000, 400),
        (b'{"puzzles": ' + b"[" * 5000 + b"]" * 5000 + b"}", 400),
        (b"\xff\xfe", 400),
        ({"puzzles": []}, 422),
        ({"puzzles": PUZZLE}, 422),
        ({"puzzles": [1]}, 422),
        ({"puzzles": [PUZZLE] * 1001}, 422),
        ({"puzzles": ["." * 5000]}, 422),
        ({"puzzles": [PUZZLE], "unheard_of": 1}, 422),
        ({"puzzles": [PUZZLE], "particles": 10**9}, 422),
        ({"puzzles": [PUZZLE], "particles": "4"}, 422),
        ({"puzzles": [PUZZLE], "outer_steps": 0}, 422),
        ({"puzzles": [PUZZLE], "outer_steps": 1025}, 422),
        ({"puzzles": [PUZZLE], "rules": 1}, 422),
        ({"puzzles": [PUZZLE], "rules": True, "halt_above": 1.0}, 422),
        ({"puzzles": [PUZZLE], "guide": 1}, 422),
        ({"puzzles": [PUZZLE], "method": "guided", "trigger": "sometimes"}, 422),
        ({"puzzles": [PUZZLE], "method": "guided", "select": "oracle"}, 422),
        ({"puzzles": [PUZZLE], "copies": 2}, 422),
        ({"puzzles": [PUZZLE], "seed": 10**30}, 422),
        (b'{"puzzles": ["' + PUZZLE.encode() + b'"], "noise": NaN}', 422),
        ({"puzzles": [PUZZLE], "method": "magic"}, 422),
        ({"puzzles": [PUZZLE], "method": "ptrm", "beta": 1.0}, 422),
        ({"puzzles": [PUZZLE], "guide": "unheard_of"}, 422),
        ({"puzzles": [PUZZLE], "model": "/etc/passwd"}, 422),
        ({"puzzles": [PUZZLE], "task": "maze"}, 422),
    ],
)
def test_a_bad_request_gets_one_sentence(service: Service, body: Any, status: int) -> None:
    got, _, found = service.ask("/v1/solve", body)
    assert got == status
    assert list(found) == ["error"]
    assert "\n" not in found["error"]
    assert "Traceback" not in found["error"]
    assert service.ask("/healthz")[0] == 200


@pytest.mark.parametrize("guide", ["learned:/etc", "halting+0.5*learned:x", "2 * learned:../x@0"])
@pytest.mark.parametrize("path", ["/v1/solve", "/v1/solve/stream"])
def test_a_request_opens_no_guide_of_the_server(
    service: Service, monkeypatch: pytest.MonkeyPatch, path: str, guide: str
) -> None:
    opened: list[object] = []
    monkeypatch.setattr("tiltrm.solving.guide_folder.load_guide", opened.append)
    status, _, found = service.ask(path, {"puzzles": [PUZZLE], "guide": guide})
    assert status == 422
    assert "without a folder" in found["error"]
    assert not opened


def test_a_large_body_is_cut_off_declared_or_not(service: Service) -> None:
    head = b"POST /v1/solve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    for how, wrap in (
        (b"Content-Length: 104857600\r\n\r\n", lambda part: part),
        (b"Transfer-Encoding: chunked\r\n\r\n", lambda part: b"10000\r\n" + part + b"\r\n"),
    ):
        line = service.raw(head + how)
        sent = 0
        try:
            while sent < 100 << 20:
                line.sendall(wrap(b" " * 65536))
                sent += 65536
        except OSError:
            pass  # it hung up, as it should
        assert sent < 100 << 20
        line.close()
    assert service.ask("/healthz")[0] == 200


def test_half_a_body_does_not_wait_for_ever(toy: TRM) -> None:
    with serving(toy, body_seconds=0.3) as service:
        head = b"POST /v1/solve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        with service.raw(head + b'Content-Length: 100\r\n\r\n{"puz') as line:
            assert line.recv(100).startswith(b"HTTP/1.1 408")


def test_only_json_is_read_and_only_own_names_are_answered(service: Service) -> None:
    body = {"puzzles": [PUZZLE]}
    assert service.ask("/v1/solve", body, {"Content-Type": "text/plain"})[0] == 415
    assert service.ask("/healthz", headers={"Host": "evil.example"})[0] == 421


def test_every_answer_carries_the_policy_and_no_cross_origin_leave(service: Service) -> None:
    for path in ("/", "/healthz", "/nowhere", "/docs", "/static/main.js"):
        _, headers, _ = service.ask(path, headers={"Origin": "http://evil.example"})
        assert headers["content-security-policy"].startswith("default-src 'self';")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert not any(name.startswith("access-control") for name in headers)
    assert "http" not in service.ask("/docs")[2]


def test_facts(service: Service) -> None:
    assert service.ask("/v1/models")[2]["models"] == [
        {"name": "toy", "task": "sudoku4", "cells": 16, "side": 4, "symbols": ".1234"}
    ]
    made = service.ask("/v1/generate?task=sudoku4&seed=3")[2]
    assert made["puzzle"] == TASK.decode(TASK.generate(3)[0])
    assert service.ask("/v1/generate?task=chess")[0] == 422
    assert "/v1/solve" in service.ask("/openapi.json")[2]["paths"]
    assert 'tiltrm_puzzles_total{outcome="solved"}' in service.ask("/metrics")[2]


def test_a_few_puzzles_are_diagnosed_as_by_the_command(service: Service, toy: TRM) -> None:
    status, _, report = service.ask("/v1/diagnose", {"puzzles": TEXTS[:2], "task": "sudoku4"})
    assert status == 200
    own = {"task": Sudoku(2), "settings": exploration_for("guided", "sudoku4", SMALL)}
    same = diagnose(toy, Sudoku(2).encode_all(TEXTS[:2]), None, **own)
    assert report == json.loads(same.as_json())
    status, _, refused = service.ask("/v1/diagnose", {"puzzles": ["x"], "task": "sudoku4"})
    assert status == 422
    assert "expected" in refused["error"]


def test_the_token_is_asked_for(toy: TRM) -> None:
    with serving(toy, token="a token of our own") as service:
        assert service.ask("/healthz")[0] == 200
        for shown in ("", "Bearer wrong", "a token of our own"):
            assert service.ask("/v1/models", headers={"Authorization": shown})[0] == 401
        assert service.ask("/v1/settings")[0] == 200  # the form, which has a field for the token
        right = {"Authorization": "Bearer a token of our own"}
        assert service.ask("/v1/models", headers=right)[0] == 200


def test_a_full_queue_refuses_at_once_and_a_disconnect_frees_it(toy: TRM) -> None:
    with serving(toy, queue=2) as service:
        line = service.raw(request_of({"puzzles": TEXTS[:2], **SLOW}))
        service.until(held=2)
        begun = time.monotonic()
        status, headers, _ = service.ask("/v1/solve", {"puzzles": [PUZZLE]})
        assert (status, int(headers["retry-after"]) >= 1) == (429, True)
        assert time.monotonic() - begun < 10.0  # on a busy machine; the queue is full for longer
        assert service.ask("/v1/solve", {"puzzles": TEXTS[:3]})[0] == 422
        line.close()
        service.until(held=0)
        assert service.ask("/v1/solve", {"puzzles": [PUZZLE], "outer_steps": 1})[0] == 200


def test_a_request_that_takes_too_long_is_ended(toy: TRM) -> None:
    with serving(toy, seconds=0.3) as service:
        assert service.ask("/v1/solve", {"puzzles": [PUZZLE], **SLOW})[0] == 504
        text = service.ask("/v1/solve/stream", {"puzzles": [PUZZLE], **SLOW})[2]
        assert text.strip().split("\n\n")[-1].startswith("event: error")
        service.until(held=0)


def test_closing_finishes_accepted_puzzles_and_refuses_others(toy: TRM) -> None:
    settings: dict[str, Any] = {"method": "guided", "particles": 32, "outer_steps": 150}
    with serving(toy) as service, ThreadPoolExecutor(1) as pool:
        accepted = pool.submit(solve, service, TEXTS[:4], **settings)
        service.until(held=4)
        service.server.handle_exit(15, None)
        assert service.ask("/v1/solve", {"puzzles": [PUZZLE]})[0] == 503
        assert accepted.result(30) == library(toy, TEXTS[:4], **settings)


def test_a_model_that_raises_fails_one_puzzle_only(stubborn: Any) -> None:
    poison = TASK.encode(TEXTS[5])

    class Touchy(stubborn):  # type: ignore[misc]
        def refine(self, inputs: Any, state: Any) -> Any:
            if (inputs[..., 0] == poison.float()).all(-1).any():
                raise RuntimeError("a secret of the inside")
            return super().refine(inputs, state)

    model = Touchy(TASK.encode(ANSWER))
    with serving(model) as service, ThreadPoolExecutor(12) as pool:
        asked = pool.map(lambda text: service.ask("/v1/solve", {"puzzles": [text]}), TEXTS)
        for text, (status, _, found) in zip(TEXTS, asked, strict=True):
            if text == TEXTS[5]:
                assert (status, found) == (500, {"error": "internal error"})
            else:
                assert status == 200
                assert found["results"][0]["puzzle"] == text
        assert service.engine.alive


def test_the_engine_ends_with_the_server(toy: TRM) -> None:
    with serving(toy) as service:
        assert service.engine.alive
    service.engine.join()
    assert not service.engine.alive
