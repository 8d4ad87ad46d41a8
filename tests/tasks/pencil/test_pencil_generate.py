"""Searching and generating: exactly one solution, checked by enumeration and by puzzlekit."""

import csv
import importlib.util
import random
import sys
from pathlib import Path

import pytest
import torch

from tiltrm.errors import DataError, SettingsError
from tiltrm.tasks.check import check_task
from tiltrm.tasks.pencil import (
    HEYAWAKE,
    LIGHTUP,
    NURIKABE,
    TAPA,
    TASKS,
    PencilTask,
    address,
    dataset,
    layouts,
    text,
)
from tiltrm.tasks.pencil import clauses as clauses_module
from tiltrm.tasks.pencil.cells import board_of
from tiltrm.tasks.pencil.generate import draw_size, generate
from tiltrm.tasks.pencil.nurikabe import _swapped
from tiltrm.tasks.pencil.puzzle import PencilPuzzle
from tiltrm.tasks.pencil.search import solutions
from tiltrm.tasks.pencil.symmetry import TURNS, canonical, moved
from tiltrm.tasks.pencil.tokens import BLANK, UNSHADED, encode, encode_answer, mark

GOLDEN = Path(__file__).resolve().parents[4] / "shared/data/ppbench/golden.csv"
needs_solver = pytest.mark.skipif(
    importlib.util.find_spec("ortools") is None, reason="needs OR-Tools: pip install .[generate]"
)
by_task = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)


def enumerated(task: PencilTask, puzzle: PencilPuzzle) -> list[tuple[bool, ...]]:
    """All solutions of a board of 4 x 4, by the rules and nothing else."""
    found = []
    for part in torch.arange(2**16).split(2**13):  # in pieces that fit the cache
        bits = (part[:, None] >> torch.arange(16)) & 1
        answers = torch.full((len(part), 10, 10), BLANK, dtype=torch.uint8)
        answers[:, :4, :4] = torch.where(bits == 1, mark(task.kind), UNSHADED).view(-1, 4, 4)
        solved = task.is_solved(encode(puzzle), answers.flatten(1))
        found += [tuple(bool(bit) for bit in row) for row in bits[solved].tolist()]
    return found


def with_fewer_clues(puzzle: PencilPuzzle, chance: random.Random) -> PencilPuzzle:
    """Some clues removed, so that there are several solutions."""
    empty = [(-1,) if puzzle.kind == LIGHTUP.kind and clue else () for clue in puzzle.clues]
    if puzzle.kind == NURIKABE.kind:
        empty = [(-1,) if clue else () for clue in puzzle.clues]
    pairs = zip(puzzle.clues, empty, strict=True)
    clues = tuple(clue if chance.random() < 0.5 else none for clue, none in pairs)
    return PencilPuzzle(puzzle.kind, puzzle.width, puzzle.height, clues, puzzle.borders)


@pytest.mark.usefixtures("one_thread")
@needs_solver
@by_task
def test_the_search_finds_all_solutions_and_no_others(task: PencilTask) -> None:
    chance = random.Random(0)
    several = 0
    for seed in range(4):
        puzzle, marks = generate(task.kind, seed, (4, 4))
        assert enumerated(task, puzzle) == [marks]
        weaker = with_fewer_clues(puzzle, chance)
        expected = enumerated(task, weaker)
        found = solutions(weaker, limit=200)
        assert len(set(found)) == len(found) == min(200, len(expected))
        assert set(found) <= set(expected)
        several += len(found) > 1
    assert several > 0


@needs_solver
@by_task
def test_generated_puzzles_have_one_solution(task: PencilTask) -> None:
    for seed, size in enumerate([(5, 5), (6, 4), (4, 7), (7, 7)]):
        puzzle, marks = generate(task.kind, seed, size)
        assert (puzzle.width, puzzle.height) == size
        assert solutions(puzzle, seed=99) == [marks]
        answer = encode_answer(task.kind, marks, *size)
        assert task.is_solved(encode(puzzle), answer)


