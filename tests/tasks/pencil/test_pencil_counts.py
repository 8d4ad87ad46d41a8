"""Boards of all types in one batch, rule by rule, against a plain count; and few operations."""

import random
from typing import NamedTuple

import pytest
import torch
from benchmarks.pencil_rules import Operations
from pencil_counts import COUNTS, Rows
from pencil_counts import sudoku as sudoku_count
from pencil_plain import Cell, cells_of, parts
from pencil_samples import PUZZLES
from torch import Tensor

from tiltrm.tasks.base import PAD
from tiltrm.tasks.pencil import HEYAWAKE, LIGHTUP, PENCIL, TASKS, PencilTask, boards, text
from tiltrm.tasks.pencil.mixed import board_of_sudoku
from tiltrm.tasks.pencil.tokens import BLANK, LIGHT, SHADED, UNSHADED
from tiltrm.tasks.sudoku import SUDOKU

CLUES = {
    "lightup": ["#", "0", "1", "2", "3"],
    "nurikabe": ["1", "2", "3", "5", "9", "?"],
    "tapa": ["0", "1", "2", "3", "5", "8", "11", "12", "1?", "?", "111"],
}
MOST_OPERATIONS = 330  # 310 when this was written (`python -m benchmarks.pencil_rules`)


class Sample(NamedTuple):
    """A question, an answer, and how often it breaks each rule by a plain check."""

    task: PencilTask | None  # None: Sudoku
    question: Tensor
    answer: Tensor
    counts: dict[str, int]


def random_rows(task: PencilTask, chance: random.Random) -> Rows:
    """A question on a rectangle of 4 x 4 to 10 x 10; it need not have a solution."""
    height, width = chance.randint(4, 10), chance.randint(4, 10)
    if task is not HEYAWAKE:
        share = chance.uniform(0.05, 0.3)
        clues = CLUES[task.name]
        rows = [
            [chance.choice(clues) if chance.random() < share else "." for _ in range(width)]
            for _ in range(height)
        ]
        rows[0][0] = clues[-1]  # without a clue its type could not be told
        return rows
    cuts = [sorted(chance.sample(range(1, side), chance.randint(0, 3))) for side in (height, width)]
    bands = [
        [sum(at >= cut for cut in own) for at in range(side)]
        for own, side in zip(cuts, (height, width), strict=True)
    ]
    rows = [["abcdefghijklmnop"[4 * r + c] for c in bands[1]] for r in bands[0]]
    for r, c in cells_of(rows):
        first = (r, c) == min(
            cell for cell in cells_of(rows) if rows[cell[0]][cell[1]][0] == rows[r][c]
        )
        if first and chance.random() < 0.5:
            size = sum(row.count(rows[r][c]) for row in rows)
            rows[r][c] += str(chance.randint(0, min(9, size)))
    return rows


def moved(tokens: Tensor, down: int, right: int) -> Tensor:
    return tokens.view(10, 10).roll((down, right), (0, 1)).flatten()


def sample(task: PencilTask, rows: Rows, marked: set[Cell], chance: random.Random) -> Sample:
    """Question and answer anywhere on the board; cells outside it and a few in it are spoilt."""
    mark, other = (LIGHT, SHADED) if task is LIGHTUP else (SHADED, LIGHT)
    question = task.encode("\n".join(map(" ".join, rows)))
    answer = torch.tensor(chance.choices((UNSHADED, SHADED, LIGHT, BLANK, PAD), k=100))
    changed = unfilled = 0
    for r, c in cells_of(rows):
        token = mark if (r, c) in marked else UNSHADED
        if token == UNSHADED and chance.random() < 0.01:
            token = chance.choice((BLANK, other))
        answer[10 * r + c] = token
        fixed = rows[r][c] != "." and task is not HEYAWAKE
        changed += fixed and token != UNSHADED
        unfilled += not fixed and token not in (mark, UNSHADED)
    place = chance.randint(0, 10 - len(rows)), chance.randint(0, 10 - len(rows[0]))
    counts = {"changed clues": changed, "cells not filled in": unfilled}
    return Sample(
        task, moved(question, *place), moved(answer.to(torch.uint8), *place),
        counts | COUNTS[task.name](rows, marked),
    )  # fmt: skip


def random_samples(task: PencilTask, number: int) -> list[Sample]:
    chance = random.Random(task.name)
    found = []
    for _ in range(number):
        rows, share = random_rows(task, chance), chance.choice((0.1, 0.3, 0.5, 0.7))
        marked = {cell for cell in cells_of(rows) if chance.random() < share}
        found.append(sample(task, rows, marked, chance))
    return found


