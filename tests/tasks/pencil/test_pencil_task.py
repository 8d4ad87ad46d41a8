"""The tasks as a whole: text, tokens, symmetries and pictures."""

import csv
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tiltrm.errors import PuzzleError, SettingsError
from tiltrm.tasks.base import TOKENS, Task, views
from tiltrm.tasks.pencil import HEYAWAKE, LIGHTUP, NURIKABE, TAPA, TASKS, PencilTask, address, text
from tiltrm.tasks.pencil.puzzle import SUDOKU
from tiltrm.tasks.pencil.symmetry import TURNS, canonical, moved, square
from tiltrm.tasks.pencil.tokens import (
    ANSWER_IDS,
    BLANK,
    QUESTION_IDS,
    SHADED,
    UNSHADED,
    VOCABULARY,
    encode,
)

GOLDEN = Path(__file__).resolve().parents[4] / "shared/data/ppbench/golden.csv"
QUESTIONS = {
    LIGHTUP: ". 1 . . # / . . . . . / # . . 2 . / . . . . .",
    NURIKABE: "2 . . . . / . . 12 . . / . . . . ? / 1 . . . .",
    HEYAWAKE: "a1 a b b b / a c c2 b b / d d c e e / d d c e e9",
    TAPA: "3 . . . . / . . . 11 . / . ? . . 1? / . . 13 . .",
}
ANSWERS = {
    LIGHTUP: "o..o./....o/..o../.o...",
    NURIKABE: ".####/.#..#/###../.###.",
    HEYAWAKE: "#..#./...../.#..#/#..#.",
    TAPA: ".#.../####./..#../..#..",
}


def pair(task: PencilTask) -> tuple[Tensor, Tensor]:
    return task.encode(QUESTIONS[task]), task.encode(ANSWERS[task], answer=True)


def golden() -> list[tuple[PencilTask, str]]:
    """The golden puzzles that fit the board."""
    if not GOLDEN.exists():
        pytest.skip("needs ../shared/data/ppbench/golden.csv")
    by_name = {task.name: task for task in TASKS}
    with GOLDEN.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["type"] in by_name]
    fitting = [row for row in rows if max(int(row["width"]), int(row["height"])) <= 10]
    return [(by_name[row["type"]], row["question"]) for row in fitting]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_pencil_task_is_a_task(task: PencilTask) -> None:
    needed = [name for name in vars(Task) if not name.startswith("_")]
    assert [name for name in needed if not hasattr(task, name)] == []
    assert task.cells == task.side**2 == 100
    assert ANSWER_IDS < task.vocabulary == VOCABULARY < TOKENS
    assert hash(task) == hash(PencilTask(task.kind))


def test_types_have_numbers_and_ids_of_their_own() -> None:
    assert [task.number for task in TASKS] == [1, 2, 3, 4]
    ids = [each for own in QUESTION_IDS.values() for each in own]
    assert len(ids) == len(set(ids))
    assert list(QUESTION_IDS[SUDOKU]) == list(range(1, 11))  # as the task sudoku has them
    assert max(ids) == VOCABULARY - 1


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_tokens_come_back_as_the_puzzle(task: PencilTask) -> None:
    question, answer = pair(task)
    assert torch.equal(task.encode(task.decode(question)), question)
    assert torch.equal(task.encode(text.write(task.puzzle(question))), question)
    assert task.decode(answer) == ANSWERS[task]
    assert task.well_formed(question)
    assert task.well_formed(answer, answer=True)
    assert not task.well_formed(answer)
    assert not task.well_formed(question, answer=True)
    both = task.encode_all([QUESTIONS[task], task.decode(question)])
    assert torch.equal(both, question.expand(2, -1))
    assert task.encode_all([]).shape == (0, 100)


def test_golden_puzzles_come_back_from_their_tokens() -> None:
    found = golden()
    assert len(found) == 45
    for task, question in found:
        tokens = task.encode(question)
        assert task.well_formed(tokens)
        assert canonical(task.puzzle(tokens)) == canonical(address.read(question))
        if task is not TAPA:  # whose clues have no order
            assert task.puzzle(tokens) == address.read(question)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_broken_boards_are_not_well_formed(task: PencilTask) -> None:
    question, answer = pair(task)
    for place in (0, 12, 99):
        spoilt = question.clone()
        spoilt[place] = 0 if place < 99 else 5
        assert not task.well_formed(spoilt)
    answer[77] = SHADED
    assert not task.well_formed(answer, answer=True)
    assert not task.well_formed(torch.zeros(100, dtype=torch.uint8))
    assert not task.well_formed(torch.full((100,), BLANK, dtype=torch.uint8), answer=True)


def test_given_are_clues_in_the_way_and_all_outside() -> None:
    for task, inside in ((LIGHTUP, 4), (NURIKABE, 4), (TAPA, 5), (HEYAWAKE, 0)):
        question, _ = pair(task)
        assert int(task.given(question).sum()) == 80 + inside


