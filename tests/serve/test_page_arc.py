"""ARC on the page: boards and answers in colours, and no word of rules that do not exist."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.tasks.arc.arc_samples import full_model
from torch import Tensor

from tiltrm.cli.main import main
from tiltrm.errors import TiltrmError
from tiltrm.tasks.arc import ARC, MINI_ARC
from tiltrm.tasks.arc.draw import NO_RECTANGLE, PALETTE
from tiltrm.tasks.arc.grids import ColourGrid
from tiltrm.tasks.arc.tokens import BLACK, BOARD, VOCABULARY

from .browser import PHONE, Tab, paste, puzzle_of, text
from .service import serving

TASKS = {"arc": ARC, "mini-arc": MINI_ARC}
QUESTION = ((0, 5, 5, 0), (1, 2, 3, 4), (9, 8, 7, 6))
ANSWER = ((1, 2), (3, 4), (7, 8))
SQUARE = tuple(tuple((3 * row + column) % 10 for column in range(5)) for row in range(5))
MIDDLES = """([id, rows, columns]) => {
  const canvas = document.getElementById(id), pen = canvas.getContext('2d');
  const size = canvas.width / Math.max(rows, columns);
  const left = (canvas.width - columns * size) / 2, top = (canvas.height - rows * size) / 2;
  return Array.from({ length: rows }, (_, row) => Array.from({ length: columns }, (_, column) =>
    [...pen.getImageData(left + (column + 0.5) * size, top + (row + 0.5) * size, 1, 1).data]
      .slice(0, 3)));
}"""  # the colours of a canvas in the middles of the cells of a grid
CELLS = """[...document.querySelectorAll('#board [role=row]')].map(row =>
  [...row.children].map(cell => cell.style.backgroundColor.match(/\\d+/g).map(Number)))"""
READ = """async ([run, boards]) => {
  const { answerGrid } = await import('/static/colours.js');
  return boards.map(board => answerGrid(run, board));
}"""
VERDICT = """async ([run, result, answer]) => {
  const { verdict } = await import('/static/verdict.js');
  return verdict(run, result, answer);
}"""
WRITTEN = """async ([task, texts]) => {
  const { readColours, writeColours } = await import('/static/colours.js');
  return texts.map(text => {
    try { return writeColours(readColours(task, text)); } catch (error) { return error; }
  }).map(found => found.message ? { refused: found.message } : found);
}"""


def rgb(grid: ColourGrid) -> list[list[list[int]]]:
    """The colours of a grid as a browser says them."""
    parts = [[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in PALETTE]
    return [[parts[each] for each in row] for row in grid]


@pytest.fixture
def pages(browser: Any, stubborn: Any) -> Iterator[Any]:
    """Opens the page of a server with a model for a task; nothing may go wrong in it."""
    with ExitStack() as stack:
        tabs: list[Tab] = []

        def opened(task: str, answer: Tensor | None = None) -> Any:
            tokens = TASKS[task].answer(SQUARE) if answer is None else answer
            model = stubborn(tokens, task=task, vocabulary=TASKS[task].vocabulary)
            service = stack.enter_context(serving(model))
            tabs.append(Tab(browser))
            page = tabs[-1].open(f"http://127.0.0.1:{service.port}/")
            page.tab = tabs[-1]
            page.wait_for_selector(f"[name=task][value={task}]:checked", state="attached")
            return page

        yield opened
        for tab in tabs:
            tab.context.close()
            assert tab.complaints == []


@pytest.mark.usefixtures("no_progress")
def test_a_replay_shows_the_colours(
    tab: Tab, tmp_path: Path, stubborn: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = stubborn(ARC.answer(ANSWER), task="arc", vocabulary=VOCABULARY)
    monkeypatch.setattr("tiltrm.cli.solve_command.load", lambda *_, **__: model)
    page = tmp_path / "run.html"
    assert main(["solve", "3: 05/50", "--html", str(page), "--method", "deterministic"]) == 0
    tab.open(page.as_uri())
    assert tab.page.text_content("#verdict-title") == "Answered"
    assert tab.page.evaluate(MIDDLES, ["cloud", 3, 2]) == rgb(ANSWER)
    assert tab.page.evaluate(MIDDLES, ["question", 2, 2]) == rgb(((0, 5), (5, 0)))
    words = tab.page.inner_text("body")
    assert "breaks a rule" not in words
    assert "gives the same answer" in words
    assert tab.complaints == []


@pytest.mark.parametrize("corner", [(0, 0), (4, 7)])
def test_answers_are_read_as_the_library_reads_them(
    tab: Tab, address: str, corner: tuple[int, int]
) -> None:
    """On boards with holes, where several rectangles begin in the corner, or none."""
    chance = torch.Generator().manual_seed(3)
    question = ARC.question(((1, 2), (3, 4)), 5, corner)
    boards = torch.randint(BLACK, VOCABULARY, (40, 904), generator=chance)
    holes = torch.rand(40, 904, generator=chance)
    boards[holes < torch.linspace(0.0, 0.2, 40)[:, None]] = 1
    run = {"task": "arc", "side": 30, "cells": BOARD, "puzzle": ARC.decode(question),
           "colours": list(ARC.token_colours)}  # fmt: skip
    tab.open(address)
    found = tab.page.evaluate(READ, [run, boards[:, :BOARD].tolist()])
    grids = ARC.answer_grids(question, boards)
    assert {grid is None for grid in grids} == {True, False}
    for board, read, grid in zip(boards, found, grids, strict=True):
        rows = grid or ()
        assert (read["height"], read["width"]) == (len(rows), len(rows[0]) if rows else 0)
        colours = [int(board[cell]) - BLACK for cell in read["cells"]]
        assert colours == [each for row in rows for each in row]


@pytest.mark.parametrize("task", TASKS)
def test_the_page_reads_and_writes_texts_as_the_library_does(
    tab: Tab, address: str, task: str
) -> None:
    rows = "/".join("".join(map(str, row)) for row in SQUARE)
    heads = ("7: ", "12 +2+5: ", "7  t3  0213456789 : ", "x: ", "7 t3: ")
    texts = [head + rows for head in heads]
    texts += [f"7: {bad}" for bad in ("012/34", "01a/234", "/", "0" * 31)]
    texts += [f"7:\r\n{rows.replace('/', chr(10))}\n", f"1: {rows}/01234", "1: 012/345"]
    tab.open(address)
    for own, found in zip(texts, tab.page.evaluate(WRITTEN, [task, texts]), strict=True):
        try:
            tokens = TASKS[task].encode(own)
        except TiltrmError:
            assert found["refused"].startswith("Expected "), own
        else:
            assert (TASKS[task].encode(found) == tokens).all(), own


@pytest.mark.parametrize(("task", "question", "answer"), [
    ("arc", QUESTION, ANSWER), ("mini-arc", SQUARE, SQUARE[::-1])])  # fmt: skip
def test_paste_a_task_and_watch_it_answered(
    pages: Any, task: str, question: ColourGrid, answer: ColourGrid
) -> None:
    tokens = TASKS[task].answer(answer)
    tokens[500:520] = BLACK + 5  # noise outside the grid, on which models are not trained
    page = pages(task, tokens)
    assert not any(map(page.is_visible, ("#generate", "#samples", "#offers")))
    assert page.is_visible("#size") is (task == "arc")
    page.fill("#number", "7")
    page.press("#number", "Tab")
    paste(page, json.dumps({"train": [], "test": [{"input": question}, {"input": answer}]}))
    assert text(page, "#fault") == ""
    assert page.evaluate(CELLS) == rgb(question)
    rows = "/".join("".join(map(str, row)) for row in question)
    assert puzzle_of(page) == f"7: {rows}"
    page.tab.solve()
    assert text(page, "#verdict-title") == "Answered"
    assert "No cell is uncertain." in text(page, "#words")
    shape = f"{len(answer)} x {len(answer[0])} cells"
    assert text(page, "#where") == f"step 1 · 1 particle · {shape}"
    for canvas in ("cloud", "baseline-grid"):
        assert page.evaluate(MIDDLES, [canvas, len(answer), len(answer[0])]) == rgb(answer)
    assert "same answer" in text(page, "#particles")
    assert page.is_hidden("#legend")
    assert page.tab.violations() == []
    link = page.url
    page.goto("about:blank")
    page.set_viewport_size(PHONE)
    page.tab.open(link)
    page.wait_for_function("() => document.getElementById('number').value === '7'")
    assert page.evaluate(CELLS) == rgb(question)
    assert page.tab.overflow() <= 0


def test_uncertain_cells_are_those_of_the_grid(tab: Tab, address: str) -> None:
    """Counted from the grid's own corner; cells outside it are not shown and not named."""
    question, tokens = ARC.question(((5, 5),), 7, (4, 7)), ARC.answer(ANSWER, (4, 7))
    entropy = torch.zeros(BOARD)
    entropy[[0, 899, 5 * 30 + 8]] = 0.6
    run = {"task": "arc", "side": 30, "cells": BOARD, "puzzle": ARC.decode(question),
           "colours": list(ARC.token_colours), "given": [False] * BOARD, "symbols": ["?"] * 12,
           "method": "adaptive"}  # fmt: skip
    result = {"entropy": entropy.tolist(), "confidence": 0.5, "solved_by_rules": None,
              "decided_by": "halting", "outer_steps": 1, "particles": 2}  # fmt: skip
    tab.open(address)
    told = tab.page.evaluate(VERDICT, [run, result, tokens[:BOARD].tolist()])
    assert "1 uncertain cell: row 2, column 2." in told["sentences"]


