"""The page in a real browser, against a stub of the server."""

from pathlib import Path
from typing import Any

import pytest

from tiltrm.settings import METHODS, TABLE
from tiltrm.tasks import SUDOKU

from . import stub
from .browser import PHONE, WIDE, Tab, text, typed

PUZZLE = SUDOKU.decode(SUDOKU.generate(4)[0])


def test_type_a_puzzle_and_watch_it_solved(tab: Tab, address: str) -> None:
    page = tab.open(address)
    page.click("#clear")
    page.keyboard.type(PUZZLE)  # a digit goes in and the next cell is active
    assert typed(page) == PUZZLE
    tab.solve()
    assert stub.Handler.bodies[-1] == {"puzzles": [PUZZLE], "task": "sudoku", "method": "adaptive",
                                       "seed": 0, "baseline": True}  # fmt: skip
    assert text(page, "#verdict-title") == "Solved"
    words = text(page, "#words")
    assert "Stopped by the halting head, after 22 outer steps with 16 particles" in words
    assert "a confidence of 98.7 %; it is a valid solution" in words
    assert "1 uncertain cell: row 1, column" in words  # though no entropy is 0
    assert "1,540" in text(page, "#figures")
    assert "does not solve it: 48 outer steps" in text(page, "#baseline-words")
    assert f"tiltrm solve '{PUZZLE}'" in text(page, "#command")
    assert page.locator("#particles li").count() == 6
    assert text(page, "#status").startswith("Solved.")  # spoken


def test_slider_goes_back_and_forth(tab: Tab, address: str) -> None:
    page = tab.open(address)
    tab.solve()
    last = page.evaluate("document.getElementById('cloud').toDataURL()")
    assert text(page, "#where") == "step 22 · 16 particles"
    page.focus("#slider")
    page.keyboard.press("Home")
    assert text(page, "#where") == "step 1 · 1 particle"
    assert page.locator("#particles li").count() == 1
    assert "outer step 1 of at most 144" in page.get_attribute("#slider", "aria-valuetext")
    assert page.evaluate("document.getElementById('cloud').toDataURL()") != last
    page.keyboard.press("End")
    assert page.evaluate("document.getElementById('cloud').toDataURL()") == last
    page.locator(".ancestry").click()  # in its middle, so between the frames 11 and 12
    assert text(page, "#where") in ("step 11 · 16 particles", "step 12 · 16 particles")
    page.click("#play")
    page.wait_for_function("() => document.getElementById('slider').value === '22'")


def test_nonsense_is_refused_in_words(tab: Tab, address: str) -> None:
    page = tab.open(address, f"#task=sudoku&puzzle={PUZZLE}")
    page.click("#paste summary")
    for nonsense, said in (
        ("hello", "got “h” at row 1, column 1"),
        ("123", "Expected 81 cells, got 3"),
        ("." * 82, "Expected 81 cells, got 82"),
        ("<img src=x onerror=alert(1)>", "got “<” at row 1, column 1"),
    ):
        page.fill("#text", nonsense)
        page.click("#take")
        assert said in text(page, "#fault")
        assert typed(page) == PUZZLE  # what was there stays
    assert page.evaluate("location.hash").startswith(f"#task=sudoku&puzzle={PUZZLE}&")
    page.fill("#text", PUZZLE.replace(".", "0"))
    page.click("#take")
    assert text(page, "#fault") == ""
    page.goto("about:blank")
    tab.open(address, "#task=sudoku&puzzle=<b>")
    page.wait_for_selector("#fault:has-text('cannot be read')")


def test_conflicting_clues_are_marked_as_typed_and_not_sent(tab: Tab, address: str) -> None:
    page = tab.open(address)
    page.click("#clear")
    page.keyboard.type("5...5")
    assert "5 occurs twice in row 1" in text(page, "#fault")
    wrong = page.locator("#board .wrong")
    assert wrong.evaluate_all("cells => cells.map(c => c.id)") == ["cell-0", "cell-4"]
    assert page.locator("#cell-4").get_attribute("aria-invalid") == "true"
    before = len(stub.Handler.bodies)
    page.click("#solve")
    assert len(stub.Handler.bodies) == before
    page.keyboard.press("Shift+Tab")
    page.focus("[role=grid]")
    page.keyboard.press("Backspace")  # clears the cell after the second 5, and goes back to it
    page.keyboard.press("Delete")
    assert wrong.count() == 0
    assert text(page, "#fault") == ""


