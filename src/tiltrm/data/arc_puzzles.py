"""ARC tasks as puzzles of the tasks mini-arc and arc: demonstrations, and test inputs.

The number of a puzzle is its place in the model's list of names (`puzzles.json`), or, without one,
that of the task in its file. Proved by tests/data/test_arc_puzzles.py.
"""

from collections.abc import Sequence

import torch

from tiltrm.data.arc_files import ArcTask
from tiltrm.data.puzzles import Puzzles
from tiltrm.errors import DataError, PuzzleError
from tiltrm.tasks.arc import ARC, MINI_ARC, Arc, MiniArc
from tiltrm.tasks.arc.grids import ColourGrid
from tiltrm.tasks.arc.mini import SIDE as MINI_SIDE
from tiltrm.tasks.base import Task

AnyArc = MiniArc | Arc
FIRST_ID = 1  # of arc: the peers' tables keep row 0 for puzzles without a name


def is_arc(task: Task | None) -> bool:
    """Whether a task is mini-arc or arc."""
    return isinstance(task, MiniArc | Arc)


def guess_task(tasks: Sequence[ArcTask]) -> AnyArc:
    """mini-arc if all grids have 5 x 5 cells, else arc."""
    small = all(len(grid) == len(grid[0]) == MINI_SIDE for task in tasks for grid in task.grids)
    return MINI_ARC if small else ARC


def puzzle_numbers(
    task: AnyArc, tasks: Sequence[ArcTask], names: Sequence[str] | None = None
) -> dict[str, int]:
    """The number of each task, without augmentation; DataError if the names do not have it."""
    if names is None:
        first = FIRST_ID if isinstance(task, Arc) else 0
        return {each.name: number for number, each in enumerate(tasks, first)}
    known = {name: number for number, name in enumerate(names)}
    for each in tasks:
        if each.name not in known:
            raise DataError(
                f"task {each.name[:80]!r}: expected a task that the model has a puzzle id for, got "
                f"one that is not among the {len(known):,} names in its puzzles.json; take a model "
                "that was trained on this task's demonstrations"
            )
    return {each.name: known[each.name] for each in tasks}


def demonstration_puzzles(
    task: AnyArc, tasks: Sequence[ArcTask], names: Sequence[str] | None = None
) -> Puzzles:
    """All demonstrations with their outputs; never a test."""
    numbers = puzzle_numbers(task, tasks, names)
    pairs = [(each, *pair) for each in tasks for pair in each.demonstrations]
    return _puzzles(task, [(each, numbers[each.name], grid, out) for each, grid, out in pairs])


def input_puzzles(
    task: AnyArc, tasks: Sequence[ArcTask], names: Sequence[str] | None = None
) -> Puzzles:
    """All test inputs, in the order of the tasks; with answers if every task has its outputs."""
    numbers = puzzle_numbers(task, tasks, names)
    rows = []
    for each in tasks:
        outputs = each.outputs or (None,) * len(each.tests)
        rows += [
            (each, numbers[each.name], *pair) for pair in zip(each.tests, outputs, strict=True)
        ]
    return _puzzles(task, rows)


def _puzzles(
    task: AnyArc, rows: Sequence[tuple[ArcTask, int, ColourGrid, ColourGrid | None]]
) -> Puzzles:
    questions, answers = [], []
    for each, number, grid, output in rows:
        try:
            questions.append(task.question(grid, number))
            if output is not None:
                answers.append(task.answer(output))
        except PuzzleError as error:
            raise DataError(f"task {each.name[:80]!r}: {error}") from error
    return Puzzles(
        task, torch.stack(questions), torch.stack(answers) if len(answers) == len(rows) else None,
        sources=tuple(each.name for each, *_ in rows),
    )  # fmt: skip