def test_an_answer_without_a_grid_says_so(pages: Any) -> None:
    page = pages("arc", torch.zeros(904, dtype=torch.uint8))
    page.tab.solve()
    assert text(page, "#verdict-title") == "No rectangle"
    assert "no grid can be read from it" in text(page, "#words")
    assert text(page, "#where").endswith(NO_RECTANGLE)
    assert page.get_attribute("#cloud", "aria-label").endswith(NO_RECTANGLE)


def test_a_number_that_the_model_lacks_is_refused(browser: Any) -> None:
    """The model would take another puzzle's row."""
    with serving(full_model()) as service:
        status, _, found = service.ask("/v1/solve", {"puzzles": ["1: 05", "5: 05/50"]})
        assert status == 422
        assert found["error"].startswith("the id of puzzle 2 must lie in 0..4")
        tab = Tab(browser)
        page = tab.open(f"http://127.0.0.1:{service.port}/")
        page.fill("#number", "5")
        page.click("#solve")
        page.wait_for_function("() => document.getElementById('trouble').textContent")
        assert text(page, "#trouble").startswith("the id of puzzle 1 must lie in 0..4")
        tab.context.close()


def test_type_a_grid(pages: Any) -> None:
    page = pages("arc")
    page.select_option("#columns", "3")
    page.select_option("#rows", "2")
    page.focus("#board [role=grid]")
    page.keyboard.type("123")
    page.keyboard.press("End")
    page.keyboard.press("Backspace")
    assert puzzle_of(page) == "0: 123/000"
    page.click("text='7'")  # a colour of the pad
    assert puzzle_of(page) == "0: 123/007"
    assert page.get_attribute("#cell-5", "aria-label") == "row 2, column 3: 7, orange"
    page.select_option("#columns", "2")
    assert puzzle_of(page) == "0: 12/00"
    page.click("#clear")
    assert puzzle_of(page) == "0: 00/00"


