"""The site in a real Chromium, from a plain static host under a sub-path. Needs the npm package."""

import itertools
import json
import shlex
from pathlib import Path

import pytest
from tests.serve.browser import PHONE, WIDE, Tab, text

import tiltrm
from tiltrm.cli import main
from tiltrm.model import save

from .hosted import FOUR, MODELS, READY, RUN, address, tab

__all__ = ["address", "tab"]  # fixtures


def test_the_browser_gives_the_librarys_answers(tab: Tab, address: str) -> None:
    """Isolated by its service worker, so with threads; nothing asked of anybody else."""
    page = tab.page
    page.goto(f"{address}?backend=wasm&threads=2")
    page.wait_for_function(READY)
    assert "WebAssembly, 2 threads" in text(page, "#engine")
    model = MODELS["toy"]
    for seed, settings in enumerate((
        {"method": "guided", "particles": 4, "outer_steps": 5, "beta": 3.5, "resample_below": 0.9},
        {"method": "adaptive", "outer_steps": 23},
    )):  # fmt: skip
        puzzle = FOUR.decode(FOUR.generate(seed)[0])
        found = page.evaluate(RUN, [puzzle, {**settings, "seed": seed}])
        wanted = tiltrm.solve(model, puzzle, seed=seed, **settings)  # type: ignore[arg-type]
        assert found["answer"] == FOUR.decode(wanted.answers[0])
        assert found["evaluations"] == int(wanted.evaluations[0])
        assert found["confidence"] == pytest.approx(float(wanted.confidence[0]), abs=1e-3)
    assert [url for url in tab.requests if not url.startswith(address)] == []
    assert tab.complaints == []


def test_the_page_solves_and_says_on_what(
    tab: Tab, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """The command gives the same answer to a reader who has the folder of the model."""
    page = tab.page
    page.goto(f"{address}?plain&backend=wasm#task=sudoku4&puzzle=3..4.4........31&method=guided"
              "&particles=3&outer_steps=2")  # fmt: skip
    page.wait_for_function(READY)
    page.click("#solve")
    page.wait_for_selector("#verdict.good, #verdict.bad")
    assert "On WebAssembly, 1 thread" in text(page, "#engine")
    assert "evaluations a second" in text(page, "#engine")
    assert "tiltrm solve 3..4.4........31 --model toy --method guided" in text(page, "#command")
    assert tab.violations() == []
    assert tab.complaints == []
    assert "toy is the model folder that this site was made from" in text(page, "#command-note")
    found = page.evaluate(RUN, ["3..4.4........31", {"method": "guided", "particles": 3,
                                                     "outer_steps": 2}])  # fmt: skip
    save(MODELS["toy"], tmp_path / "toy", dtype=None)
    monkeypatch.chdir(tmp_path)
    main([*shlex.split(text(page, "#command"))[1:], "--json", "--device", "cpu"])
    wanted = json.loads(capsys.readouterr().out)
    assert (found["answer"], found["evaluations"]) == (wanted["answer"], wanted["evaluations"])


def test_a_link_with_a_seed_that_is_none_is_refused_in_words(tab: Tab, address: str) -> None:
    page = tab.page
    page.goto(f"{address}?plain&backend=wasm#task=sudoku4&puzzle=3..4.4........31&seed=1.5")
    page.wait_for_function(READY)
    page.click("#solve")
    page.wait_for_selector("#trouble:has-text('seed must be a whole number, got 1.5.')")
    assert tab.complaints == []


RUN_LINK = "#task=sudoku4&puzzle=3..4.4........31&method=guided&particles=3&outer_steps=2"


def test_link_file_and_second_method_without_a_server(
    tab: Tab, address: str, tmp_path: Path
) -> None:
    """With the keyboard alone up to the verdict; axe finds nothing, in any theme and size."""
    page = tab.page
    page.goto(f"{address}?plain&backend=wasm{RUN_LINK}")
    page.wait_for_function(READY)
    page.focus("[role=grid]")
    page.keyboard.press("Control+Enter")
    tab.settle()
    page.click("#link")
    assert page.url.partition("#")[2] == RUN_LINK[1:].replace("guided&", "guided&seed=0&")
    words = text(page, "#words")
    with page.expect_download() as saved:
        page.click("#save")
    saved.value.save_as(tmp_path / "replay.html")
    page.select_option("#second-method", "deterministic")
    page.click("#second-run")
    page.wait_for_selector("#second-words:has-text(' evaluations (above: ')")
    for size, theme in itertools.product((PHONE, WIDE), ("light", "dark")):
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=theme)
        assert tab.violations() == []
        assert tab.overflow() <= 0
    alone = Tab(tab.context.browser)
    shown = alone.open((tmp_path / "replay.html").as_uri())
    assert text(shown, "#words") == words
    assert len(alone.requests) == 1
    assert alone.complaints == tab.complaints == []
    alone.context.close()
