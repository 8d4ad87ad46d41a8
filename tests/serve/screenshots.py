"""Pictures of the page for the README: python tests/serve/screenshots.py http://127.0.0.1:8000/

Needs a running `tiltrm serve` and Chromium. A cloud solves a Sudoku, and the page is taken light,
dark and on a phone at a step where the particles disagree; a maze is taken at its end, and so is a
Latin square where docs/your-task.md is served. Names after the address select pictures; those of
tasks that are not served are left out. `pngquant` halves the files.
"""

import sys
from pathlib import Path

from browser import Tab, chromium

FOLDER = Path(__file__).parents[2] / "docs" / "images"
SHOTS = {  # name: task, colours, size, how far down
    "page-light": ("sudoku", "light", {"width": 1280, "height": 900}, True),
    "page-dark": ("sudoku", "dark", {"width": 1280, "height": 900}, True),
    "page-phone": ("sudoku", "light", {"width": 390, "height": 1560}, False),
    "page-maze": ("maze", "light", {"width": 1280, "height": 850}, False),
    "page-own": ("latin5", "light", {"width": 1280, "height": 740}, False),
}
PATIENCE = 600_000  # milliseconds for a run on a slow machine
DISPUTED = """() => {
    const slider = document.getElementById('slider');
    slider.value = Math.ceil(slider.max * 0.14);
    slider.dispatchEvent(new Event('input'));
}"""


def take(address: str, *names: str) -> None:
    """Take these pictures, or all of them, each of a run of its own."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        for name, (task, theme, size, whole) in SHOTS.items():
            if names and name not in names:
                continue
            tab = Tab(browser, size=size, color_scheme=theme)
            tab.context.set_default_timeout(PATIENCE)
            page = tab.open(address)
            if not page.locator(f"[name=task][value={task}]:enabled").count():
                tab.context.close()
                continue
            page.check(f"[name=task][value={task}]", force=True)
            if task == "sudoku":  # a cloud, which shows more than the few particles of adaptive
                page.click("#settings summary")
                page.select_option("[name=method]", "guided")
                page.fill("[name=outer_steps]", "16")
                page.click("#settings summary")
            tab.solve()
            if task == "sudoku":
                page.evaluate(DISPUTED)
            page.wait_for_timeout(1000)  # until a phone has scrolled to the run by itself
            if not whole and task == "sudoku":
                page.evaluate("document.getElementById('watch').scrollIntoView()")
            page.screenshot(path=FOLDER / f"{name}.png", full_page=whole)
            tab.context.close()
            print(FOLDER / f"{name}.png")


if __name__ == "__main__":
    take(*sys.argv[1:])
