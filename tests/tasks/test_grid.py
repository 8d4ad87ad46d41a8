"""A bare Grid, and Latin squares, whose rules are checked against plain loops."""

import random
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import torch

from tiltrm.errors import PuzzleError, SettingsError
from tiltrm.tasks import Grid, registry

PATH = Path(__file__).parents[2] / "examples/latin.py"
SVG = "{http://www.w3.org/2000/svg}"
TILES = Grid("tiles", 2, ".ab<")


@pytest.fixture(scope="module")
def latin() -> Any:
    return registry._module(registry.TaskSource(str(PATH), "LATIN", PATH.read_bytes())).LATIN


def broken(task: Any, ids: list[int]) -> int:
    """Digits missing from rows and columns, by loops."""
    side, missing = task.side, 0
    for line in range(side):
        row = {ids[line * side + other] for other in range(side)}
        column = {ids[other * side + line] for other in range(side)}
        missing += sum((digit not in row) + (digit not in column) for digit in range(2, 2 + side))
    return missing


def test_broken_rules_are_those_of_the_loops(latin: Any) -> None:
    chance = random.Random(0)
    _, answer = latin.generate(0)
    for edits in range(8):
        ids = answer.tolist()
        for _ in range(edits):
            ids[chance.randrange(25)] = chance.randrange(1, 7)
        assert int(latin.broken(torch.tensor(ids))) == broken(latin, ids)


def test_violations_count_clues_blanks_and_rules(latin: Any) -> None:
    puzzle, answer = latin.generate(1)
    assert bool(latin.is_solved(puzzle, answer))
    assert not bool(latin.is_solved(puzzle, puzzle))
    changed = answer.clone()
    cell = int(latin.given(puzzle).nonzero()[0])
    changed[cell] = 2 + (changed[cell] - 1) % 5
    assert int(latin.violations(puzzle, changed)) == 1 + broken(latin, changed.tolist())
    blank = answer.clone()
    blank[cell] = 1
    assert int(latin.violations(puzzle, blank)) == 2 + broken(latin, blank.tolist())
    many = latin.violations(puzzle, torch.stack((answer, changed))[None])
    assert many.shape == (1, 2)


def test_generated_puzzles_have_one_solution_and_come_again(latin: Any) -> None:
    for seed in range(5):
        puzzle, answer = latin.generate(seed)
        assert torch.equal(torch.stack(latin.generate(seed)), torch.stack((puzzle, answer)))
        ids = puzzle.tolist()
        assert latin.solutions(ids) == 1
        for cell in (cell for cell, token in enumerate(ids) if token > 1):
            less = [*ids[:cell], 1, *ids[cell + 1 :]]  # no clue is one too many
            assert latin.solutions(less) == 2


def test_symmetries_keep_solutions(latin: Any) -> None:
    puzzle, answer = (torch.stack([each] * 16) for each in latin.generate(2))
    moved, answers = latin.symmetries(puzzle, answer, torch.Generator().manual_seed(0))
    assert bool(latin.is_solved(moved, answers).all())
    assert len(moved.unique(dim=0)) > 10
    still, _ = TILES.symmetries(
        torch.ones(3, 4), torch.ones(3, 4), torch.Generator().manual_seed(0)
    )
    assert torch.equal(still, torch.ones(3, 4))


def test_text_and_back() -> None:
    assert TILES.encode("a.\n<b").tolist() == [2, 1, 4, 3]
    assert TILES.decode(torch.tensor([2, 1, 4, 0])) == "a.<?"
    assert TILES.encode_all(["ab.<", "...."]).tolist() == [[2, 3, 1, 4], [1, 1, 1, 1]]
    assert TILES.clean(" ab # two\n") == "ab"
    assert TILES.width("a b") == 2
    assert TILES.well_formed(torch.tensor([[1, 2, 3, 4], [1, 2, 3, 5]])).tolist() == [True, False]
    assert not TILES.well_formed(torch.tensor([1, 2, 3, 4]), answer=True)
    for wrong, said in (("abc.", "got 'c' at row 2, column 1"), ("ab", "expected 4 cells, got 2")):
        with pytest.raises(PuzzleError, match=said):
            TILES.encode(wrong)
    with pytest.raises(PuzzleError, match="got a blank at row 2, column 2"):
        TILES.encode("aab.", answer=True)


def test_a_terminal_and_a_picture_show_the_characters() -> None:
    puzzle, answer = TILES.encode("a..b"), TILES.encode("a<ab")
    assert TILES.render(puzzle, colour=False) == "a .\n. b"
    assert TILES.render(puzzle, answer, colour=False) == "a <\na b"
    picture = ET.fromstring(TILES.picture(puzzle, answer))  # '<' is escaped, or it fails here
    assert [each.text for each in picture.iter(f"{SVG}text")] == ["a", "<", "a", "b"]
    assert picture.findtext(f"{SVG}title") == "tiles"


def test_methods_that_a_bare_grid_lacks_raise() -> None:
    with pytest.raises(NotImplementedError, match="Grid must define broken"):
        TILES.violations(TILES.encode("...."), TILES.encode("abab"))
    with pytest.raises(SettingsError, match="tiles cannot generate puzzles"):
        TILES.generate(0)


@pytest.mark.parametrize(
    "wrong", [("Tiles", 2, ".a"), ("", 2, ".a"), ("a:b", 2, ".a"), ("t", 0, ".a"), ("t", 2, "."),
              ("t", 2, ".aa"), ("t", 2, ". a"), ("t", 2, ".#"), ("t", 2, ".é")]
)  # fmt: skip
def test_bad_sizes_and_characters_are_refused(wrong: tuple[str, int, str]) -> None:
    with pytest.raises(SettingsError, match="must be"):
        Grid(*wrong)
