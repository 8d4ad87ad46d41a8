"""The batched rules: hand-made positions for each of them, and a plain check of every answer."""

import random
from itertools import product

import pytest
import torch
from pencil_plain import CHECKS
from torch import Tensor

from tiltrm.tasks.pencil import HEYAWAKE, LIGHTUP, NURIKABE, TAPA, TASKS, PencilTask
from tiltrm.tasks.pencil.tokens import BLANK, LIGHT, SHADED, UNSHADED


def found(task: PencilTask, question: str, answer: str) -> dict[str, int]:
    """The broken rules of one answer, only those that are broken."""
    counts = task.broken(task.encode(question), task.encode(answer, answer=True))
    return {name: int(count) for name, count in counts.items() if count}


def test_light_up_counts() -> None:
    question = "# . . . / . 1 . . / . . . 2 / . . . ."
    assert found(LIGHTUP, question, "..o./o.../..../....") == {
        "cells without light": 4,  # row 2 column 4, row 3 column 2, row 4 columns 2 and 4
        "numbers": 1,
    }
    assert found(LIGHTUP, question, "..oo/..../..../....")["lights that see each other"] == 1
    assert found(LIGHTUP, question, "..../..../..../....") == {
        "cells without light": 13,
        "numbers": 2,
    }
    assert found(LIGHTUP, question, "o.../..../..../....")["changed clues"] == 1


def test_a_light_shines_up_to_a_black_cell() -> None:
    question = ". . . . / . # # . / . 0 . . / . . . ."
    assert found(LIGHTUP, question, "...o/o.../..../..o.") == {}
    assert found(LIGHTUP, question, "...o/o.../..../....") == {"cells without light": 3}
    assert found(LIGHTUP, question, "...o/o.../..../.oo.")["lights that see each other"] == 1
    assert found(LIGHTUP, question, "...o/o.../..o./.o..") == {"numbers": 1}


def test_nurikabe_counts() -> None:
    question = "2 . . . / . . . 3 / . . . . / 1 . . ."
    assert found(NURIKABE, question, ".###/.#../##.#/.###") == {}
    assert found(NURIKABE, question.replace("2", "?"), ".###/.#../##.#/.###") == {}
    assert found(NURIKABE, question, "..##/###./##../.###") == {"squares of shaded cells": 1}
    assert found(NURIKABE, question, "..##/###./..../.###") == {
        "parts of the sea beyond the first": 1,
        "clues beyond the first of an island": 1,
    }
    assert found(NURIKABE, question, "..##/###./#.#./.###") == {
        "islands without a clue": 1,
        "islands of a wrong size": 1,
    }
    assert found(NURIKABE, question, "####/####/####/####") == {
        "changed clues": 3,
        "squares of shaded cells": 9,
    }


def test_heyawake_counts() -> None:
    rooms = "a1 a b b / a a b b1 / c2 c d d / c c d d"
    assert found(HEYAWAKE, rooms, "#..#/..../.#../#...") == {}
    assert found(HEYAWAKE, rooms, "##.#/..../.#../#...") == {
        "shaded neighbours": 1,
        "room numbers": 1,
    }
    assert found(HEYAWAKE, rooms, "...#/..../.#../#...") == {"room numbers": 1}
    assert found(HEYAWAKE, rooms, "#..#/..../.#../#.#.") == {
        "parts of the unshaded cells beyond the first": 1
    }
    columns = "a b c d / a b c d / a b c d / a b c d"  # each row crosses two borders too many
    assert found(HEYAWAKE, columns, "..../..../..../....") == {"lines through three rooms": 8}
    assert found(HEYAWAKE, columns, ".#../..../..#./....") == {"lines through three rooms": 4}


def test_a_border_that_ends_inside_a_room_counts_for_lines() -> None:
    """Two borders to the right of cells of the first row, in a board that is a single room."""
    question = "https://puzz.link/p?heyawake/4/4/o00000g"
    assert found(HEYAWAKE, question, "..../..../..../....") == {"lines through three rooms": 1}
    assert found(HEYAWAKE, question, ".#../..../..../....") == {}


def test_large_room_numbers_count() -> None:
    """Numbers beyond 6 are spread over the cells of a room."""
    for number, broken in ((8, {}), (7, {"room numbers": 1}), (9, {"room numbers": 1})):
        question = "\n".join(["a" + str(number) + " a a a", *["a a a a"] * 3])
        counts = found(HEYAWAKE, question, "#.#./.#.#/#.#./.#.#")
        counts.pop("parts of the unshaded cells beyond the first")
        assert counts == broken