@needs_solver
@by_task
def test_the_same_seed_gives_the_same_puzzle(task: PencilTask) -> None:
    assert generate(task.kind, 7, (5, 6)) == generate(task.kind, 7, (5, 6))
    assert generate(task.kind, 8, (5, 6)) != generate(task.kind, 7, (5, 6))


@needs_solver
@by_task
def test_a_pencil_task_passes_the_checks_of_tasks(task: PencilTask) -> None:
    assert check_task(task, puzzles=2) == 2


def test_swaps_are_the_solutions_that_differ_in_two_cells() -> None:
    """Against all swaps of a land and a sea cell, judged by the rules."""
    chance = random.Random(3)
    board = board_of(5, 5)
    found = {True: 0, False: 0}
    while min(found.values()) < 5:
        water = layouts.sea(board, 5, 6, chance)
        if water is None:
            continue
        islands = board.parts(set(range(25)) - water)
        clues = {chance.choice(part): len(part) for part in islands}
        shown = tuple((clues[cell],) if cell in clues else () for cell in range(25))
        question = encode(PencilPuzzle(NURIKABE.kind, 5, 5, shown))
        swaps = {
            tuple(cell in water ^ {one, two} for cell in range(25))
            for one in water
            for two in set(range(25)) - water
        }
        valid = {
            swap for swap in swaps
            if NURIKABE.is_solved(question, encode_answer(NURIKABE.kind, swap, 5, 5))
        }  # fmt: skip
        witness = _swapped(board, water, clues, islands)
        assert (witness in valid) if valid else (witness is None)
        found[witness is None] += 1


@needs_solver
def test_contradicting_clues_have_no_solution() -> None:
    for task, question in (
        (LIGHTUP, "4 . . . / . . . . / . . . . / . . . ."),
        (NURIKABE, "2 2 . . / . . . . / . . . . / . . . ."),
        (HEYAWAKE, "a5 a b b / a a b b / b b b b / b b b b"),
        (TAPA, "8 . . . / . . . . / . . . . / . . . ."),
    ):
        assert solutions(text.read(task.kind, question)) == []


@needs_solver
def test_a_wall_of_one_cell_is_a_solution_too() -> None:
    puzzle = text.read(TAPA.kind, "1 . 1 . / . . . . / 1 . 1 . / . . . .")
    lone = tuple(cell == 5 for cell in range(16))
    assert lone in solutions(puzzle, limit=50)
    assert set(solutions(puzzle, limit=500)) == set(enumerated(TAPA, puzzle))


@needs_solver
def test_golden_puzzles_have_one_solution() -> None:
    """Which says that addresses, tokens, rules and search mean what people mean."""
    if not GOLDEN.exists():
        pytest.skip("needs ../shared/data/ppbench/golden.csv")
    tasks = {task.name: task for task in TASKS}
    with GOLDEN.open(newline="", encoding="utf-8") as file:
        puzzles = [address.read(row["question"]) for row in csv.DictReader(file)]
    checked = 0
    for puzzle in puzzles:
        if puzzle.kind.name in tasks and max(puzzle.width, puzzle.height) <= 10:
            found = solutions(puzzle)
            assert len(found) == 1, address.write(puzzle)
            answer = encode_answer(puzzle.kind, found[0], puzzle.width, puzzle.height)
            assert tasks[puzzle.kind.name].is_solved(encode(puzzle), answer)
            checked += 1
    assert checked == 45


def plain_rows(puzzle: PencilPuzzle) -> list[list[str]]:
    """Clues as puzzlekit wants them: 'x' is a black cell, '-' is none."""
    shown = [str(c[0]).replace("-1", "x") if c else "-" for c in puzzle.clues]
    return [shown[at : at + puzzle.width] for at in range(0, puzzle.cells, puzzle.width)]


