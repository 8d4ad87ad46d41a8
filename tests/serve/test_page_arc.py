"""ARC on the page: cells in their colours, and no word of rules that do not exist."""

from pathlib import Path

import pytest

from tiltrm.cli.main import main
from tiltrm.tasks.arc import ARC
from tiltrm.tasks.arc.draw import PALETTE

from .browser import Tab

PIXEL = """([id, x, y]) => {
  const canvas = document.getElementById(id);
  const at = [x * canvas.width / 30, y * canvas.height / 30].map(Math.floor);
  return [...canvas.getContext("2d").getImageData(...at, 1, 1).data].slice(0, 3);
}"""


def rgb(colour: str) -> list[int]:
    return [int(colour[at : at + 2], 16) for at in (1, 3, 5)]


@pytest.mark.usefixtures("no_progress")
def test_a_replay_shows_the_colours(
    tab: Tab, tmp_path: Path, stubborn: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = ARC.answer(((1, 2), (3, 4), (7, 8)))
    model = stubborn(answer, task="arc", vocabulary=12)
    monkeypatch.setattr("tiltrm.cli.solve_command.load", lambda *_, **__: model)
    page = tmp_path / "run.html"
    assert main(["solve", "3: 05/50", "--html", str(page), "--method", "deterministic"]) == 0
    tab.open(page.as_uri())
    assert tab.page.text_content("#verdict-title") == "Answered"
    for row, line in enumerate(((1, 2), (3, 4), (7, 8))):
        for column, colour in enumerate(line):
            place = ["cloud", column + 0.85, row + 0.85]
            assert tab.page.evaluate(PIXEL, place) == rgb(PALETTE[colour])
    words = tab.page.inner_text("body")
    assert "breaks a rule" not in words
    assert "gives the same answer" in words
    assert tab.complaints == []
