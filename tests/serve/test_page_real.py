"""The page, the server and the weights that ship, together: what `tiltrm serve` opens."""

import tiltrm
from tiltrm.tasks import SUDOKU

from .browser import Tab, chromium
from .service import serving


def test_a_generated_puzzle_is_solved_before_ones_eyes() -> None:
    model = tiltrm.load("sudoku-extreme")
    puzzle, answer = (SUDOKU.decode(part) for part in SUDOKU.generate(4))
    with serving(model) as service, chromium() as browser:
        tab = Tab(browser)
        tab.context.set_default_timeout(60_000)
        address = f"http://127.0.0.1:{service.port}/"
        page = tab.open(address)
        page.click("#clear")
        page.keyboard.type(puzzle)
        tab.solve()
        assert page.text_content("#verdict-title") == "Solved"
        status, _, body = service.ask("/v1/solve", {"puzzles": [puzzle], "task": "sudoku"})
        tab.context.close()
    assert status == 200
    assert body["results"][0]["answer"] == answer
    assert tab.complaints == []
    assert all(url.startswith(address) for url in tab.requests)
