"""ARC grids as rows: turns as the peers number them, texts, and sentences for bad grids."""

import numpy as np
import pytest

from tiltrm.errors import PuzzleError, SizeError
from tiltrm.tasks.arc.grids import (
    TURNS,
    UNTURNED,
    check_grid,
    read_rows,
    recolour,
    turn,
    turn_sources,
    write_rows,
)

GRID = ((0, 1, 2), (3, 4, 5))


def test_turns_are_those_of_the_peers() -> None:
    assert turn(GRID, 1) == ((2, 5), (1, 4), (0, 3))  # counter-clockwise
    assert turn(GRID, 2) == ((5, 4, 3), (2, 1, 0))
    assert turn(GRID, 4) == ((2, 1, 0), (5, 4, 3))  # left and right exchanged
    assert turn(GRID, 5) == ((3, 4, 5), (0, 1, 2))
    assert turn(GRID, 6) == ((0, 3), (1, 4), (2, 5))
    assert turn(GRID, 7) == ((5, 2), (4, 1), (3, 0))


@pytest.mark.parametrize("number", range(TURNS))
def test_every_turn_is_undone(number: int) -> None:
    assert turn(turn(GRID, number), UNTURNED[number]) == GRID


def test_sources_turn_a_square() -> None:
    square = tuple(tuple(row) for row in np.arange(9).reshape(3, 3).tolist())
    for number, source in enumerate(turn_sources(3)):
        moved = tuple(value for row in turn(square, number) for value in row)
        assert tuple(source.tolist()) == moved


def test_texts_read_back() -> None:
    assert write_rows(GRID) == "012/345"
    assert read_rows("012/345") == read_rows("012\n345\n") == GRID
    assert recolour(GRID, (9, 8, 7, 6, 5, 4, 3, 2, 1, 0)) == ((9, 8, 7), (6, 5, 4))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "rows of colours 0 to 9, got []"),
        ("012", "rows of colours"),
        ([[0, 1], [2]], "rows of one length, got 2 cells in row 1 and 1 in row 2"),
        ([[0, 10]], "colours 0 to 9, got 10 in row 1"),
        ([[0], [-1]], "colours 0 to 9, got -1 in row 2"),
        ([[0, True]], "colours 0 to 9, got True"),
        ([[0, 1.0]], "colours 0 to 9, got 1.0"),
        ([[1], []], r"got [] as row 2"),
        ([[1], 3], "got 3 as row 2"),
    ],
)
def test_a_bad_grid_is_a_sentence(rows: object, said: str) -> None:
    with pytest.raises(PuzzleError) as error:
        check_grid(rows)
    assert said in str(error.value)


def test_a_grid_over_30_x_30_is_of_a_size_that_is_not_held() -> None:
    assert len(check_grid([[0] * 30] * 30)) == 30
    with pytest.raises(SizeError, match="at most 30 x 30 cells, got 31 rows of 2"):
        check_grid([[0, 0]] * 31)


def test_a_letter_in_a_text_is_named() -> None:
    with pytest.raises(PuzzleError, match="got 'x' in row 2"):
        read_rows("01/x2")
