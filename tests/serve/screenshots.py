"""Pictures of the page for the documentation: python tests/serve/screenshots.py ADDRESS [NAME ...]

ADDRESS is that of a running `tiltrm serve`, or of the folder of `tiltrm site` on a static host. One
run of the first Sudoku is taken light, dark and on a phone, at a step where the particles disagree;
the first maze is taken at its end, and so is a Latin square where docs/your-task.md is served.
Names of pictures after the address choose some; tasks that are not served are left out.
"""

import io
import sys
from pathlib import Path
from typing import Any, NamedTuple

from browser import Tab, chromium
from PIL import Image


class Shot(NamedTuple):
    name: str
    theme: str
    size: dict[str, int]
    whole: bool  # the page, or what the screen shows of it


FOLDER = Path(__file__).parents[2] / "docs" / "images"
SHOTS = {
    "sudoku": (
        Shot("page-light", "light", {"width": 1280, "height": 900}, True),
        Shot("page-dark", "dark", {"width": 1280, "height": 900}, True),
        Shot("page-phone", "light", {"width": 390, "height": 1560}, False),
    ),
    "maze": (Shot("page-maze", "light", {"width": 1280, "height": 900}, False),),
    "latin5": (Shot("page-own", "light", {"width": 1280, "height": 900}, False),),
}
COLOURS = 256  # of a picture, which makes its file three times smaller
PATIENCE = 900_000  # milliseconds for a run on a slow machine
DISPUTED = """() => {
    const slider = document.getElementById('slider');
    slider.value = Math.ceil(slider.max * 0.4);
    slider.dispatchEvent(new Event('input'));
}"""


def take(address: str, *names: str) -> None:
    """Take these pictures, or all of them; a run for each task."""
    with chromium() as browser:
        for task, shots in SHOTS.items():
            wanted = [shot for shot in shots if not names or shot.name in names]
            if not wanted:
                continue
            tab = Tab(browser, size=wanted[0].size, color_scheme=wanted[0].theme)
            tab.context.set_default_timeout(PATIENCE)
            page = tab.open(address)
            if page.locator(f"[name=task][value={task}]:enabled").count():
                page.check(f"[name=task][value={task}]", force=True)
                tab.solve()
                if task == "sudoku":
                    page.evaluate(DISPUTED)
                for shot in wanted:
                    picture(page, shot)
            tab.context.close()


def picture(page: Any, shot: Shot) -> None:
    page.emulate_media(color_scheme=shot.theme, reduced_motion="reduce")
    page.set_viewport_size(shot.size)
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(1000)  # until everything is drawn for the new size
    if shot.size["width"] < 900:  # where the run stands below the puzzle
        page.evaluate("document.getElementById('watch').scrollIntoView()")
    taken = Image.open(io.BytesIO(page.screenshot(full_page=shot.whole)))
    file = FOLDER / f"{shot.name}.png"
    taken.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(file, optimize=True)
    print(file, f"{file.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    take(*sys.argv[1:])
