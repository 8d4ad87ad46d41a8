"""Sudoku: text, rules, generator."""

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tiltrm.errors import PuzzleError, SettingsError
from tiltrm.tasks import SUDOKU, Sudoku, sudoku_generate

TOY = Sudoku(2)
PUZZLE = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79"
ANSWER = "534678912672195348198342567859761423426853791713924856961537284287419635345286179"


def broken_rules(task: Sudoku, puzzle: list[int], answer: list[int]) -> int:
    """The definition of `violations` in double loops."""
    side, box = task.side, task.box
    digits = set(range(2, side + 2))
    units = []
    for i in range(side):
        units.append([(i, j) for j in range(side)])
        units.append([(j, i) for j in range(side)])
        top, left = i // box * box, i % box * box
        units.append([(top + j // box, left + j % box) for j in range(side)])
    count = sum(p in digits and p != a for p, a in zip(puzzle, answer, strict=True))
    count += sum(a not in digits for a in answer)
    for unit in units:
        count += len(digits - {answer[row * side + column] for row, column in unit})
    return count


def grids(task: Sudoku, low: int, high: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(low, high), min_size=task.cells, max_size=task.cells)


@given(st.text() | st.text("123456789.0_*|-+ \n│─x", max_size=120))
@settings(deadline=None, max_examples=300)
def test_encode_raises_nothing_but_puzzle_error(text: str) -> None:
    for task in (SUDOKU, TOY):
        for answer in (False, True):
            try:
                tokens = task.encode(text, answer=answer)
            except PuzzleError:
                continue
            assert tokens.shape == (task.cells,)
            assert task.well_formed(tokens, answer=answer)


@given(grids(TOY, 0, 6))
@settings(deadline=None)
def test_well_formed_is_what_encode_accepts(ids: list[int]) -> None:
    tokens = torch.tensor(ids, dtype=torch.uint8)
    try:
        again = TOY.encode(TOY.decode(tokens))
    except PuzzleError:
        assert not TOY.well_formed(tokens)
    else:
        assert torch.equal(again, tokens)
        assert TOY.well_formed(tokens)


@given(st.integers(0, 2**32), st.integers(0, 81))
@settings(deadline=None, max_examples=20)
def test_decode_undoes_encode(seed: int, keep: int) -> None:
    cells = torch.randperm(81, generator=torch.Generator().manual_seed(seed))[keep:]
    text = "".join("." if i in cells.tolist() else c for i, c in enumerate(ANSWER))
    assert SUDOKU.decode(SUDOKU.encode(text)) == text


def test_ids_are_the_public_ones() -> None:
    tokens = SUDOKU.encode("1........" + "." * 63 + "........9")
    assert tokens[[0, 1, 80]].tolist() == [2, 1, 10]
    assert tokens.dtype == torch.uint8
    assert (SUDOKU.cells, SUDOKU.vocabulary, TOY.cells, TOY.vocabulary) == (81, 11, 16, 6)
    assert SUDOKU.decode(torch.tensor([0, 1, 2, 10, 11, -1])) == "?.19??"


@pytest.mark.parametrize("blank", [".", "0", "_", "*"])
def test_pasted_grids_read(blank: str) -> None:
    rows = [PUZZLE[i : i + 9].replace(".", blank) for i in range(0, 81, 9)]
    ruled = "\n------+-------+------\n".join(
        "\n".join(f"{row[:3]} | {row[3:6]} | {row[6:]}" for row in rows[i : i + 3])
        for i in (0, 3, 6)
    )
    for text in ("\n".join(rows), "\r\n".join(rows) + "\r\n", ruled):
        assert torch.equal(SUDOKU.encode(text), SUDOKU.encode(PUZZLE))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".5.....5." + "." * 72, r"clues conflict: 5 twice in row 1 \(columns 2 and 8\)"),
        ("." * 6 + "7" + "." * 35 + "7" + "." * 38, r"7 twice in column 7 \(rows 1 and 5\)"),
        ("1" + "." * 9 + "1" + "." * 70, r"box 1 \(row 1, column 1 and row 2, column 2\)"),
        ("." * 80, "expected 81 cells, got 80"),
        ("." * 82, "expected 81 cells, got 82"),
        ("-" * 81, "write blanks as '.'"),
        ("." * 24 + "x" + "." * 56, "got 'x' at row 3, column 7"),
        ("." * 81 + "é", "got 'é' at cell 82"),
    ],
)
def test_errors_name_the_cells(text: str, message: str) -> None:
    with pytest.raises(PuzzleError, match=message):
        SUDOKU.encode(text)


