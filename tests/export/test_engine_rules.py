"""Rules and addresses of the page's engine, in Node, beside the library's."""

import json
from types import SimpleNamespace
from typing import Any

import torch
from tests.tasks.pencil.pencil_samples import LINK, PUZZLES
from torch import Tensor

from tiltrm.explore.bank import banked, by_path
from tiltrm.explore.cloud import Cloud
from tiltrm.explore.stopping import by_shortest
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


def test_the_bank_of_paths_is_the_librarys() -> None:
    """Equal paths of the unchanged maze and of another view, one after the other and together."""
    maze = Maze(4)
    puzzle = maze.encode("S" + " " * 14 + "G")
    top, left, long, torn = (
        maze.encode(text, answer=True)
        for text in (
            "Sooo   o   o   G", "S   o   o   oooG", "S ooo o ooo    G", "Soo    o   o   G"
        )
    )  # fmt: skip
    assert [int(maze.violations(puzzle, path)) == 0 for path in (top, left, long, torn)] == [
        True, True, False, False
    ]  # fmt: skip
    script = [  # answers, which of them see the maze unchanged, halt logits
        ([torn, left], [True, False], [0.5, 0.25]),
        ([top, left], [True, False], [1.5, 1.25]),
        ([left, left], [True, False], [2.5, 2.25]),
        ([left, long], [False, False], [3.5, 3.25]),
    ]
    steps = [
        {"answers": [a.tolist() for a in answers], "unchanged": unchanged, "halt": halts}
        for answers, unchanged, halts in script
    ]
    asked = {"task": maze.name, "side": 4, "puzzle": puzzle.tolist(), "share": 1, "least": 2}
    found = node({"paths": {**asked, "steps": steps}})["paths"]
    value, rule, bank = by_path(maze.violations, maze.path_length), by_shortest(1.0, 2), None
    for (answers, unchanged, halts), own in zip(script, found, strict=True):
        problem = SimpleNamespace(tokens=puzzle[None], unchanged=torch.tensor(unchanged))
        context: Any = SimpleNamespace(
            problem=problem, answers=torch.stack(answers)[None],
            decodable=torch.ones(1, 2, dtype=torch.bool),
            halt_logit=lambda halts=halts: torch.tensor([halts]),
        )  # fmt: skip
        cloud = Cloud(None, torch.zeros(1, 2), torch.zeros(1, 2), bank)  # type: ignore[arg-type]
        bank = banked(cloud, context, value)
        decision = rule(cloud._replace(bank=bank), context)
        wanted = [
            bool(decision.decided), decision.from_bank, bank.answers[0].tolist(),
            float(bank.halt_logit[0]),
        ]  # fmt: skip
        assert own == wanted
    assert [own[0] for own in found] == [False, True, True, False]
    assert [own[2] for own in found] == [path.tolist() for path in (left, top, top, top)]


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
