"""Addresses: they are read and written exactly, and bad ones are refused in a sentence."""

import csv
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiltrm.errors import PuzzleError
from tiltrm.tasks.pencil import PencilPuzzle, address
from tiltrm.tasks.pencil.puzzle import (
    HEYAWAKE,
    KINDS,
    LIGHTUP,
    NURIKABE,
    SUDOKU,
    TAPA,
    UNKNOWN,
    Kind,
    enclosed,
    room_clues,
)
from tiltrm.tasks.pencil.tokens import TAPA_CLUES

GOLDEN = Path(__file__).resolve().parents[4] / "shared/data/ppbench/golden.csv"


def golden() -> list[dict[str, str]]:
    if not GOLDEN.exists():
        pytest.skip("needs ../shared/data/ppbench/golden.csv")
    with GOLDEN.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def some_puzzle(kind: Kind, seed: int) -> PencilPuzzle:
    """Any clues on any board; it need not have a solution."""
    chance = random.Random(seed)
    width, height = chance.randint(1, 24), chance.randint(1, 24)
    cells = width * height
    if kind == HEYAWAKE:
        edges = (width - 1) * height + width * (height - 1)
        borders = tuple(chance.random() < 0.6 for _ in range(edges))
        rooms = enclosed(borders, width, height)
        numbers = [chance.choice([(), (chance.randint(0, 300),)]) for _ in range(max(rooms) + 1)]
        return PencilPuzzle(kind, width, height, room_clues(rooms, numbers), borders)
    numbers = {
        LIGHTUP: [(n,) for n in (UNKNOWN, 0, 1, 2, 3, 4)],
        NURIKABE: [(UNKNOWN,), *((n,) for n in (1, 9, 10, 15, 16, 255, 256, 4095))],
        SUDOKU: [(n,) for n in range(1, 10)],
        TAPA: [tuple(reversed(clue)) for clue in TAPA_CLUES],
    }[kind]
    share = chance.random()
    clues = (chance.choice(numbers) if chance.random() < share else () for _ in range(cells))
    return PencilPuzzle(kind, width, height, tuple(clues))


def test_every_golden_address_comes_back_unchanged() -> None:
    rows = golden()
    assert len(rows) == 75
    for row in rows:
        found = address.parse(row["question"])
        assert address.write(*found) == row["question"]
        assert found.puzzle.kind.name == row["type"]
        assert (found.puzzle.width, found.puzzle.height) == (int(row["width"]), int(row["height"]))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@given(seed=st.integers(0, 2**31))
@settings(deadline=None, max_examples=30)
def test_reading_undoes_writing(kind: Kind, seed: int) -> None:
    puzzle = some_puzzle(kind, seed)
    assert address.read(address.write(puzzle)) == puzzle


def test_the_bodies_mean_what_the_players_say() -> None:
    lights = address.read("https://puzz.link/p?akari/4/2/.7g1c")  # 7: a 2, then one blank
    assert lights.clues == ((UNKNOWN,), (2,), (), (), (1,), (2,), (), ())
    islands = address.read("https://puzz.link/p?nurikabe/4/1/a-10.g")
    assert islands.clues == ((10,), (16,), (UNKNOWN,), ())
    walls = address.read("https://puzz.link/p?tapa/4/1/9ajbq.")
    assert walls.clues == ((1, 1, 1, 1), (3, 1), (1, 2, 2), (UNKNOWN,))
    # Borders of 2 x 2: to the right of the upper cell only, then below the left cell only.
    rooms = address.read("https://puzz.link/p?heyawake/2/2/gg2g")
    assert rooms.borders == (True, False, True, False)
    assert rooms.rooms == (0, 1, 1, 1)
    assert rooms.room_numbers == ((2,), ())


def test_a_border_may_end_inside_a_room() -> None:
    puzzle = address.read("https://puzz.link/p?heyawake/8/8/022gkf3gc2007o00o01s01v07")
    assert set(puzzle.rooms) == {0}
    assert any(puzzle.borders)
    assert puzzle.room_numbers == ((7,),)


@pytest.mark.parametrize(
    "text",
    [
        "https://puzz.link/p?nurikabe/4/1/3i",
        "http://puzz.link/p?nurikabe/4/1/3i",
        "puzz.link/p?nurikabe/4/1/3i",
        "http://pzv.jp/p.html?nurikabe/4/1/3i",
        "http://pzv.jp/p.html?nurikabe//4/1/3i",
        "https://pzprxs.vercel.app/p?nurikabe_edit/4/1/3i",
        "https://puzz.link/p?nurikabe/4/1/3i/",
        " https://puzz.link/p?nurikabe/4/1/3i\n",
    ],
)
def test_other_forms_of_an_address_are_read(text: str) -> None:
    assert address.is_address(text)
    assert address.read(text) == PencilPuzzle(NURIKABE, 4, 1, ((3,), (), (), ()))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("https://puzz.link/p?slither/4/4/g", "expected a puzzle among .* got 'slither'"),
        ("https://puzz.link/p?nurikabe/4/4/3i", "got 4; the address seems to be cut off"),
        ("https://puzz.link/p?nurikabe/4/1/3i3", "got more; is the size right"),
        ("https://puzz.link/p?nurikabe/4/1/3z", "got more; is the size right"),
        ("https://puzz.link/p?nurikabe/4/1/3-f", "got the character '-'"),
        ("https://puzz.link/p?nurikabe/4/1/3A!!", "got the character 'A'"),
        ("https://puzz.link/p?nurikabe/0/4/", "expected 1 to 10000 cells, got 0 x 4"),
        ("https://puzz.link/p?nurikabe/9999/9999/", "expected 1 to 10000 cells"),
        ("https://puzz.link/p?nurikabe/x/4/4/g", "and no variant"),
        ("https://puzz.link/p?heyawake/4/4/0", "the address seems to be cut off"),
        ("https://puzz.link/p?tapa/4/1/fz", "got the character 'fz'"),
        ("https://puzz.link/p?tapa/4/1/a", "got the character 'a'"),
        ("nonsense", "expected an address like"),
    ],
)
def test_bad_addresses_are_refused(text: str, message: str) -> None:
    with pytest.raises(PuzzleError, match=message):
        address.read(text)


def test_sudokus_are_read_and_written() -> None:
    text = "." * 40 + "5" + "." * 39 + "9"
    assert address.read_sudoku(address.write_sudoku(text)) == text
    assert address.write_sudoku(text.replace(".", "0")) == address.write_sudoku(text)
    for row in golden():
        if row["type"] == "sudoku":
            prefix = address.parse(row["question"]).prefix
            read = address.read_sudoku(row["question"])
            assert len(read) == 81
            assert address.write_sudoku(read, prefix) == row["question"]
    with pytest.raises(
        PuzzleError, match="expected the address of a sudoku, got that of a nurikabe"
    ):
        address.read_sudoku("https://puzz.link/p?nurikabe/4/1/3i")
    with pytest.raises(PuzzleError, match="expected 81 digits"):
        address.write_sudoku("12")
