"""A real browser for the tests of the page: the system's Chromium, driven by Playwright."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--no-first-run"]  # fmt: skip
CELLS = "[...document.querySelectorAll('#board [role=gridcell]')].map(c => c.textContent || '.')"
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 360, "height": 740}


@contextmanager
def chromium() -> Iterator[Any]:
    """The browser; skips the test where Playwright or Chromium is not installed."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("no Chromium on this machine (apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


class Tab:
    """One page, and everything that it asked for or complained of.

    It asks for reduced motion, so that a run jumps to its last frame and no test waits for a show.
    """

    def __init__(self, browser: Any, *, size: dict[str, int] = WIDE, **options: Any) -> None:
        self.context = browser.new_context(viewport=size, reduced_motion="reduce", **options)
        self.context.set_default_timeout(30_000)
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.context.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._heard)

    def _heard(self, message: Any) -> None:
        """Errors only, and not those of requests that a test has refused on purpose."""
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)

    def open(self, address: str, hash_: str = "") -> Any:
        """Go there and wait until the page has all that it asked for."""
        self.page.goto(address + hash_)
        if not address.startswith("file:"):
            self.page.wait_for_selector("#model", state="attached")
            self.page.wait_for_function("() => document.getElementById('model').textContent")
        return self.page

    def solve(self) -> None:
        """Press the button and wait for the verdict and the last frame."""
        self.page.click("#solve")
        self.settle()

    def settle(self) -> None:
        """Wait for the verdict, and for the last frame, which is drawn a moment after it."""
        self.page.wait_for_selector("#solve:not(.stop)")  # else the verdict may be the last one
        self.page.wait_for_selector("#verdict.good, #verdict.bad")
        last = self.page.get_attribute("#slider", "max")
        self.page.wait_for_function("last => document.getElementById('slider').value === last",
                                    arg=last)  # fmt: skip

    def violations(self) -> list[str]:
        """What axe-core finds on the page as it is now, of levels A and AA."""
        self.page.evaluate(AXE.read_text("utf-8") + "; 0")
        found = self.page.evaluate("tags => axe.run({runOnly: tags})", LEVELS)
        return [f"{rule['id']}: {node['target']} {node['failureSummary']}"
                for rule in found["violations"] for node in rule["nodes"]]  # fmt: skip

    def overflow(self) -> int:
        """Pixels that the page is wider than the screen; innerWidth would grow along on a phone."""
        width = int(self.page.evaluate("document.documentElement.scrollWidth"))
        return width - int(self.page.viewport_size["width"])


def typed(page: Any) -> str:
    """The Sudoku on the board."""
    return "".join(page.evaluate(CELLS))


def text(page: Any, name: str) -> str:
    """The text of an element."""
    return str(page.text_content(name))


def paste(page: Any, puzzle: str) -> None:
    """Take a text as the puzzle, by the field for it."""
    if not page.is_visible("#text"):
        page.click("#paste summary")
    page.fill("#text", puzzle)
    page.click("#take")


def puzzle_of(page: Any) -> str:
    """The puzzle on the board, which the page's own address holds."""
    return parse_qs(page.evaluate("location.hash.slice(1)"))["puzzle"][0]
