"""The page when a run is stopped, fails or is asked for twice; odd links; layout shifts."""

import math
from pathlib import Path
from typing import Any

import pytest

from tiltrm.serve import recording
from tiltrm.tasks import SUDOKU

from . import stub
from .browser import PHONE, WIDE, Tab, text

SHIFTED = """() => new Promise(done => new PerformanceObserver(list => done(list.getEntries()
    .filter(shift => !shift.hadRecentInput).reduce((sum, shift) => sum + shift.value, 0)))
    .observe({type: 'layout-shift', buffered: true}) ?? setTimeout(() => done(0), 500))"""
COUNTED = """['slider', 'figures'].map(id => document.getElementById(id))
    .map(element => element.max ?? element.textContent)"""
PICTURE = "document.getElementById('cloud').toDataURL()"


def step(page: Any, number: int) -> None:
    """Wait until so many frames have come."""
    page.wait_for_function("n => document.getElementById('slider').max >= n", arg=number)


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_nothing_jumps(
    browser: Any, address: str, size: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither when the page opens nor when a verdict comes (0.1 and less is called good)."""
    monkeypatch.setattr(stub.Handler, "pause", 0.06)
    tab = Tab(browser, size=size)
    page = tab.open(address)
    assert page.evaluate(SHIFTED) < 0.02
    height = "document.getElementById('puzzle').offsetHeight"
    before = page.evaluate(height)
    tab.solve()
    assert page.evaluate(SHIFTED) < 0.05
    page.focus("[role=grid]")
    page.keyboard.type("88")
    assert "twice" in text(page, "#fault")
    if size is PHONE:  # a wide one is as high as what stands beside it
        assert page.evaluate(height) == before
    tab.context.close()


def test_a_run_that_is_stopped_can_be_watched(
    tab: Tab, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stub.Handler, "pause", 0.1)
    stub.Handler.left.clear()
    page = tab.open(address)
    page.click("#solve")
    step(page, 3)
    assert text(page, "#verdict-title") == "Running …"
    frames, figures = page.evaluate(COUNTED)  # at one moment
    assert f"Outer steps{frames}" in figures
    page.wait_for_timeout(600)  # a click soon after another would count as a double one
    page.click("#solve")
    page.wait_for_selector("#verdict-title:has-text('Stopped')")
    assert text(page, "#status") == "Stopped."
    page.wait_for_timeout(500)
    assert stub.Handler.left == ["step"]  # the server hears of it
    page.focus("#slider")
    page.keyboard.press("End")
    last = text(page, "#where")
    page.click("#play")
    page.wait_for_selector("#where:has-text('step 1 ')")
    page.wait_for_function("last => document.getElementById('where').textContent === last",
                           arg=last)  # fmt: skip
    page.wait_for_selector("#play[aria-label=Play]")  # and it comes to rest


def test_a_second_run_shows_nothing_of_the_first(
    tab: Tab, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tab.open(address)
    tab.solve()
    first = page.evaluate(PICTURE)
    monkeypatch.setattr(stub.Handler, "pause", 2.0)
    page.click("#solve")
    page.wait_for_selector("#verdict-title:has-text('Running')")
    assert text(page, "#where") == "before the first step"
    assert text(page, "#status") == "Waiting for the first step …"
    assert page.evaluate(PICTURE) != first
    assert page.locator("#particles li, svg .main, .cursor:visible").count() == 0
    page.wait_for_selector("#particles li")  # then the first step comes
    assert text(page, "#where") == "step 1 · 1 particle"
    assert page.locator("svg .main").count() == 2


@pytest.mark.parametrize("how", ["double click", "held down"])
def test_a_double_click_starts_one_run(
    tab: Tab, address: str, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(stub.Handler, "pause", 0.02)
    page = tab.open(address)
    before = len(stub.Handler.bodies)
    if how == "double click":
        page.dblclick("#solve")
    else:
        page.focus("#solve")
        page.keyboard.down("Enter")
        page.keyboard.down("Enter")  # as a key that is held repeats itself
    tab.settle()
    assert text(page, "#verdict-title") == "Solved"
    assert len(stub.Handler.bodies) == before + 1


def test_a_closed_connection_is_reported(
    tab: Tab, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stub.Handler, "most", 5)
    page = tab.open(address)
    page.click("#solve")
    page.wait_for_selector("#trouble:has-text('closed before the end of the run')")
    assert text(page, "#verdict-title") == "Interrupted"
    assert text(page, "#solve") == "Solve and watch"
    monkeypatch.setattr(stub.Handler, "most", None)
    tab.solve()
    assert text(page, "#verdict-title") == "Solved"
    assert text(page, "#trouble") == ""


def test_a_baseline_that_comes_after_the_result_has_its_place(
    tab: Tab, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a site without a server, where it runs last; it can be stopped, and then leaves."""
    page = tab.open(address)
    for late, shown in ((1.5, True), (30.0, False)):
        monkeypatch.setattr(stub.Handler, "late", late)
        page.click("#solve")
        page.wait_for_selector("#solve:has-text('Stop the comparison')")
        assert page.is_visible("#verdict.good")
        assert page.is_visible("#baseline")
        assert "runs for comparison" in text(page, "#baseline-words")
        if not shown:
            page.wait_for_timeout(600)  # a click soon after another would count as a double one
            page.click("#solve")
        page.wait_for_selector("#solve:has-text('Solve and watch')")
        assert page.is_visible("#baseline") == shown
        assert text(page, "#verdict-title") == "Solved"


def test_after_a_single_trajectory_a_cloud_is_one_click_away(
    tab: Tab, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stub.Handler, "particles", 1)
    page = tab.open(address, "#task=sudoku&seed=7")
    tab.solve()
    assert "One trajectory was enough" in text(page, "#words")
    link, first = page.url, stub.Handler.bodies[-1]
    monkeypatch.setattr(stub.Handler, "particles", 16)
    page.click("#run-cloud")
    tab.settle()
    assert stub.Handler.bodies[-1] == {**first, "method": "guided", "outer_steps": 16}
    assert page.locator("#run-cloud").count() == 0
    assert page.url == link  # what was set stays set


@pytest.mark.parametrize(
    "link",
    ["task=constructor", "task=sudoku&method=toString", "task=sudoku&particles=Infinity&noise=x"],
)
def test_no_link_breaks_the_page(tab: Tab, address: str, link: str) -> None:
    """A link without a task that exists shows the first sample, which has its own settings."""
    tab.open(address, f"#{link}")
    tab.solve()
    body = stub.Handler.bodies[-1]
    sample = {"particles", "outer_steps"} if "constructor" in link else set()
    assert set(body) == {"puzzles", "task", "method", "seed", "baseline"} | sample
    assert (body["task"], body["method"]) == ("sudoku", "guided" if sample else "adaptive")


def test_the_last_frame_shows_the_final_answer(tab: Tab, tmp_path: Path) -> None:
    """The halting head may choose a particle that does not lead."""
    puzzle, answer = (part.tolist() for part in SUDOKU.generate(3))
    made = stub.replay(SUDOKU, puzzle, answer)
    pictures = []
    for name, leading in (("led", answer), ("chosen", made["baseline"]["tokens"])):
        made["steps"][-1]["leading"] = leading
        file = tmp_path / f"{name}.html"
        file.write_text(recording.page(made), "utf-8")
        pictures.append(tab.open(file.as_uri()).evaluate(PICTURE))
    assert pictures[0] == pictures[1]
    made["result"] |= {"answer": None, "abstained": True}  # withheld: the cloud as it was
    file.write_text(recording.page(made), "utf-8")
    page = tab.open(file.as_uri())
    assert page.evaluate(PICTURE) != pictures[0]
    assert not page.is_visible("#run-cloud")


def test_a_small_dissent_leaves_no_cell_uncertain(tab: Tab, tmp_path: Path) -> None:
    """3 % of the weight on another digit is no doubt, and leaves no shade; 10 % is one."""
    puzzle, answer = (part.tolist() for part in SUDOKU.generate(3))
    pictures = []
    for dissent in (0.0, 0.03, 0.1):
        made = stub.replay(SUDOKU, puzzle, answer)
        nats = -sum(p * math.log(p) for p in (dissent, 1 - dissent) if p)
        shares = [0.0 if given else nats / math.log(11) for given in made["start"]["given"]]
        made["result"]["entropy"] = made["steps"][-1]["entropy"] = shares
        file = tmp_path / "dissent.html"
        file.write_text(recording.page(made), "utf-8")
        page = tab.open(file.as_uri())
        assert ("No cell is uncertain." in text(page, "#words")) == (dissent < 0.05)
        pictures.append(page.evaluate(PICTURE))
    assert pictures[0] == pictures[1] != pictures[2]


def test_too_few_clues_are_named(tab: Tab, address: str) -> None:
    page = tab.open(address, f"#task=sudoku&puzzle={'123456789'.ljust(81, '.')}")
    tab.solve()
    assert "Fewer than 17 clues always leave several solutions" in text(page, "#words")
    page.select_option("#samples", index=1)
    tab.solve()
    assert "Fewer than 17" not in text(page, "#words")


def test_the_sketch_is_drawn_for_the_size_it_has(tab: Tab, address: str) -> None:
    """After a change of size its pixels are again those of the screen, so it is not blurred."""
    page = tab.open(address)
    drawn = "document.getElementById('sketch').width"
    shown = "document.getElementById('sketch').getBoundingClientRect().width * devicePixelRatio"
    before = page.evaluate(drawn)
    page.set_viewport_size({"width": 900, "height": 800})
    page.wait_for_function(f"() => {drawn} !== {before}")
    assert page.evaluate(drawn) == round(page.evaluate(shown))
