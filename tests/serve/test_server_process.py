"""`tiltrm serve` as a process under load: SIGTERM, kill -9 and a restart; `solve --html`."""

import http.client
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tiltrm.cli import main
from tiltrm.model import save
from tiltrm.model.trm import TRM
from tiltrm.solving import solve_texts
from tiltrm.tasks import SUDOKU, Sudoku

from .service import request_of

TASK = Sudoku(2)
TEXTS = [TASK.decode(TASK.generate(seed)[0]) for seed in range(12)]
SETTINGS: dict[str, Any] = {"method": "guided", "particles": 8, "outer_steps": 40}


@pytest.fixture(scope="module")
def folder(toy: TRM, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save(toy, tmp_path_factory.mktemp("models") / "toy", dtype=None))


@contextmanager
def process(folder: str, *more: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    pytest.importorskip("fastapi", reason="the extra [serve] is not installed")
    command = [sys.executable, "-m", "tiltrm.cli", "serve", "--model", folder, "--port", "0",
               "--device", "cpu", *more]  # fmt: skip
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as running:
        try:
            assert running.stdout is not None
            said = re.search(r":(\d+)/", running.stdout.readline())
            assert said is not None
            yield running, int(said[1])
        finally:
            running.kill()


def post(port: int, text: str, **more: Any) -> tuple[int, dict[str, Any]] | None:
    """Status and body; None where the server was not there, or went away."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = json.dumps({"puzzles": [text], **SETTINGS, **more})
    try:
        line.request("POST", "/v1/solve", body, {"Content-Type": "application/json"})
        answer = line.getresponse()
        return answer.status, json.loads(answer.read())
    except (OSError, http.client.HTTPException):
        return None
    finally:
        line.close()


def held(port: int) -> int:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    line.request("GET", "/metrics")
    found = re.search(r"^tiltrm_held_puzzles (\d+)", line.getresponse().read().decode(), re.M)
    line.close()
    assert found is not None
    return int(found[1])


def answers(toy: TRM) -> dict[str, str | None]:
    return {s.puzzle: s.answer for s in solve_texts(toy, TEXTS, **SETTINGS)}


def test_sigterm_under_load_loses_no_accepted_puzzle(folder: str, toy: TRM) -> None:
    right = answers(toy)
    with process(folder) as (running, port), ThreadPoolExecutor(len(TEXTS)) as pool:
        asked = [pool.submit(post, port, text) for text in TEXTS]
        while (accepted := held(port)) < 4:
            pass
        running.send_signal(signal.SIGTERM)
        results = [future.result() for future in asked]
        assert running.wait(30) == 0
    solved = 0
    for text, result in zip(TEXTS, results, strict=True):
        if result is not None and result[0] == 200:
            (record,) = result[1]["results"]
            assert (record["puzzle"], record["answer"]) == (text, right[text])
            solved += 1
        else:
            assert result is None or result[0] == 503
    assert solved >= accepted


def test_a_second_signal_ends_it_in_the_middle_of_a_step(folder: str) -> None:
    with process(folder) as (running, port), ThreadPoolExecutor(1) as pool:
        asked = pool.submit(post, port, TEXTS[0], particles=256, outer_steps=1024)
        while held(port) < 1:
            pass
        running.send_signal(signal.SIGINT)
        assert running.stderr is not None
        said = running.stderr.readline()
        running.send_signal(signal.SIGINT)
        assert running.wait(10) == 128 + signal.SIGINT  # not -6, which is an abort
        assert asked.result(10) is None
        assert said.startswith("closing after ")
        assert said.endswith("a second signal ends it at once\n")
        assert running.stderr.read() == ""


@pytest.mark.parametrize("leaves", [False, True])
def test_sigterm_during_a_diagnosis_ends_cleanly(leaves: bool) -> None:
    """With the bundled model, whose steps are long, whether its client waits or has gone."""
    puzzle = SUDOKU.decode(SUDOKU.generate(0)[0])
    text = request_of({"puzzles": [puzzle] * 8}).replace(b"/v1/solve", b"/v1/diagnose")
    with process("sudoku-extreme") as (running, port):
        with socket.create_connection(("127.0.0.1", port)) as line:
            line.sendall(text)
            time.sleep(1.0)
            if leaves:
                line.close()
            running.send_signal(signal.SIGTERM)
            assert running.wait(10) == 0  # not -6, an abort of the computing thread
        assert running.stderr is not None
        assert "terminate called" not in running.stderr.read()


def test_kill_and_restart_is_clean(folder: str, toy: TRM) -> None:
    right = answers(toy)
    with process(folder) as (running, port), ThreadPoolExecutor(len(TEXTS)) as pool:
        asked = [pool.submit(post, port, text) for text in TEXTS]
        while held(port) < 4:
            pass
        running.kill()
        for text, future in zip(TEXTS, asked, strict=True):
            result = future.result()
            assert result is None or result[1]["results"][0]["answer"] == right[text]
    with process(folder) as (_, port):
        result = post(port, TEXTS[0])
        assert result is not None
        assert result[1]["results"][0]["answer"] == right[TEXTS[0]]


def test_html_holds_the_run(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.html"
    arguments = ["solve", TEXTS[0], "--model", folder, "--outer-steps", "26", "--json"]
    assert main([*arguments, "--html", str(file)]) in (0, 1)
    printed = json.loads(capsys.readouterr().out)
    found = re.search(r'id="replay">(.*?)</script>', file.read_text("utf-8"), re.S)
    assert found is not None
    replay = json.loads(found[1])
    assert [step["step"] for step in replay["steps"]] == list(range(1, 27))
    assert {key: replay["result"][key] for key in printed} == printed
    assert replay["baseline"]["outer_steps"] == 48
    assert replay["start"]["command"].startswith(f"tiltrm solve {TEXTS[0]} --model ")


def test_html_shows_one_puzzle_and_names_a_file_it_cannot_write(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quick = ["--model", folder, "--method", "deterministic", "--outer-steps", "1", "--html"]
    assert main(["solve", *TEXTS[:2], *quick, str(tmp_path / "a.html")]) == 2
    assert main(["solve", TEXTS[0], *quick, str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err
    assert not (tmp_path / "a.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--queue", "0"), "--queue"),
        (("--timeout", "nan"), "--timeout"),
        (("--port", "99999"), "--port"),
        (("--token-file", "missing"), "missing"),
    ],
)
def test_a_wrong_flag_is_named(
    folder: str, arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("fastapi", reason="the extra [serve] is not installed")
    assert main(["serve", "--model", folder, "--device", "cpu", *arguments]) == 2
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert message in err


def test_without_the_extra_it_says_what_to_install(
    folder: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith("tiltrm.serve.")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("server", "requests"):
        monkeypatch.delattr(f"tiltrm.serve.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert main(["serve", "--model", folder]) == 2
    assert "tiltrm[serve]" in capsys.readouterr().err


def test_the_log_is_json_and_names_requests(folder: str) -> None:
    with process(folder, "--log") as (running, port):
        assert post(port, TEXTS[0]) is not None
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) == 0
        assert running.stderr is not None
        lines = [json.loads(line) for line in running.stderr.read().splitlines()]
    solved = [line for line in lines if line.get("route") == "/v1/solve"]
    assert [(line["status"], len(line["request"])) for line in solved] == [(200, 16)]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux")
def test_a_log_on_a_full_disk_does_not_stop_the_server(folder: str) -> None:
    command = [sys.executable, "-m", "tiltrm.cli", "serve", "--model", folder, "--port", "0",
               "--device", "cpu", "--log"]  # fmt: skip
    with Path("/dev/full").open("w") as full, subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=full, text=True
    ) as running:  # fmt: skip
        try:
            assert running.stdout is not None
            said = re.search(r":(\d+)/", running.stdout.readline())
            assert said is not None
            found = [post(int(said[1]), text) for text in TEXTS[:2]]
        finally:
            running.kill()
    assert [each and each[0] for each in found] == [200, 200]


def test_an_open_address_without_a_token_is_warned_about(folder: str) -> None:
    with process(folder, "--host", "0.0.0.0") as (running, port):
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        line.request("GET", "/healthz", headers={"Host": "evil.example"})
        assert line.getresponse().status == 421  # a rebound name, here too
        line.close()
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) == 0
        assert running.stderr is not None
        assert "give --token-file F" in running.stderr.read()


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs Linux")
def test_a_model_that_cannot_be_read_is_a_sentence(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(folder, tmp_path / "toy")
    weights = tmp_path / "toy" / "model.safetensors"
    weights.unlink()
    weights.symlink_to("/proc/self/mem")  # every read fails
    assert main(["serve", "--model", str(tmp_path / "toy"), "--port", "0"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
