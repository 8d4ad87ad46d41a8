"""Keeping and comparing runs on the page: a link, a file, a second method."""

from pathlib import Path
from typing import Any

import pytest

from . import stub
from .browser import Tab, text


def test_a_link_holds_the_puzzle_and_the_settings_of_the_run(tab: Tab, address: str) -> None:
    page = tab.open(address)
    page.click("#settings summary")
    page.select_option("[name=method]", "guided")
    page.fill("[name=noise]", "0.7")
    tab.solve()
    page.fill("[name=noise]", "0.1")  # after the run; the link is of the run
    page.click("#link")
    assert "noise=0.7" in page.url
    assert "method=guided" in page.url
    other = Tab(tab.context.browser)
    assert other.open(page.url).input_value("[name=noise]") == "0.7"
    other.context.close()


def test_a_saved_file_shows_the_run_without_a_server(
    tab: Tab, address: str, tmp_path: Path
) -> None:
    page = tab.open(address)
    assert page.is_disabled("#save")
    tab.solve()
    with page.expect_download() as saved:
        page.click("#save")
    file = tmp_path / saved.value.suggested_filename
    saved.value.save_as(file)
    assert file.name == "tiltrm-sudoku-guided.html"
    words = text(page, "#words")
    alone = Tab(tab.context.browser)
    shown = alone.open(file.as_uri())
    shown.wait_for_selector("#verdict.good")
    assert text(shown, "#words") == words
    assert shown.is_hidden("#second")
    assert [url for url in alone.requests if not url.startswith(("file:", "blob:"))] == []
    assert alone.complaints == []
    alone.context.close()


def test_a_second_method_runs_beside_the_first(tab: Tab, address: str) -> None:
    page = tab.open(address)
    tab.solve()
    page.select_option("#second-method", "unguided")
    page.click("#second-run")
    done = "() => /solves? it:/.test(document.getElementById('second-words').textContent)"
    page.wait_for_function(done)
    body: dict[str, Any] = stub.Handler.bodies[-1]
    assert (body["method"], body["baseline"]) == ("unguided", False)
    assert "1,540 evaluations (above: 1,540)" in text(page, "#second-words")
    assert text(page, "#verdict-title") == "Solved"  # the first run stays
    assert "resampled after outer step" in page.get_attribute("#second-ancestry", "aria-label")
    assert tab.violations() == []


HEARD = """() => { window.heard = []; new MutationObserver(() => window.heard.push(
    document.getElementById('second-words').textContent)).observe(
    document.getElementById('second-words'), {childList: true}) }"""


def test_a_second_run_is_not_spoken_step_by_step(tab: Tab, address: str) -> None:
    """Its words are a live region: one report now and then, and the end."""
    page = tab.open(address)
    tab.solve()
    page.evaluate(HEARD)
    page.click("#second-run")
    page.wait_for_selector("#second-words:has-text('solves it:')")
    heard = page.evaluate("heard")
    assert "outer step 1 of at most" in heard[1]
    assert len(heard) < 8  # of 22 outer steps


PICTURES = """() => ['second-grid', 'second-ancestry'].map(
    name => document.getElementById(name).toDataURL())"""


def test_the_second_run_follows_the_theme(tab: Tab, address: str) -> None:
    page = tab.open(address)
    tab.solve()
    page.click("#second-run")
    page.wait_for_selector("#second-words:has-text('solves it:')")
    before = page.evaluate(PICTURES)
    page.click("#theme")
    assert all(one != other for one, other in zip(before, page.evaluate(PICTURES), strict=True))
    page.click("#theme")
    assert page.evaluate(PICTURES) == before


def test_a_new_run_ends_the_comparison(
    tab: Tab, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tab.open(address)
    tab.solve()
    monkeypatch.setattr(stub.Handler, "pause", 0.2)
    page.click("#second-run")
    page.wait_for_selector("#second-words:has-text('outer step')")
    assert text(page, "#second-run") == "Stop"
    monkeypatch.setattr(stub.Handler, "pause", 0.005)
    tab.solve()
    assert page.is_hidden("#second-result")  # no "Stopped." that comes late
    assert text(page, "#second-run") == "Compare"


def test_a_comparison_that_breaks_off_says_so(
    tab: Tab, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tab.open(address)
    tab.solve()
    monkeypatch.setattr(stub.Handler, "most", 5)
    page.click("#second-run")
    page.wait_for_selector("#second-words:has-text('closed before the end')")
