"""Pencil puzzles on the page: addresses, drawing, watching; against a real server."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.tasks.pencil.pencil_samples import LINK, PUZZLES

from tiltrm.serve.recording import STATIC, Recording
from tiltrm.solving import solve_texts
from tiltrm.tasks.pencil import PENCIL, TASKS, address, text
from tiltrm.tasks.pencil.puzzle import Kind, edges

from .browser import PHONE, WIDE, Tab, paste, puzzle_of
from .browser import text as shown
from .service import Service, serving

KINDS: dict[str, Kind] = {task.name: task.kind for task in TASKS}
SAMPLES = json.loads((STATIC / "samples.json").read_text("utf-8"))
CUT = "the address seems to be cut off."
CODEC = """async texts => {
  const { decodeBoard, encodeBoard } = await import('/static/addresses.js');
  const boards = texts.map(decodeBoard);
  return boards.map(board => [board, encodeBoard(board)]);
}"""


class Served(NamedTuple):
    """A server of one model that always gives the same answer."""

    service: Service
    model: Any

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.service.port}/"


@pytest.fixture(scope="module")
def served(stubborn: Any) -> Iterator[Served]:
    tokens = PENCIL.encode(PUZZLES["nurikabe"][1], answer=True)
    model = stubborn(tokens, task="pencil", vocabulary=PENCIL.vocabulary)
    with serving(model) as service:
        yield Served(service, model)


@pytest.fixture
def page(browser: Any, served: Served) -> Iterator[Any]:
    """The page of the server; nothing may go wrong in it or leave the machine."""
    tab = Tab(browser)
    opened = tab.open(served.address)
    opened.tab = tab
    yield opened
    tab.context.close()
    assert tab.complaints == []
    assert all(url.startswith((served.address, "file:", "blob:")) for url in tab.requests)


def test_the_page_reads_and_writes_addresses_as_the_library_does(page: Any) -> None:
    texts = [sample["puzzle"] for task in TASKS for sample in SAMPLES[task.name]]
    texts += [puzzle for puzzle, _ in PUZZLES.values()]
    texts += [
        f"{LINK}akari/4/4/.t./",
        "http://pzv.jp/p.html?tapa/4/4/a9ga7b99.g8n",
        f"{LINK}nurikabe/9/9/-10-2dz1zz.w",
    ]
    for one, (board, again) in zip(texts, page.evaluate(CODEC, texts), strict=True):
        puzzle = address.read(one)
        assert again == address.write(puzzle), one
        assert tuple(map(tuple, board["clues"])) == puzzle.clues
        assert tuple(board["borders"]) == puzzle.borders
        assert (board["type"], board["width"]) == (puzzle.kind.name, puzzle.width)


@pytest.mark.parametrize("name", PUZZLES)
def test_paste_an_address_and_watch_it_solved(page: Any, served: Served, name: str) -> None:
    puzzle, answer = PUZZLES[name]
    served.model.tokens = PENCIL.encode(answer, answer=True)
    paste(page, puzzle.replace("https", "http"))
    assert shown(page, "#fault") == ""
    assert page.is_checked(f"[name=task][value={name}]")
    assert page.locator("#board [role=gridcell]").count() == 20
    page.tab.solve()
    assert shown(page, "#verdict-title") == "Solved"
    assert shown(page, "#published") == puzzle
    assert shown(page, "#command") == f"tiltrm solve '{puzzle}' --model toy --method adaptive"
    page.focus("#slider")
    page.keyboard.press("Home")
    assert shown(page, "#where") == "step 1 · 1 particle"
    page.click("#link")
    assert puzzle_of(page) == puzzle


def test_a_grid_shows_the_answer_in_its_cells(page: Any, served: Served) -> None:
    """The middle of every cell of the canvas: shaded cells differ from the others."""
    puzzle, answer = PUZZLES["tapa"]
    served.model.tokens = PENCIL.encode(answer, answer=True)
    paste(page, puzzle)
    page.tab.solve()
    page.wait_for_timeout(300)
    colours = page.evaluate("""() => {
      const canvas = document.getElementById('cloud'), pen = canvas.getContext('2d');
      const size = canvas.width / 5;
      return Array.from({ length: 20 }, (_, cell) => [...pen.getImageData(
        (cell % 5 + 0.15) * size, (Math.floor(cell / 5) + 0.65) * size, 1, 1).data].join());
    }""")
    shaded = {c for c, mark in zip(colours, answer.replace("/", ""), strict=True) if mark == "#"}
    others = {c for c, mark in zip(colours, answer.replace("/", ""), strict=True) if mark == "."}
    assert (len(shaded), len(others), shaded & others) == (1, 1, set())


def plain(kind: str, rows: str) -> str:
    return address.write(text.read(KINDS[kind], rows))


def choose(page: Any, kind: str, columns: int, rows: int) -> None:
    page.check(f"[name=task][value={kind}]", force=True)
    page.wait_for_function("kind => location.hash.includes(kind)", arg=f"p%3F{kind}")
    page.select_option("#columns", str(columns))
    page.select_option("#rows", str(rows))
    page.click("#clear")


def test_draw_a_light_up(page: Any) -> None:
    choose(page, "lightup", 5, 4)
    for key in ("#", "ArrowRight", "2", "ArrowDown", "0", "ArrowDown", "4", "Delete"):
        page.keyboard.press(key)
    assert puzzle_of(page) == plain("lightup", "#2.../.0.../...../.....")
    page.keyboard.press("3")
    page.keyboard.press("1")  # not 31: a cell has one number
    assert puzzle_of(page) == plain("lightup", "#2.../.0.../.1.../.....")
    label = page.get_attribute("#cell-11", "aria-label")
    assert label == "row 3, column 2: black cell 1"


def test_draw_a_nurikabe_and_a_tapa(page: Any) -> None:
    choose(page, "nurikabe", 4, 5)
    page.keyboard.type("12")
    page.keyboard.press("End")
    page.keyboard.type("?")
    assert puzzle_of(page) == plain("nurikabe", "12 . . ?/. . . ./. . . ./. . . ./. . . .")
    choose(page, "tapa", 4, 4)
    page.keyboard.type("113")
    page.keyboard.press("PageDown")
    page.click("#pad button[aria-label='Unknown number']")
    page.click("#pad button[aria-label='Number 3']")
    page.focus("[role=grid]")
    assert puzzle_of(page) == plain("tapa", "113 . . ./. . . ./. . . ./?3 . . .").replace(
        "?3", "3?"
    )


def test_draw_a_heyawake_with_the_keyboard_and_with_a_pointer(page: Any) -> None:
    choose(page, "heyawake", 4, 4)
    for _ in range(4):
        page.keyboard.press("Shift+ArrowRight")
        page.keyboard.press("ArrowDown")
    assert puzzle_of(page) == plain("heyawake", "abbb/abbb/abbb/abbb")
    page.keyboard.press("2")  # from any cell of the room
    page.keyboard.press("End")
    page.keyboard.press("1")
    wanted = "a2 b1 b b/a b b b/a b b b/a b b b"
    assert puzzle_of(page) == plain("heyawake", wanted)
    box = page.locator("#cell-2").bounding_box()
    for row in range(4):
        page.mouse.click(box["x"] + box["width"] - 1, box["y"] + (row + 0.5) * box["height"])
    assert puzzle_of(page) == plain(
        "heyawake", wanted.replace("b b b", "b b c").replace("b1 b b", "b1 b c")
    )
    page.mouse.click(box["x"] + box["width"] - 1, box["y"] + 0.5 * box["height"])  # a door
    puzzle = address.read(puzzle_of(page))
    assert not dict(zip(edges(4, 4), puzzle.borders, strict=True))[2, 3]
    label = page.get_attribute("#cell-2", "aria-label")
    assert label == "row 1, column 3: 1, room 2, borders above"
    page.select_option("#rows", "5")
    assert address.read(puzzle_of(page)).height == 5


@pytest.mark.parametrize(
    ("puzzle", "said"),
    [
        (f"{LINK}slither/4/4/u", "Expected a Sudoku, Light Up, Nurikabe, Heyawake or Tapa, got "
         "“slither”."),
        (f"{LINK}tapa/11/4/zzj", "Expected a tapa board of 4 x 4 to 10 x 10, got 11 x 4."),
        (f"{LINK}tapa/4/3/r", "Expected a tapa board of 4 x 4 to 10 x 10, got 4 x 3."),
        (PUZZLES["tapa"][0][:-1], f"Expected clues for 20 cells, got 13; {CUT}"),
        (PUZZLES["heyawake"][0][:-7], f"Expected borders for all cells; {CUT}"),
        (f"{LINK}nurikabe/4/4/%%", "Expected the clues of an address, got the character “%”."),
        ("hello", "Expected an address like https://puzz.link/p?nurikabe/10/10/…"),
    ],
)  # fmt: skip
def test_a_bad_address_is_refused_in_words(page: Any, puzzle: str, said: str) -> None:
    paste(page, PUZZLES["tapa"][0])
    paste(page, puzzle)
    assert shown(page, "#fault") == said
    assert puzzle_of(page) == PUZZLES["tapa"][0]  # what was there stays


def test_a_sudoku_can_be_pasted_as_an_address(page: Any) -> None:
    paste(page, f"{LINK}sudoku/9/9/5zzzz")
    assert page.is_checked("[name=task][value=sudoku]")
    assert puzzle_of(page) == "5" + "." * 80


def test_an_empty_board_is_not_sent(page: Any) -> None:
    choose(page, "tapa", 4, 4)
    page.click("#solve")
    assert shown(page, "#fault") == "The board has no clue yet."
    assert page.is_hidden("#watch")


def test_generate(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ortools", reason="needs OR-Tools: pip install .[generate]")
    page.check("[name=task][value=lightup]", force=True)
    page.wait_for_function("location.hash.includes('p%3Flightup')")
    before = puzzle_of(page)
    page.click("#generate")
    page.wait_for_function(
        "before => !location.hash.includes(encodeURIComponent(before))", arg=before
    )
    assert address.read(puzzle_of(page)).kind.name == "lightup"
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    page.click("#generate")
    page.wait_for_selector("#trouble:has-text('install')")
    assert "pip install 'tiltrm[generate]'" in shown(page, "#trouble")


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", PUZZLES)
def test_nothing_for_axe_to_find(
    browser: Any, served: Served, name: str, theme: str, size: dict[str, int]
) -> None:
    puzzle, answer = PUZZLES[name]
    served.model.tokens = PENCIL.encode(answer, answer=True)
    tab = Tab(browser, size=size, color_scheme=theme)
    page = tab.open(served.address, f"#task={name}&puzzle={puzzle}")
    page.wait_for_selector(f"[name=task][value={name}]:checked", state="attached")
    tab.solve()
    assert (tab.violations(), tab.overflow(), tab.complaints) == ([], 0, [])
    tab.context.close()


def test_a_saved_replay_needs_no_server(page: Any, served: Served, tmp_path: Path) -> None:
    puzzle, answer = PUZZLES["heyawake"]
    served.model.tokens = PENCIL.encode(answer, answer=True)
    settings = {"method": "adaptive", "seed": 0}
    recording = Recording(served.model, PENCIL, settings, None)
    (record,) = solve_texts(served.model, [puzzle], task=PENCIL, watch=recording, **settings)
    replay = recording.replay(record)
    start, first = replay["start"], replay["steps"][0]
    assert (start["type"], start["side"], start["cells"]) == ("heyawake", 5, 20)
    lists = (start["given"], first["leading"], first["entropy"], first["grids"][0]["tokens"])
    assert [len(cells) for cells in (*lists, replay["baseline"]["tokens"])] == [20] * 5
    recording.write(record, tmp_path / "replay.html")
    page.goto((tmp_path / "replay.html").as_uri())
    assert shown(page, "#verdict-title") == "Solved"
    assert shown(page, "#published") == puzzle


def test_a_request_for_a_type_finds_the_model_of_all_types(served: Served) -> None:
    puzzle, answer = PUZZLES["nurikabe"]
    served.model.tokens = PENCIL.encode(answer, answer=True)
    status, _, body = served.service.ask("/v1/solve", {"puzzles": [puzzle], "task": "nurikabe"})
    assert (status, body["results"][0]["answer"]) == (200, answer.replace("/", ""))
    status, _, body = served.service.ask("/v1/generate?task=nurikabe&seed=3")
    assert status == 200
    assert set(body["answer"]) == {"#", "."}