def solved_samples(task: PencilTask) -> list[Sample]:
    """The solution of a puzzle, and all that differ from it in one cell."""
    chance = random.Random(0)
    address, solution = PUZZLES[task.name]
    rows = [line.split() for line in text.write(task.puzzle(task.encode(address))).splitlines()]
    marks = solution.split("/")
    marked = {(r, c) for r, c in cells_of(rows) if marks[r][c] != "."}
    return [
        sample(task, rows, own, chance)
        for own in (marked, *(marked ^ {cell} for cell in cells_of(rows)))
    ]


def sudoku_samples() -> list[Sample]:
    chance, found = random.Random(0), []
    for seed in range(6):
        question, answer = (each.clone() for each in SUDOKU.generate(seed))
        for cell in chance.sample(range(81), seed):
            answer[cell] = chance.randint(1, 10)
        grids = (
            [list(SUDOKU.decode(each)[9 * r :][:9]) for r in range(9)]
            for each in (question, answer)
        )
        place = chance.randint(0, 1), chance.randint(0, 1)
        outside = chance.choice((BLANK, SHADED))
        found.append(
            Sample(
                None, moved(board_of_sudoku(question, PAD), *place),
                moved(board_of_sudoku(answer, outside), *place), {"sudoku": sudoku_count(*grids)},
            )
        )  # fmt: skip
    return found


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_every_rule_counts_as_the_plain_check(task: PencilTask) -> None:
    samples = random_samples(task, 150) + solved_samples(task)
    questions = torch.stack([each.question for each in samples])
    broken = task.broken(questions, torch.stack([each.answer for each in samples]))
    for name, counts in broken.items():
        assert counts.tolist() == [each.counts[name] for each in samples], name
    assert set(broken) == set(samples[0].counts)
    never = {name for name, counts in broken.items() if not counts.any()}
    assert never == ({"changed clues"} if task is HEYAWAKE else set())


@pytest.mark.usefixtures("one_thread")
def test_all_types_in_one_batch_count_as_the_plain_check() -> None:
    samples = sudoku_samples()
    for task in TASKS:
        samples += random_samples(task, 30) + solved_samples(task)
    random.Random(0).shuffle(samples)
    wanted = torch.tensor([sum(each.counts.values()) for each in samples])
    questions = torch.stack([each.question for each in samples])
    answers = torch.stack([each.answer for each in samples])
    assert torch.equal(PENCIL.violations(questions, answers), wanted)
    assert torch.equal(PENCIL.is_solved(questions, answers), wanted == 0)
    kinds = {each.task for each in samples if not sum(each.counts.values())}
    assert len(kinds) == 5  # some answer of every type is a solution
    every_second = PENCIL.violations(questions[::2, None], answers[None, ::2])
    assert torch.equal(every_second.diagonal(), wanted[::2])


@pytest.mark.usefixtures("one_thread")
def test_no_boards_have_no_counts() -> None:
    none = torch.zeros(0, 3, 100, dtype=torch.uint8)
    assert PENCIL.violations(none, none).shape == (0, 3)
    assert all(task.violations(none, none).shape == (0, 3) for task in TASKS)


@pytest.mark.parametrize("rounds", [1, boards.ROUNDS])
def test_components_are_those_of_the_plain_check(
    rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many rounds it takes: those between two looks do not change the labels."""
    monkeypatch.setattr(boards, "ROUNDS", rounds)
    generator = torch.Generator().manual_seed(0)
    share = torch.linspace(0.2, 0.9, 60)[:, None, None]
    cells = torch.rand(60, 10, 10, generator=generator) < share
    labels = boards.components(boards.runs(boards.starts(cells.char()))).view(60, 10, 10)
    for own, board in zip(labels, cells, strict=True):
        for value in (True, False):
            found: dict[int, set[tuple[int, ...]]] = {}
            for cell in (board == value).nonzero().tolist():
                found.setdefault(int(own[tuple(cell)]), set()).add(tuple(cell))
            plain = parts((r, c) for r, c in (board == value).nonzero().tolist())
            assert sorted(map(sorted, found.values())) == sorted(map(sorted, plain))


def test_a_call_takes_few_operations_and_waits_twice() -> None:
    """A GPU is slow where it gets many small operations. Besides `equal`, `tolist` waits."""
    samples = sudoku_samples()
    for task in TASKS:
        samples += solved_samples(task)
    questions = torch.stack([each.question for each in samples])
    answers = torch.stack([each.answer for each in samples])
    found = Operations()
    with torch.inference_mode(), found:
        PENCIL.is_solved(questions, answers)
    assert found.count <= MOST_OPERATIONS
    assert found.waits == 1