def test_an_answer_has_no_blank() -> None:
    assert SUDOKU.is_solved(SUDOKU.encode(PUZZLE), SUDOKU.encode(ANSWER, answer=True))
    with pytest.raises(PuzzleError, match="got a blank at row 9, column 9"):
        SUDOKU.encode(ANSWER[:-1] + ".", answer=True)


def test_encode_all_agrees_with_encode_and_raises_alike() -> None:
    texts = [PUZZLE, "." * 81, ANSWER]
    assert torch.equal(SUDOKU.encode_all(texts), torch.stack([SUDOKU.encode(t) for t in texts]))
    ruled = [SUDOKU.render(SUDOKU.encode(PUZZLE), colour=False), "0" * 81]
    assert SUDOKU.encode_all(ruled).shape == (2, 81)
    assert SUDOKU.encode_all([]).shape == (0, 81)
    for bad in ("5" * 81, "x" * 81, "." * 80, "é" * 81):
        with pytest.raises(PuzzleError):
            SUDOKU.encode_all([PUZZLE, bad])
    with pytest.raises(PuzzleError, match="no blank"):
        SUDOKU.encode_all([PUZZLE], answer=True)


@pytest.mark.parametrize("times", range(2, 10))
@pytest.mark.parametrize("unit", ["row", "column", "box"])
def test_one_digit_however_often_in_one_unit_is_refused(unit: str, times: int) -> None:
    """Read one by one and by the thousand; a random grid breaks more than one unit at once."""
    rows, columns = torch.arange(9) // 3, torch.arange(9) % 3
    cells = {"row": torch.arange(9), "column": 9 * torch.arange(9), "box": 9 * rows + columns}
    tokens = torch.ones(81, dtype=torch.uint8)
    tokens[cells[unit][:times]] = 10
    assert not SUDOKU.well_formed(tokens)
    for read in (SUDOKU.encode, lambda text: SUDOKU.encode_all([PUZZLE, text])):
        with pytest.raises(PuzzleError, match="9 twice in"):
            read(SUDOKU.decode(tokens))
    tokens[cells[unit][1:]] = 1
    assert SUDOKU.well_formed(tokens)


@given(grids(TOY, 0, 7), grids(TOY, -1, 7))
@settings(deadline=None)
def test_violations_equal_the_double_loop(puzzle: list[int], answer: list[int]) -> None:
    found = TOY.violations(torch.tensor(puzzle), torch.tensor(answer))
    assert found == broken_rules(TOY, puzzle, answer)


@given(st.lists(st.tuples(st.integers(0, 80), st.integers(0, 12)), max_size=4))
@settings(deadline=None, max_examples=60)
def test_violations_are_zero_iff_solved(edits: list[tuple[int, int]]) -> None:
    puzzle, solution = SUDOKU.encode(PUZZLE), SUDOKU.encode(ANSWER)
    answer = solution.clone()
    for cell, token in edits:
        answer[cell] = token
    found = SUDOKU.violations(puzzle, answer)
    assert found == broken_rules(SUDOKU, puzzle.tolist(), answer.tolist())
    # The puzzle has one solution, so any other grid breaks a rule.
    assert SUDOKU.is_solved(puzzle, answer) == torch.equal(answer, solution) == (found == 0)


