"""Rules and addresses of the page's engine, in Node, beside the library's."""

import json
from typing import Any

import torch
from tests.tasks.pencil.pencil_samples import LINK, PUZZLES
from torch import Tensor

from tiltrm.tasks import MAZE, SUDOKU, Maze, Task, by_name
from tiltrm.tasks.pencil import PENCIL, TASKS

from .engine import ENGINE, needs_node, node

pytestmark = needs_node
FOUR = by_name("sudoku4")


def text_of_room(number: int) -> str:
    """A Heyawake of one room."""
    digits = f"{number:x}"
    return f"{LINK}heyawake/4/4/000000{'-' * (len(digits) - 1)}{digits}"


UNUSUAL = [  # unknown numbers, and a room with more than six shaded cells
    f"{LINK}tapa/4/4/a9ga7b99.g8n",
    f"{LINK}tapa/4/4/k.p",
    f"{LINK}nurikabe/4/4/.h-10r",
    f"{LINK}nurikabe/4/4/k.p",
    text_of_room(6),
    text_of_room(8),
    text_of_room(9),
]


def judged(task: Task, puzzle: Tensor, answer: Tensor) -> tuple[dict[str, Any], list[Any]]:
    """A question to engine.mjs, and the library's answer to it."""
    asked = {
        "task": task.name, "side": task.side, "puzzle": puzzle.tolist(), "answer": answer.tolist()
    }  # fmt: skip
    broken = int(task.violations(puzzle, answer))
    return asked, [broken, bool(task.is_solved(puzzle, answer)), task.given(puzzle).tolist()]


def test_rules_are_the_librarys() -> None:
    draw = torch.Generator().manual_seed(2)
    pairs = []
    for task in (SUDOKU, FOUR, MAZE, Maze(6)):
        for seed in range(2):
            puzzle, answer = task.generate(seed)
            wrong = answer.clone()
            places = torch.randint(task.cells, (3,), generator=draw)
            wrong[places] = torch.randint(1, task.vocabulary, (3,), generator=draw).to(wrong.dtype)
            other = task.generate(seed + 5)[1]
            pairs += [judged(task, puzzle, given) for given in (answer, wrong, other, puzzle)]
    asked, wanted = zip(*pairs, strict=True)
    assert node({"judged": asked})["judged"] == list(wanted)
    assert [solved for _, solved, _ in wanted].count(True) == 8


def test_the_rules_of_pencil_puzzles_are_the_librarys() -> None:
    """Boards of all types and sizes: solved, random, with other ids, other boards' solutions."""
    draw = torch.Generator().manual_seed(3)
    samples = json.loads((ENGINE.parent / "samples.json").read_text("utf-8"))
    texts = [sample["puzzle"] for task in TASKS for sample in samples[task.name]]
    texts += [SUDOKU.decode(SUDOKU.generate(0)[0]), *UNUSUAL]
    boards = [PENCIL.encode(text) for text in texts]
    pairs = []
    for puzzle, answer in PUZZLES.values():
        tokens, solved = PENCIL.encode(puzzle), PENCIL.encode(answer, answer=True)
        pairs += [judged(PENCIL, tokens, solved), judged(PENCIL, tokens, tokens)]
        for cell in range(0, PENCIL.cells, 7):
            near = solved.clone()
            near[cell] = (12 if near[cell] == 11 else 11) if near[cell] != 13 else 11
            pairs.append(judged(PENCIL, tokens, near))
    for board in boards:
        for density in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8):
            marks = torch.rand(PENCIL.cells, generator=draw) < density
            mark = 13 if PENCIL.type_of(board) == "lightup" else 12
            pairs.append(judged(PENCIL, board, torch.where(marks, mark, 11).to(torch.uint8)))
        noise = torch.randint(PENCIL.vocabulary, (PENCIL.cells,), generator=draw)
        pairs.append(judged(PENCIL, board, noise.to(torch.uint8)))
    asked, wanted = zip(*pairs, strict=True)
    assert node({"judged": asked})["judged"] == list(wanted)
    assert [solved for _, solved, _ in wanted].count(True) >= len(PUZZLES)


def test_addresses_become_the_librarys_tokens() -> None:
    samples = json.loads((ENGINE.parent / "samples.json").read_text("utf-8"))
    texts = [sample["puzzle"] for task in TASKS for sample in samples[task.name]]
    texts += [puzzle for puzzle, _ in PUZZLES.values()]
    texts += [
        SUDOKU.decode(SUDOKU.generate(0)[0]),
        f"{LINK}sudoku/9/9/5zzzz",
        *UNUSUAL,
    ]
    found = node({"addresses": [*texts, f"{LINK}nurikabe/4/4/-2eu", text_of_room(99)]})["addresses"]
    for text, own in zip(texts, found, strict=False):
        tokens = PENCIL.encode(text)
        assert own["tokens"] == tokens.tolist(), text
        assert own["address"] == PENCIL.decode(tokens)
        assert own["type"] == PENCIL.type_of(tokens)
    assert found[-2]["error"] == "Expected numbers 1 to 45 in a nurikabe, got 46."
    assert found[-1]["error"] == "Expected at most 16 in a room of 16 cells, got 99."
