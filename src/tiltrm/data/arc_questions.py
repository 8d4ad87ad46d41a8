"""The questions of ARC tasks: every test input, perhaps under several augmentations.

An augmented test input is a question of its own; its answer is turned back. For mini-arc the header
says which augmentation it is, so any will do. For arc, each augmentation that the model knows has a
row of its own in the puzzle embedding, with a name such as 'task|||t3|||0213456789' in
puzzles.json. Proved by tests/data/test_arc_questions.py.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tiltrm.data.arc_files import ArcTask
from tiltrm.data.arc_puzzles import AnyArc, puzzle_numbers
from tiltrm.errors import DataError, PuzzleError, SettingsError
from tiltrm.tasks.arc import MiniArc
from tiltrm.tasks.arc.augmentation import Augmentation, by_task, draw_augmentations
from tiltrm.tasks.arc.grids import SIDE, ColourGrid

MOST_AUGMENTATIONS = 100_000


@dataclass(frozen=True, eq=False)
class ArcQuestion:
    """One test input under one augmentation."""

    task: ArcTask
    index: int  # of the test input in its task
    augmentation: Augmentation
    tokens: Tensor  # (cell,) uint8

    def read(self, model_task: AnyArc, answers: Tensor) -> list[ColourGrid | None]:
        """The grids of answers (answer, cell), turned back; None for one that shows no grid."""
        grids = model_task.answer_grids(self.tokens, answers)
        return [None if grid is None else self.augmentation.undo(grid) for grid in grids]


def arc_questions(
    model_task: AnyArc, tasks: Sequence[ArcTask], names: Sequence[str] | None = None, *,
    augmentations: int = 1, seed: int = 0, keep_black: bool = True, translate: bool = False,
) -> list[ArcQuestion]:  # fmt: skip
    """The questions of all test inputs, those of one input together, the plain one first.

    Args:
        model_task: mini-arc or arc.
        tasks: ARC tasks, each with its test inputs.
        names: The model's puzzles by number; None: the numbers are the tasks' places.
        augmentations: Questions for each test input, or as many as the names have.
        seed: Chooses the augmentations, the same for the same task and seed.
        keep_black: Whether drawn permutations of colours leave black as it is, as the peers do.
        translate: Whether augmented grids are moved to a random place of the board (arc only).
    """
    if not 1 <= augmentations <= MOST_AUGMENTATIONS:
        raise SettingsError(
            f"augmentations must lie in 1..{MOST_AUGMENTATIONS}, got {augmentations}"
        )
    numbers = puzzle_numbers(model_task, tasks, names)
    if isinstance(model_task, MiniArc):
        if translate:
            raise SettingsError("translate is for arc, since grids of mini-arc fill their board")
        generator = _generator(seed)
        drawn = draw_augmentations(augmentations, generator, keep_black=keep_black)
        chosen = {task.name: [(numbers[task.name], own) for own in drawn] for task in tasks}
    else:
        chosen = _known(tasks, numbers, names, augmentations, seed, repeat=translate)
    found = []
    for task in tasks:
        places = _corners(task, len(chosen[task.name]), seed) if translate else ()
        for index, grid in enumerate(task.tests):
            for slot, (number, own) in enumerate(chosen[task.name]):
                corner = places[slot] if translate else (0, 0)
                tokens = _tokens(model_task, task, grid, number, own, corner)
                found.append(ArcQuestion(task, index, own, tokens))
    return found


def _known(
    tasks: Sequence[ArcTask], numbers: dict[str, int], names: Sequence[str] | None, count: int,
    seed: int, *, repeat: bool,
) -> dict[str, list[tuple[int, Augmentation]]]:  # fmt: skip
    """The augmentations of each task among the names, the plain one first, the others by lot.

    repeat: with fewer names than `count`, they are taken again (each time at another place).
    """
    if count > 1 and names is None and not repeat:
        raise SettingsError(
            f"augmentations must be 1 for a model without the names of its puzzles, got {count}; "
            "import it with --identifiers identifiers.json"
        )
    known = by_task(names or ())
    found = {}
    for task in tasks:
        plain = (numbers[task.name], Augmentation())
        others = [each for each in known.get(task.name, ()) if each[0] != plain[0]]
        order = torch.randperm(len(others), generator=_generator(seed, task.name)).tolist()
        every = [plain, *(others[place] for place in order)]
        if repeat:
            every = [every[place % len(every)] for place in range(count)]
        found[task.name] = every[:count]
    return found


def _generator(seed: int, task_name: str = "") -> torch.Generator:
    """Keyed by seed and task, so that a task's questions do not depend on the others."""
    digest = hashlib.sha256(f"{seed}/{task_name}".encode(errors="surrogatepass")).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))


def _corners(task: ArcTask, count: int, seed: int) -> list[tuple[int, int]]:
    """Places where all grids of a task have room, whichever way they are turned; (0, 0) first."""
    sizes = [max(len(grid), len(grid[0])) for grid in task.grids]
    room = SIDE + 1 - max(sizes)
    drawn = torch.randint(room, (count, 2), generator=_generator(seed, task.name)).tolist()
    return [(0, 0), *((top, left) for top, left in drawn[1:])]


def _tokens(
    model_task: AnyArc, task: ArcTask, grid: ColourGrid, number: int, own: Augmentation,
    corner: tuple[int, int],
) -> Tensor:  # fmt: skip
    try:
        if isinstance(model_task, MiniArc):
            return model_task.question(grid, number, own)
        return model_task.question(own.apply(grid), number, corner)
    except PuzzleError as error:
        raise DataError(f"task {task.name[:80]!r}: {error}") from error
