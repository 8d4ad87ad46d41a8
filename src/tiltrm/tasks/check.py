"""Checks of a task of one's own: every function gives what `Task` says, on generated puzzles.

A task file is code, so these checks find mistakes, not malice. Each error names the function and
what it gave. Proved by tests/tasks/test_check.py.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tiltrm.errors import PuzzleError, SettingsError
from tiltrm.tasks.base import Symmetry, Task, TaskDefaults

LARGEST_SIDE = 2**7  # cells in a row
SYMMETRIES = 8  # drawn for every puzzle


def check_attributes(task: Task) -> None:
    """Raise SettingsError unless name, sizes and defaults have their types."""
    kinds = {"name": str, "side": int, "cells": int, "vocabulary": int}
    for name, kind in kinds.items():
        value = _guard(task, name, partial(getattr, task, name))
        if not isinstance(value, kind) or isinstance(value, bool):
            raise _wrong(task, name, f"a {kind.__name__}", value)
    if not 1 <= task.side <= LARGEST_SIDE:
        raise _wrong(task, "side", f"a number in 1..{LARGEST_SIDE}", task.side)
    defaults = _guard(task, "defaults", partial(getattr, task, "defaults", TaskDefaults()))
    if not isinstance(defaults, TaskDefaults):
        raise _wrong(task, "defaults", "a TaskDefaults", defaults)
    _guard(task, "__hash__", partial(hash, task))


def check_task(task: Task, puzzles: int = 1) -> int:
    """Raise SettingsError for the first function that gives anything else than `Task` says.

    Returns the number of puzzles that were generated and checked; 0 if the task generates none.
    """
    check_attributes(task)
    _check_symmetry(task)
    checked = 0
    for puzzle, answer in _generated(task, puzzles):
        _check_texts(task, puzzle, answer)
        _check_rules(task, puzzle, answer)
        _check_pictures(task, puzzle, answer)
        checked += 1
    return checked


def _generated(task: Task, puzzles: int) -> Iterator[tuple[Tensor, Tensor]]:
    for seed in range(puzzles):
        try:
            found: Any = _call(task, "generate", seed)
        except NotGeneratedError:
            return
        if not isinstance(found, tuple) or len(found) != 2:
            raise _wrong(task, "generate", "a puzzle and its answer", found)
        for tokens in found:
            _require_tensor(task, "generate", tokens, (task.cells,), torch.uint8)
            if bool((tokens >= task.vocabulary).any()):
                raise _wrong(task, "generate", f"ids below {task.vocabulary}", int(tokens.max()))
        yield found


def _check_symmetry(task: Task) -> None:
    drawn = _call(task, "symmetry", SYMMETRIES, torch.Generator().manual_seed(0))
    if not isinstance(drawn, Symmetry):
        raise _wrong(task, "symmetry", "a Symmetry", drawn)
    for name, size in (("source", task.cells), ("names", task.vocabulary)):
        table = getattr(drawn, name)
        _require_tensor(task, f"symmetry: its {name}", table, (SYMMETRIES, size), torch.int64)
        if not torch.equal(table.sort(-1).values, torch.arange(size).expand(SYMMETRIES, -1)):
            raise _wrong(task, f"symmetry: its {name}", f"permutations of 0..{size - 1}", table)


def _check_texts(task: Task, puzzle: Tensor, answer: Tensor) -> None:
    """`encode` must be the inverse of `decode`, for questions and for answers."""
    for tokens, is_answer in ((puzzle, False), (answer, True)):
        text: Any = _call(task, "decode", tokens)
        if not isinstance(text, str) or "\n" in text:
            raise _wrong(task, "decode", "a text on one line", text)
        for name in ("encode", "encode_all"):
            many = name == "encode_all"
            back = _call(task, name, [text] if many else text, answer=is_answer)
            back = back[0] if many and isinstance(back, Tensor) and len(back) == 1 else back
            _require_tensor(task, name, back, (task.cells,), torch.uint8)
            if not torch.equal(back, tokens):
                raise _wrong(task, name, f"the ids that decode wrote as {text[:40]!r}", back)
        for name, kind in (("clean", str), ("width", int)):
            found = _call(task, name, text)
            if not isinstance(found, kind):
                raise _wrong(task, name, f"a {kind.__name__}", found)


def _check_rules(task: Task, puzzle: Tensor, answer: Tensor) -> None:
    """The answer is a solution, in a batch too, and symmetries keep it one."""
    drawn = task.symmetry(SYMMETRIES, torch.Generator().manual_seed(1))
    questions = drawn.apply(puzzle.expand(SYMMETRIES, -1))
    answers = drawn.apply(answer.expand(SYMMETRIES, -1))
    for name, kind, right in (("violations", None, 0), ("is_solved", torch.bool, True)):
        for pair, shape in (((puzzle, answer), ()), ((questions, answers), (SYMMETRIES,)),
                            ((questions[:, None], answers[:, None]), (SYMMETRIES, 1))):  # fmt: skip
            found = _call(task, name, *pair)
            _require_tensor(task, name, found, shape, kind)
            if not bool((found == right).all()):
                what = "a generated puzzle" if not shape else "its symmetric views"
                raise _wrong(task, name, f"{right} for the answer of {what}", found)
    for name, shape in (("given", (task.cells,)), ("well_formed", ())):
        found = _call(task, name, puzzle)
        _require_tensor(task, name, found, shape, torch.bool)
    if not bool(task.well_formed(puzzle)) or not bool(task.well_formed(answer, answer=True)):
        raise _wrong(task, "well_formed", "True for a generated puzzle and its answer", False)


def _check_pictures(task: Task, puzzle: Tensor, answer: Tensor) -> None:
    sure = torch.ones(task.cells)
    for name, keywords in (("render", {"colour": False}), ("picture", {})):
        found = _call(task, name, puzzle, answer, sure, **keywords)
        if not isinstance(found, str):
            raise _wrong(task, name, "a text", found)


class NotGeneratedError(Exception):
    """The task says that it generates no puzzles."""


def _call(task: Task, name: str, *arguments: Any, **keywords: Any) -> Any:
    """The result of a method; SettingsError where it raises anything."""
    return _guard(task, name, lambda: getattr(task, name)(*arguments, **keywords))


def _guard(task: Task, name: str, function: Callable[[], Any]) -> Any:
    try:
        return function()
    except SettingsError:
        if name == "generate":
            raise NotGeneratedError from None
        raise
    except (Exception, SystemExit, PuzzleError) as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())[:160]
        raise SettingsError(f"{_called(task, name)} must not raise, got {said}") from error


def _require_tensor(
    task: Task, name: str, value: Any, shape: tuple[int, ...], kind: torch.dtype | None
) -> None:
    whole = isinstance(value, Tensor) and not value.is_floating_point() and not value.is_complex()
    if not whole or tuple(value.shape) != shape or (kind is not None and value.dtype != kind):
        expected = f"a tensor of shape {shape} and {kind or 'whole numbers'}"
        raise _wrong(task, name, expected, value)


def _called(task: Task, name: str) -> str:
    return f"{type(task).__name__}.{name}"


def _wrong(task: Task, name: str, expected: str, value: Any) -> SettingsError:
    got = f"{value!r:.60}"
    if isinstance(value, Tensor):
        got = f"a tensor of shape {tuple(value.shape)} and {value.dtype}"
        if value.numel() == 1:
            got = f"{value.item()!r} ({value.dtype})"
    return SettingsError(
        f"{_called(task, name)} must give {expected}, got {got} ({type(value).__name__})"
    )
