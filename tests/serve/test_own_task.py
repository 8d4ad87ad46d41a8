"""A task of one's own is served to programs and on the page, which knows it by its symbols."""

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("fastapi", reason="the extra [serve] is not installed")

from tiltrm.cli import main
from tiltrm.model import save
from tiltrm.model.trm import TRM, TRMConfig
from tiltrm.solving import solve_texts
from tiltrm.tasks import Task, adopt, registry

from .browser import Tab, chromium, text, typed
from .service import Service, serving
from .test_server_process import SETTINGS, post, process

LATIN = Path(__file__).parents[2] / "examples/latin.py"
LETTERS = "LETTERS = Latin('letters4', 4, '.abcd')\nMUTE = Grid('mute', 4, '.abcd')\n"
PUZZLE, ANSWER = "ab..............", "abcdbadccdabdcba"
NOTED = """window.drawn = ""; const write = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...where) {
  window.drawn += text; return write.call(this, text, ...where); };"""


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})


@pytest.fixture
def letters(tmp_path: Path) -> Task:
    file = tmp_path / "mine.py"
    file.write_text(LATIN.read_text() + LETTERS)
    adopt(f"{file}:MUTE")
    return adopt(f"{file}:LETTERS")


@pytest.fixture
def service(stubborn: Any, letters: Task) -> Iterator[Service]:
    """A model that knows one answer."""
    with serving(stubborn(letters.encode(ANSWER), task=letters.name)) as running:
        yield running


def test_the_command_serves_the_answers_of_the_library(tmp_path: Path) -> None:
    torch.manual_seed(0)
    sizes = TRMConfig(cells=25, vocabulary=7, width=16, layers=1, heads=2, prefix=0, inner_steps=2)
    model = TRM(sizes).eval().requires_grad_(False)
    folder = save(model, tmp_path / "latin", task="latin5", dtype=None)
    own = ("--task", f"{LATIN}:LATIN")
    with process(str(folder), *own) as (_, port):
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        line.request("GET", "/v1/generate?task=latin5&seed=3")
        made = json.loads(line.getresponse().read())
        line.close()
        found = post(port, made["puzzle"], task="latin5")
        unnamed = post(port, made["puzzle"])
    task = adopt(own[1])
    assert made["puzzle"] == task.decode(task.generate(3)[0])
    (right,) = solve_texts(model, [made["puzzle"]], task=task, **SETTINGS)
    for answer in (found, unnamed):
        assert answer is not None
        assert (answer[0], answer[1]["results"][0]["answer"]) == (200, right.answer)


def test_a_model_for_another_task_is_named(
    toy: TRM, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tiltrm.serve.server.run", lambda *_: pytest.fail("it serves"))
    folder = save(toy, tmp_path / "toy", dtype=None)
    words = ["serve", "--port", "0", "--task", f"{LATIN}:LATIN", "--model", str(folder)]
    assert main([*words, "--device", "cpu"]) == 2
    assert capsys.readouterr().err == (
        "tiltrm serve: expected a model for latin5 (25 cells, 7 ids), got one with 16 cells and 6 "
        "ids; take another model or task\n"
    )


def test_what_makes_no_puzzles_says_so(service: Service) -> None:
    assert service.ask("/v1/models")[2]["models"] == [
        {"name": "toy", "task": "letters4", "cells": 16, "side": 4, "symbols": ".abcd"}
    ]
    status, _, found = service.ask("/v1/generate?task=mute")
    assert (status, found["error"]) == (
        422, "mute cannot generate puzzles; give a file of them"
    )  # fmt: skip


def test_the_page_draws_it(service: Service, letters: Task) -> None:
    with chromium() as browser:
        tab = Tab(browser)
        tab.context.add_init_script(NOTED)
        page = tab.open(f"http://127.0.0.1:{service.port}/")
        page.wait_for_selector("[name=task][value=letters4]:checked")
        assert typed(page) == letters.decode(letters.generate(0)[0])  # one to begin with
        assert tab.violations() == []
        page.click("#paste summary")
        for nonsense, said in (
            ("ab?", "Expected “abcd” and “.” for a blank, got “?” at row 1, column 3"),
            ("abcd", "Expected 16 cells, got 4; write “.” for a blank"),
        ):
            page.fill("#text", nonsense)
            page.click("#take")
            assert said in text(page, "#fault")
        page.click("#clear")
        page.keyboard.type("aBx")  # in either case; x is no symbol
        assert typed(page) == PUZZLE
        page.evaluate("window.drawn = ''")
        tab.solve()
        assert text(page, "#verdict-title") == "Solved"
        assert ANSWER in page.evaluate("window.drawn")
        assert "--task mine.py:LETTERS" in text(page, "#command")
        link = page.evaluate("location.hash")
        page.goto("about:blank")
        page = tab.open(f"http://127.0.0.1:{service.port}/", link)
        page.wait_for_selector("[name=task][value=letters4]:checked")
        assert typed(page) == PUZZLE
        tab.context.close()
    assert tab.complaints == []