@pytest.mark.parametrize(
    ("task", "question", "message"),
    [
        (NURIKABE, "3 . . / . . . / . . .", "board of 4 x 4 to 10 x 10, got 3 x 3"),
        (NURIKABE, "https://puzz.link/p?nurikabe/12/12/q6m6o6p6zh6y6h6r6i6x6p6p", "got 12 x 12"),
        (NURIKABE, "https://puzz.link/p?tapa/4/4/v", "expected a nurikabe, got the address of a"),
        (NURIKABE, "3 . . . / . . .", "expected 4 cells in every row, got 3 in row 2"),
        (NURIKABE, "x . . . / . . . . / . . . . / . . . .", "expected '.', '\\?' or a number"),
        (NURIKABE, "99 . . . / . . . . / . . . . / . . . .", "expected numbers 1 to 45"),
        (TAPA, "88 . . . / . . . . / . . . . / . . . .", "expected runs that fit round a cell"),
        (LIGHTUP, "5...", "expected '.', '#' or 0 to 4"),
        (HEYAWAKE, "a1 a2 a a / a a a a / a a a a / a a a a", "expected one number in the room a"),
        (HEYAWAKE, "a . . .", "expected a room like b"),
        (HEYAWAKE, "a b b b / b b b b / b b b99 b / b b b b", "expected at most 15"),
        (NURIKABE, " ", "expected an address or rows of cells, got nothing"),
    ],
)
def test_bad_questions_are_refused(task: PencilTask, question: str, message: str) -> None:
    with pytest.raises(PuzzleError, match=message):
        task.encode(question)


def test_answers_are_read_in_one_line_or_by_rows() -> None:
    square_one = TAPA.encode("#..#" * 4, answer=True)
    assert TAPA.decode(square_one) == "#..#" * 4
    assert torch.equal(square_one, TAPA.encode("#..#/#..#/#..#/#..#", answer=True))
    assert int((square_one == SHADED).sum()) == 8
    assert int((square_one == UNSHADED).sum()) == 8
    assert int((square_one == BLANK).sum()) == 84
    with pytest.raises(PuzzleError, match=r"expected '#' or '\.' in an answer to a tapa"):
        TAPA.encode("o..." * 4, answer=True)
    with pytest.raises(PuzzleError, match="got 20 x 1"):
        TAPA.encode("#..." * 5, answer=True)


def test_strange_tokens_are_shown() -> None:
    assert LIGHTUP.decode(torch.tensor([11, 12, 13, 0, 200])) == ".#o??"
    assert [NURIKABE.width(line) for line in ("..3.", "1 2 3", "", "a/b")] == [4, 3, 0, 100]
    assert LIGHTUP.clean(" #..# \n") == "#..#"


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
@given(seed=st.integers(0, 2**31))
@settings(deadline=None, max_examples=10)
def test_a_symmetry_keeps_every_count(task: PencilTask, seed: int) -> None:
    question, answer = (each.expand(6, -1) for each in pair(task))
    generator = torch.Generator().manual_seed(seed)
    noise = torch.rand(answer.shape, generator=generator) < 0.1
    answer = torch.where(noise, torch.randint(11, 14, answer.shape, generator=generator), answer)
    drawn = task.symmetry(6, generator)
    before = task.broken(question, answer)
    after = task.broken(drawn.apply(question), drawn.apply(answer))
    for rule in before:
        assert torch.equal(before[rule], after[rule]), rule
    assert torch.equal(drawn.undo(drawn.apply(question)), question)
    assert task.well_formed(drawn.apply(question)).all()
    assert torch.equal(task.given(drawn.apply(question)).sum(-1), task.given(question).sum(-1))


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_tokens_and_puzzles_move_alike(task: PencilTask) -> None:
    """Turned tokens are those of the turned puzzle, but for where on the board they stand."""
    question, _ = pair(task)
    puzzle = task.puzzle(question)
    eight = square(torch.device("cpu")).apply(question.expand(8, -1))
    turned = [moved(puzzle, turn) for turn in TURNS]
    assert [task.puzzle(tokens) for tokens in eight] == turned
    assert len(set(turned)) == 8
    assert {canonical(each) for each in turned} == {canonical(puzzle)}
    other = task.puzzle(task.encode(QUESTIONS[task].replace("2", "3").replace("11", "12")))
    assert canonical(other) != canonical(puzzle)
    assert torch.equal(encode(turned[0]), question)


def test_a_task_has_eight_views() -> None:
    for task in TASKS:
        seen = views(task, 8, 0)
        assert torch.equal(seen.names[0], torch.arange(VOCABULARY))
        with pytest.raises(SettingsError, match="at most 8 views"):
            views(task, 9, 0)


def test_pictures_for_the_terminal() -> None:
    question, answer = pair(HEYAWAKE)
    drawn = HEYAWAKE.render(question, answer, colour=False).splitlines()
    assert drawn[0] == "┌─────┬────────┐"
    assert drawn[1] == "│1▓ · │·  ▓▓ · │"
    assert len(drawn) == 9
    question, answer = pair(LIGHTUP)
    assert LIGHTUP.render(question, answer, colour=False).splitlines()[1] == "│o  1  ·  o  ██│"
    unsure = LIGHTUP.render(question, answer, torch.zeros(100))
    assert "\x1b[38;5;196m" in unsure  # red
    with pytest.raises(SettingsError, match=r"expected answer of shape \(100,\), got \(3,\)"):
        LIGHTUP.render(question, answer[:3])


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_pictures_as_svg(task: PencilTask) -> None:
    question, answer = pair(task)
    drawn = task.picture(question, answer, torch.full((100,), 0.5), wrong=torch.arange(100) == 0)
    assert drawn.startswith("<svg ")
    assert drawn.endswith("</svg>\n")
    assert f"<title>{task.name}</title>" in drawn
    marked = ANSWERS[task].count("o") + ANSWERS[task].count("#")
    assert drawn.count("<circle" if task is LIGHTUP else 'fill="#2563a8"') == marked
    assert drawn.count('fill="#d0342c"') == 1
    assert '"nan' not in task.picture(question, answer, torch.full((100,), torch.nan))