def test_everything_with_the_keyboard_alone(tab: Tab, address: str) -> None:
    page = tab.open(address)

    def reach(name: str) -> None:
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("name => document.activeElement.matches(name)", name):
                return
        raise AssertionError(f"no way to {name} with Tab")

    reach("[name=task]")
    reach("[role=grid]")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert page.get_attribute("[role=grid]", "aria-activedescendant") == "cell-10"
    assert page.get_attribute("#cell-10", "aria-label").startswith("row 2, column 2: ")
    reach("#solve")
    page.keyboard.press("Enter")
    tab.settle()
    reach("#play")
    reach("#slider")
    page.keyboard.press("Home")
    assert text(page, "#where") == "step 1 · 1 particle"
    reach("#copy")


def test_a_link_shows_the_same_puzzle_and_settings(tab: Tab, address: str, browser: Any) -> None:
    page = tab.open(address)
    page.click("#settings summary")
    page.select_option("[name=method]", "guided")
    page.fill("[name=particles]", "8")
    page.fill("[name=seed]", "7")
    page.click("#clear")
    page.keyboard.type(PUZZLE)
    other = Tab(browser)
    linked = other.open(page.url)
    assert typed(linked) == PUZZLE
    assert linked.input_value("[name=method]") == "guided"
    assert linked.input_value("[name=particles]") == "8"
    assert linked.is_disabled("[name=rules]")  # guided has no such setting
    other.solve()
    body = stub.Handler.bodies[-1]
    assert (body["method"], body["particles"], body["seed"]) == ("guided", 8, 7)
    other.context.close()


def test_a_sample_brings_its_settings_until_others_are_chosen(tab: Tab, address: str) -> None:
    """The first sample shows a cloud; another puzzle is solved with the defaults."""
    page = tab.open(address)
    tab.solve()
    body = stub.Handler.bodies[-1]
    assert (body["method"], body["particles"]) == ("guided", 8)
    assert page.input_value("#second-method") == "adaptive"
    page.reload()  # the address holds the settings of the sample, and nobody has chosen them
    page.wait_for_function("() => document.getElementById('model').textContent")
    page.focus("[role=grid]")
    page.keyboard.press("Delete")
    assert page.input_value("[name=method]") == "adaptive"
    tab.solve()
    assert "particles" not in stub.Handler.bodies[-1]
    page.select_option("#samples", index=1)
    assert page.input_value("[name=particles]") == "8"
    page.click("#settings summary")
    page.select_option("[name=method]", "unguided")
    assert page.input_value("[name=particles]") == ""  # the number was that of another method
    page.select_option("#samples", index=2)
    page.select_option("#samples", index=1)
    assert page.input_value("[name=method]") == "unguided"


def test_the_form_has_the_settings_of_the_table(tab: Tab, address: str) -> None:
    """Every row with a label is a field, and a method enables its own."""
    page = tab.open(address)
    page.click("#settings summary")
    names = "[...document.getElementById('form').elements].map(field => field.name)"
    rows = {name: row for name, row in TABLE.items() if row.label}
    assert page.evaluate(names) == ["method", "seed", *rows, "token"]
    for method in METHODS:
        page.select_option("[name=method]", method)
        enabled = [name for name in rows if page.is_enabled(f"[name={name}]")]
        assert enabled == [name for name, row in rows.items() if method in row.methods]
    page.select_option("[name=method]", "adaptive")
    page.fill("[name=halt_above]", "-1.5")
    page.check("[name=rules]")
    tab.solve()
    body = stub.Handler.bodies[-1]
    assert (body["halt_above"], body["rules"]) == (-1.5, True)
    assert "particles" not in body  # empty: the method's default


