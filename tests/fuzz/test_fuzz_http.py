"""Abuse over HTTP: every request is answered or refused with one sentence, and the server goes on.

`make fuzz` runs FUZZ_EXAMPLES of each kind; the automatic checks run a few.
"""

import http.client
import json
import logging
import socket
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytest.importorskip("fastapi", reason="the extra [serve] is not installed")

from serve.service import Service, serving
from tiltrm.model.trm import TRM
from tiltrm.serve.requests import SETTINGS

from .test_fuzz import CHANGES, MANY, mutated

PUZZLE = "1...3..2.1....2."
SMALL: dict[str, Any] = {"method": "guided", "particles": 2, "outer_steps": 2}
POSTS = ("/v1/solve", "/v1/solve/stream", "/v1/diagnose")
GETS = ("/", "/v1/models", "/v1/settings", "/v1/limits", "/v1/replay", "/v1/generate", "/healthz",
        "/metrics", "/docs", "/openapi.json", "/static/main.js", "/static/../app.py", "/nowhere",
        "/static/%2e%2e/%2e%2e/app.py", "//", "/v1/solve/")  # fmt: skip
ANSWERED = {
    200,
    304,
    400,
    401,
    403,
    404,
    405,
    408,
    413,
    415,
    421,
    422,
    426,
    429,
    431,
    501,
    503,
    504,
}
PAUSE = 0.5  # seconds after which the server gives up on an incomplete request
VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30)
    | st.sampled_from([2**63, -(2**63), 10**400, 1e308, 5e-324, "", "sudoku", "maze", "sudoku4",
                       PUZZLE, "8" * 4096, "guided", "adaptive", "\ud800", "[" * 50])
)  # fmt: skip
JSON_VALUES = st.recursive(
    VALUES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)  # fmt: skip
KEYS = st.sampled_from(["puzzles", "model", "task", "method", "seed", "abstain", "risk", "answers",
                        "baseline", *SETTINGS]) | st.text(max_size=10)  # fmt: skip
NAMES = st.sampled_from(["Host", "Origin", "Content-Type", "Content-Length", "Transfer-Encoding",
                         "Expect", "Connection", "Authorization", "Range", "Accept-Encoding",
                         "Sec-Fetch-Site", "X-Forwarded-For", "Upgrade"])  # fmt: skip


class Complaints(logging.Handler):
    """Keeps the errors that a server logs."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(self.format(record))


@pytest.fixture(scope="module")
def service(toy: TRM) -> Iterator[tuple[Service, list[str]]]:
    complaints = Complaints()
    with serving(
        toy, work=2000, seconds=5.0, body=1 << 16, body_seconds=PAUSE, idle_seconds=PAUSE,
        client_rate=1e6, client_burst=10**6, outer_steps=50, particles=40, diagnosed=2,
    ) as running:  # fmt: skip
        loggers = [logging.getLogger(name) for name in ("tiltrm.serve", "uvicorn", "asyncio")]
        for logger in loggers:
            logger.addHandler(complaints)
        yield running, complaints.said
        for logger in loggers:
            logger.removeHandler(complaints)


def answer(service: Service, text: bytes) -> tuple[int, str, bytes] | None:
    """Status, type and content; None where the server hung up without an answer."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as line:
        try:
            line.sendall(text)
            found = http.client.HTTPResponse(line)
            found.begin()
            return found.status, found.headers.get("content-type", ""), found.read()
        except (http.client.HTTPException, ConnectionError):
            return None


def check(found: tuple[int, str, bytes] | None, complaints: list[str]) -> None:
    assert complaints == []
    if found is None:
        return
    status, kind, content = found
    assert status in ANSWERED, (status, content)
    assert b"Traceback" not in content
    if kind == "application/json" and status >= 400:
        said = json.loads(content)
        if "error" in said:  # /healthz has a status of its own
            assert list(said) == ["error"]
            assert "\n" not in said["error"]
            assert len(said["error"]) < 2000


def request(method: str, path: str, body: bytes, headers: dict[str, str]) -> bytes:
    own = {"Host": "localhost", "Content-Type": "application/json", "Connection": "close",
           **({"Content-Length": str(len(body))} if body else {}), **headers}  # fmt: skip
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in own.items())]
    return "\r\n".join(lines).encode("utf-8", "replace") + b"\r\n\r\n" + body


@given(st.sampled_from(POSTS), st.dictionaries(KEYS, JSON_VALUES, max_size=4))
@example("/v1/solve", {"puzzles": [PUZZLE, "x", ""], "noise": 1e308})
@example("/v1/solve", {"puzzles": [PUZZLE] * 65, "seed": 2**62})
@example("/v1/solve", {"guide": "1e308*halting"})
@example("/v1/diagnose", {"answers": ["1"]})
@MANY
def test_any_body(
    service: tuple[Service, list[str]], bounded: Callable[[], Any], path: str,
    changes: dict[str, Any],
) -> None:  # fmt: skip
    running, complaints = service
    own = {"puzzles": [PUZZLE], **({} if path == "/v1/diagnose" else SMALL)}
    body = json.dumps({**own, **changes}).encode("utf-8", "replace")
    with bounded():
        check(answer(running, request("POST", path, body, {})), complaints)


@given(
    st.sampled_from(GETS) | st.text(max_size=20).map(lambda text: f"/{quote(text)}"),
    st.sampled_from(["GET", "HEAD", "POST", "PUT", "OPTIONS", "DELETE", "TRACE", "G\x00T"]),
    st.dictionaries(st.sampled_from(["task", "seed", "x"]), st.text(max_size=12), max_size=3),
    st.dictionaries(NAMES, st.text(max_size=20), max_size=3),
)
@example("/v1/generate", "GET", {"task": "sudoku4", "seed": "1"}, {})
@example("/v1/generate", "GET", {"seed": "99999999999999999999"}, {})
@example("/v1/solve/", "GET", {}, {"host": "localhost"})  # no redirection to what Host says
@MANY
def test_any_path_and_header(
    service: tuple[Service, list[str]], bounded: Callable[[], Any], path: str, method: str,
    query: dict[str, str], headers: dict[str, str],
) -> None:  # fmt: skip
    running, complaints = service
    if path == "/v1/generate":
        query = {"task": "sudoku4", **query}
    asked = "&".join(f"{name}={quote(value)}" for name, value in query.items())
    clean = {name: "".join(value.split()) for name, value in headers.items()}
    with bounded():
        text = request(method, f"{path}?{asked}" if asked else path, b"", clean)
        check(answer(running, text), complaints)


@given(st.sampled_from(POSTS), CHANGES)
@MANY
def test_any_bytes(
    service: tuple[Service, list[str]], bounded: Callable[[], Any], path: str,
    changes: list[tuple[int, int, bytes]],
) -> None:  # fmt: skip
    """A good request with some bytes replaced, removed or inserted."""
    running, complaints = service
    own = {"puzzles": [PUZZLE], **({} if path == "/v1/diagnose" else SMALL)}
    text = mutated(request("POST", path, json.dumps(own).encode(), {}), changes)
    with bounded():
        check(answer(running, text), complaints)


def test_after_all_that_it_answers_as_before(service: tuple[Service, list[str]]) -> None:
    running, complaints = service
    assert running.ask("/healthz")[0] == 200
    assert running.ask("/v1/solve", {"puzzles": [PUZZLE], **SMALL})[0] == 200
    running.until(held=0)
    assert complaints == []