def test_a_solution_of_other_clues_is_not_solved() -> None:
    swapped = ANSWER.translate(str.maketrans("12", "21"))
    assert SUDOKU.is_solved(SUDOKU.encode("." * 81), SUDOKU.encode(swapped))
    changed = sum(c in "12" for c in PUZZLE)
    assert SUDOKU.violations(SUDOKU.encode(PUZZLE), SUDOKU.encode(swapped)) == changed


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64])
def test_violations_broadcast_over_particles(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    puzzles = torch.stack([SUDOKU.encode(PUZZLE), SUDOKU.encode("." * 81)]).to(dtype)
    cloud = torch.randint(0, 12, (2, 5, 81), generator=generator).to(dtype)
    cloud[0, 3] = SUDOKU.encode(ANSWER)
    found = SUDOKU.violations(puzzles[:, None], cloud)
    assert found.shape == (2, 5)
    assert found.dtype == torch.int64
    one_by_one: list[list[Tensor]] = [
        [SUDOKU.violations(puzzles[i], cloud[i, j]) for j in range(5)] for i in range(2)
    ]
    assert found.tolist() == one_by_one
    assert SUDOKU.is_solved(puzzles[:, None], cloud).nonzero().tolist() == [[0, 3]]


def test_given_cells_are_the_clues() -> None:
    flags = SUDOKU.given(SUDOKU.encode(PUZZLE)).tolist()
    assert flags == [character != "." for character in PUZZLE]


def test_solutions_are_counted() -> None:
    assert SUDOKU.solutions(PUZZLE) == 1
    assert SUDOKU.solutions("." * 81) == 2
    assert TOY.solutions("." * 16, limit=1000) == 288  # all 4x4 Sudokus there are
    # Exchanging the pair 1, 2 in a rectangle gives a second solution.
    assert SUDOKU.solutions(ANSWER.replace("1", ".").replace("2", "."), limit=9) >= 2
    assert SUDOKU.solutions("12345678." + "........9" + "." * 63) == 0
    assert SUDOKU.solutions("5" * 81) == 0


@pytest.mark.parametrize(("task", "seed"), [(SUDOKU, 0), (SUDOKU, 1), (TOY, 0), (TOY, 1)])
def test_generated_puzzles_are_minimal(task: Sudoku, seed: int) -> None:
    puzzle, answer = task.generate(seed)
    assert task.is_solved(puzzle, answer)
    assert task.solutions(task.decode(puzzle)) == 1
    for cell in task.given(puzzle).nonzero().flatten():
        fewer = puzzle.clone()
        fewer[cell] = 1
        assert task.solutions(task.decode(fewer)) == 2


def test_generator_is_seeded() -> None:
    assert torch.equal(SUDOKU.generate(7)[0], SUDOKU.generate(7)[0])
    assert not torch.equal(SUDOKU.generate(7)[1], SUDOKU.generate(8)[1])


def test_only_small_boxes_exist() -> None:
    with pytest.raises(SettingsError, match="2 or 3"):
        Sudoku(4)


def test_solutions_are_counted_cheaply() -> None:
    """The same as the plain search on puzzles with none, one and several solutions."""
    chance, seen = random.Random(0), set()
    for seed in range(12):
        puzzle = sudoku_generate.generate(3, seed)[0]
        for _ in range(chance.randrange(3)):
            puzzle[chance.randrange(81)] = chance.randrange(1, 11)
        expected = sudoku_generate.count(puzzle, 3, 2)
        assert sudoku_generate.count_cheaply(puzzle, 3, 2, 10**6) == expected
        seen.add(expected)
    for _ in range(200):
        small = [chance.choice((1, 1, 1, 2, 3, 4, 5)) for _ in range(16)]
        expected = sudoku_generate.count(small, 2, 5)
        assert sudoku_generate.count_cheaply(small, 2, 5, 10**6) == expected
    assert seen == {0, 1, 2}
    assert sudoku_generate.count_cheaply([1] * 81, 3, 2, 3) is None
    assert SUDOKU.count_solutions(torch.ones(81, dtype=torch.uint8)) == 2