@pytest.mark.parametrize(("pasted", "said"), [
    ("x: 012", "Expected the number of the puzzle before the colon, as in “7” or “7 +2+5”"),
    ("012/34", "Expected rows of one length, got 3 cells in row 1 and 2 in row 2."),
    ("[[1, 12]]", "Expected colours 0 to 9, with “/” between rows, got “12” in row 1."),
    ('{"train": []}', "Expected the JSON of an ARC task, got one without an input under “test”."),
    ('{"a": {}, "b": {}}', "Expected the JSON of one ARC task, got 2."),
    ("[[1, 2]", "Expected the whole JSON of one ARC task, got text that is not JSON."),
    ("", "Expected a grid of 1 x 1 to 30 x 30 cells, got 0 rows of 0."),
])  # fmt: skip
def test_what_is_no_puzzle_is_refused_in_a_sentence(pages: Any, pasted: str, said: str) -> None:
    page = pages("arc")
    before = puzzle_of(page)
    paste(page, pasted)
    assert said in text(page, "#fault")
    assert puzzle_of(page) == before
    assert page.locator("#board [role=gridcell]").count() == 25


def test_a_link_to_a_task_without_a_model_says_so(tab: Tab, address: str) -> None:
    page = tab.open(address, "#task=arc&puzzle=7%3A+05%2F50")
    page.wait_for_function("() => document.getElementById('fault').textContent")
    assert text(page, "#fault") == "No model for ARC is loaded."