@needs_solver
@pytest.mark.parametrize("task", [LIGHTUP, NURIKABE, HEYAWAKE], ids=lambda task: task.name)
def test_puzzlekit_finds_the_same_solution(task: PencilTask) -> None:
    """100 puzzles a type. It tells one solution only; that there is no other is proved above."""
    pytest.importorskip("puzzlekit", reason="needs puzzlekit: pip install .[dev]")
    from puzzlekit.solvers.akari import AkariSolver
    from puzzlekit.solvers.heyawake import HeyawakeSolver
    from puzzlekit.solvers.nurikabe import NurikabeSolver

    for seed in range(100):
        puzzle, marks = generate(task.kind, seed, (4 + seed % 3, 4 + seed % 2))
        rows = plain_rows(puzzle)
        height, width = puzzle.height, puzzle.width
        if task is HEYAWAKE:
            rooms = [str(room) for room in puzzle.rooms]
            areas = [rooms[at : at + width] for at in range(0, puzzle.cells, width)]
            solver = HeyawakeSolver(height, width, rows, areas)
        else:
            solver = (AkariSolver if task is LIGHTUP else NurikabeSolver)(height, width, rows)
        grid = solve(solver)
        sign = "o" if task is LIGHTUP else "x"
        found = [grid[cell // width][cell % width] == sign for cell in range(puzzle.cells)]
        assert tuple(found) == marks, address.write(puzzle)


def solve(solver: object) -> list[list[str]]:
    """Rows of a puzzlekit solver's solution."""
    solver._add_constr()  # type: ignore[attr-defined]
    solver.solver.parameters.num_workers = 1  # type: ignore[attr-defined]
    solver.solver.solve(solver.model)  # type: ignore[attr-defined]
    rows: list[list[str]] = solver.get_solution().matrix  # type: ignore[attr-defined]
    return rows


def test_without_the_solver_a_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    with pytest.raises(SettingsError, match=r"pip install 'tiltrm\[generate\]'"):
        clauses_module.cp_model()


def test_sizes_are_varied() -> None:
    sizes = [draw_size(random.Random(seed)) for seed in range(2000)]
    assert {side for size in sizes for side in size} == set(range(4, 11))
    assert 1200 < sizes.count((10, 10)) < 1400
    assert len(set(sizes)) == 49


@needs_solver
def test_a_file_is_continued_and_leaves_out_what_it_should(tmp_path: Path) -> None:
    whole, cut, kept = (tmp_path / name for name in ("whole.csv", "cut.csv", "kept.csv"))
    seen: list[int] = []
    assert dataset.write([LIGHTUP.kind], whole, 6, workers=1, progress=seen.append) == 0
    assert seen == [0, 1, 2, 3, 4, 5, 6]  # at first, what the file has
    lines = whole.read_bytes().splitlines(keepends=True)
    cut.write_bytes(b"".join(lines[:3]) + lines[3][:20])  # stopped in the middle of a row
    dataset.write([LIGHTUP.kind], cut, 6, workers=1)
    assert cut.read_bytes() == whole.read_bytes()
    questions, answers, numbers = dataset.read(whole)
    assert LIGHTUP.is_solved(questions, answers).all()
    assert numbers.tolist() == [1] * 6
    # The third puzzle, turned, is kept for evaluation: it must not be in a file for training.
    third = address.read(lines[3].decode().split(",")[3])
    turned = moved(third, TURNS[5])
    kept.write_text(f"type,question\nlightup,{address.write(turned)}\n")
    assert dataset.forms(kept) == {canonical(third)}
    other = tmp_path / "other.csv"
    assert dataset.write([LIGHTUP.kind], other, 5, without=[kept], workers=1) == 1
    assert other.read_bytes().splitlines() == [line.rstrip() for line in lines[:3] + lines[4:7]]


@needs_solver
def test_processes_write_the_same_file(tmp_path: Path) -> None:
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    dataset.write([LIGHTUP.kind], one, 4, workers=1)
    dataset.write([LIGHTUP.kind], two, 4, workers=2)
    assert one.read_bytes() == two.read_bytes()


def test_bad_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "bad.csv"
    with pytest.raises(DataError, match="expected a CSV file"):
        dataset.read(file)
    file.write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="expected a column 'question'"):
        dataset.read(file)
    file.write_text("question,answer\n")
    with pytest.raises(DataError, match="expected at least one puzzle"):
        dataset.read(file)
    file.write_text("question,answer\nhttps://puzz.link/p?nurikabe/4/4/3u,###\n")
    with pytest.raises(DataError, match="expected an answer of 16 cells, got 3"):
        dataset.read(file)