def test_mazes_are_drawn_and_linked(tab: Tab, address: str) -> None:
    page = tab.open(address)
    page.check("[name=task][value=maze]", force=True)
    tab.solve()
    assert text(page, "#verdict-title") == "Solved"
    page.click("#clear")
    assert "needs a start (S) and a goal (G)" in text(page, "#fault")
    first, last = (page.locator(f"#cell-{cell}").bounding_box() for cell in (95, 100))
    page.mouse.move(first["x"] + 3, first["y"] + 3)
    page.mouse.down()
    page.mouse.move(last["x"] + 3, last["y"] + 3)  # at once, as a quick hand does
    page.mouse.up()
    walls = "[...document.querySelectorAll('[data-mark=wall]')].map(c => c.id)"
    assert page.evaluate(walls) == [f"cell-{cell}" for cell in range(95, 101)]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("s")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("g")
    assert text(page, "#fault") == ""
    page.reload()
    page.wait_for_selector("#cell-899")
    assert page.evaluate(walls) == [f"cell-{cell}" for cell in range(95, 101)]
    assert page.get_attribute("#cell-130", "data-mark") == "start"


def test_refusals_and_samples(tab: Tab, address: str) -> None:
    page = tab.open(address)
    stub.Handler.refuse[:] = [(429, ""), (401, "A token is needed.")]
    page.click("#solve")
    page.wait_for_selector("#trouble:has-text('busy')")
    page.click("#solve")
    page.wait_for_selector("[name=token]:visible")
    assert text(page, "#trouble") == "A token is needed."
    before = typed(page)
    page.click("#generate")
    page.wait_for_function("before => location.hash.includes('puzzle') && "
                           "!location.hash.includes(before)", arg=before)  # fmt: skip
    assert typed(page) in {SUDOKU.decode(SUDOKU.generate(seed)[0]) for seed in range(5)}
    page.select_option("#samples", index=2)
    assert typed(page) == page.input_value("#samples")


def test_generate_gives_another_puzzle(tab: Tab, address: str) -> None:
    """Also where the seeds lead to the puzzle that is there."""
    page = tab.open(address)
    page.evaluate("Math.random = () => 0")
    puzzles = [SUDOKU.decode(SUDOKU.generate(seed)[0]) for seed in range(2)]
    for puzzle in puzzles:
        page.click("#generate")
        page.wait_for_function("puzzle => location.hash.includes(puzzle)", arg=puzzle)


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_no_accessibility_violation(browser: Any, address: str, size: dict[str, int]) -> None:
    tab = Tab(browser, size=size, color_scheme="light")
    page = tab.open(address)
    page.click("#settings summary")
    page.click("#paste summary")
    page.focus("[role=grid]")
    page.keyboard.type("88")
    assert "twice" in text(page, "#fault")
    for theme in ("light", "dark"):  # with a conflict marked, and all open
        assert page.get_attribute("html", "data-theme") == theme
        assert tab.violations() == []
        page.click("#theme")
    page.select_option("#samples", index=1)
    tab.solve()
    for _ in range(2):
        assert tab.violations() == []
        page.click("#theme")
    tab.context.close()


def test_phone_width_never_scrolls_sideways(browser: Any, address: str) -> None:
    tab = Tab(browser, size=PHONE, has_touch=True, is_mobile=True)
    page = tab.open(address)
    assert tab.overflow() <= 0
    page.tap("#clear")
    page.tap("#cell-40")
    page.tap("#pad button:nth-child(7)")  # without a keyboard
    assert typed(page)[40] == "7"
    page.check("[name=task][value=maze]", force=True)
    tab.solve()
    assert tab.overflow() <= 0
    tab.context.close()


def test_theme_switch_is_kept(tab: Tab, address: str) -> None:
    page = tab.open(address)
    ground = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(ground)
    page.click("#theme")
    assert page.text_content("#theme") == "Light theme"  # what the next click switches to
    assert page.evaluate(ground) != before
    page.reload()
    assert page.get_attribute("html", "data-theme") == "dark"


def test_replay_file_opens_without_a_server(tab: Tab, tmp_path: Path) -> None:
    page = tab.open(stub.save(tmp_path).as_uri())
    assert text(page, "#verdict-title") == "Solved"
    assert not page.is_visible("#puzzle")
    assert text(page, "#where") == "step 22 · 16 particles"
    page.focus("#slider")
    page.keyboard.press("Home")
    assert text(page, "#where") == "step 1 · 1 particle"
    assert [url for url in tab.requests if not url.startswith("file:")] == []
    assert len(tab.requests) == 1  # one file, nothing beside it
    assert tab.violations() == []