def test_tapa_counts() -> None:
    question = "3 . . . / . . . . / . . 8 . / . . . ."
    assert found(TAPA, question, ".#../####/.#.#/.###") == {}
    assert found(TAPA, question, ".##./####/.#.#/.###") == {"squares of shaded cells": 1}
    assert found(TAPA, question, ".#../#..#/.#.#/.###")["parts of the wall beyond the first"] == 2
    assert found(TAPA, question, ".#../####/.#.#/.##.") == {"clues": 1}
    assert found(TAPA, question, "##../####/.#.#/.###")["changed clues"] == 1
    for clue, fits in (("11", True), ("1?", True), ("??", True), ("?", False), ("2", False)):
        around = f". . . . / . {clue} . . / . . . . / . . . ."
        assert ("clues" not in found(TAPA, around, "#.##/...#/...#/..##")) == fits


def test_cells_that_are_not_filled_in_count() -> None:
    question = NURIKABE.encode("2 . . . / . . . . / . . . . / . . . .")
    answer = NURIKABE.encode(".###/.###/####/####", answer=True)
    answer[1] = BLANK
    answer[2] = LIGHT
    assert NURIKABE.broken(question, answer)["cells not filled in"] == 2
    answer[50] = SHADED  # outside the board
    assert NURIKABE.broken(question, answer)["cells not filled in"] == 2
    assert NURIKABE.broken(question, answer)["parts of the sea beyond the first"] == 0


def random_question(task: PencilTask, chance: random.Random) -> list[list[str]]:
    width, height = chance.randint(4, 5), 4
    if task is HEYAWAKE:
        cut, top = chance.randint(1, width - 1), chance.randint(1, 3)
        rows = [["abcd"[2 * (r >= top) + (c >= cut)] for c in range(width)] for r in range(height)]
        rows[0][0] += str(chance.randint(0, 2))
        return rows
    clues = {
        "lightup": ["#", "0", "1", "2"],
        "nurikabe": ["1", "2", "3", "?"],
        "tapa": ["1", "2", "3", "11", "12", "22", "1?", "?"],
    }[task.name]
    share = chance.uniform(0.05, 0.3)
    return [
        [chance.choice(clues) if chance.random() < share else "." for _ in range(width)]
        for _ in range(height)
    ]


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_every_answer_of_small_boards_is_judged_as_by_the_plain_rules(task: PencilTask) -> None:
    """All 2^16 answers of 4 x 4 boards, and random ones of 5 x 4; some of them are solutions."""
    chance = random.Random(0)
    mark = LIGHT if task is LIGHTUP else SHADED
    solved = 0
    for _ in range(10):
        rows = random_question(task, chance)
        width, height = len(rows[0]), len(rows)
        question = task.encode("\n".join(" ".join(row) for row in rows))
        numbers = torch.tensor(chance.sample(range(2 ** (width * height)), 2**13))
        if width == 4 and solved < 1:
            numbers = torch.arange(2**16)
        bits = (numbers[:, None] >> torch.arange(width * height)) & 1
        answers = torch.full((len(bits), 10, 10), BLANK)
        filled = torch.where(bits == 1, mark, UNSHADED).view(-1, height, width)
        answers[:, :height, :width] = filled
        ours = task.is_solved(question, answers.flatten(1))
        for row in [*ours.nonzero().flatten().tolist(), *chance.sample(range(len(bits)), 300)]:
            chosen = {divmod(cell, width) for cell in bits[row].nonzero().flatten().tolist()}
            assert CHECKS[task.name](rows, chosen) == bool(ours[row]), (rows, chosen)
        solved += int(ours.sum())
    assert solved > 0


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_batch_is_judged_as_its_puzzles_alone(task: PencilTask) -> None:
    chance = random.Random(1)
    questions = [random_question(task, chance) for _ in range(4)]
    puzzles = torch.stack([task.encode("\n".join(map(" ".join, rows))) for rows in questions])
    generator = torch.Generator().manual_seed(0)
    answers = torch.randint(0, 14, (4, 5, 100), generator=generator).to(torch.uint8)
    whole = task.broken(puzzles[:, None], answers)
    for puzzle, particle in product(range(4), range(5)):
        alone = task.broken(puzzles[puzzle], answers[puzzle, particle])
        assert all(int(alone[name]) == int(whole[name][puzzle, particle]) for name in whole)
    assert torch.equal(task.violations(puzzles[:, None], answers), sum_of(whole))


def sum_of(counts: dict[str, Tensor]) -> Tensor:
    total = torch.zeros_like(next(iter(counts.values())))
    for count in counts.values():
        total += count
    return total


def test_long_snakes_are_one_part() -> None:
    """A wall that winds through the whole board, which takes the most steps to follow."""
    rows = ["#" * 10, "." * 9 + "#", "#" * 10, "#" + "." * 9] * 3
    rows = rows[:10]
    question = "/".join(["." * 10] * 10)
    assert found(TAPA, question, "/".join(rows)) == {}
    broken = [*rows[:5], "." * 10, *rows[6:]]
    assert found(TAPA, question, "/".join(broken)) == {"parts of the wall beyond the first": 1}
