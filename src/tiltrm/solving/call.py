"""solve: every method behind one call, for tokens and texts."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import torch
from torch import Tensor

from tiltrm.errors import PuzzleError, SettingsError
from tiltrm.explore.running import run_search
from tiltrm.explore.search import Progress, Watch
from tiltrm.model import load
from tiltrm.model.base import RecursiveModel, model_info
from tiltrm.settings import ADAPTIVE
from tiltrm.solving.confidence import calibration_of
from tiltrm.solving.methods import adaptive_plan, build_search, task_of
from tiltrm.solving.risk import Rung, check_risk, rung_for
from tiltrm.solving.solution import PuzzleRecord, Solution, puzzle_record
from tiltrm.tasks import Task
from tiltrm.tasks.grid import BLANK
from tiltrm.tasks.published import address_of, type_of

COUNTING = 2.0  # seconds for counting the solutions of a batch, 0.02 s each for a Sudoku
COUNTING_SHARE = 0.25  # of the time of the search, for those that were not counted before it


def solve(
    model: RecursiveModel | str | PathLike[str], puzzles: str | Sequence[str] | Tensor, *,
    method: str = ADAPTIVE, task: Task | str | None = None, seed: int = 0,
    progress: Progress | None = None, watch: Watch | None = None, tuned: bool = True,
    **settings: Any,
) -> Solution:  # fmt: skip
    """Solve puzzles with a frozen model; adaptive by default: the least computing per answer.

    Args:
        model: A model, or what `tiltrm.load` takes: a bundled name, a folder, a checkpoint.
        puzzles: Texts, or tokens (puzzle, cell).
        method: adaptive, guided, unguided, deterministic or ptrm; see tiltrm.solving.methods.
        task: The task, or its name; the model's own unless given.
        seed: Seed of the noise and of the resampling.
        progress: Called with (done, total).
        watch: Called with the StepInfo of every outer step.
        tuned: Whether adaptive solving takes the plan that `tiltrm tune` stored, if there is one.
        **settings: Settings of the method by name, for example particles=16 (the table in
            tiltrm.settings). Settings left out, or None, take the method's default.

    Returns:
        The answers, their confidence and cost. A puzzle's result depends on neither the batch
        nor its order. Proved by tests/solving/test_call.py.
    """
    if isinstance(model, str | PathLike):
        model = load(model)
    search = build_search(model, task, method=method, tuned=tuned, **settings)
    named = task or model_info(model).task
    own = task_of(model, task) if named or not isinstance(puzzles, Tensor) else None
    if not isinstance(puzzles, Tensor):
        assert own is not None
        puzzles = own.encode_all([puzzles] if isinstance(puzzles, str) else puzzles)
    found = run_search(search, puzzles, seed=seed, progress=progress, watch=watch)
    return Solution(**vars(found), puzzles=puzzles.cpu(), task=own)


def solve_texts(
    model: RecursiveModel, texts: Sequence[str], *, task: Task | str | None = None,
    abstain: float | None = None, risk: float | None = None, **settings: Any,
) -> list[PuzzleRecord]:  # fmt: skip
    """One record per text, in order; a bad puzzle gets its error and the others are solved.

    With `abstain`, an answer with less confidence than that, or one that breaks a rule, is
    withheld; the answer of a dead cloud always is. With `risk`, answers are withheld so that at
    most that share of those given is wrong (`risk_rung`). A puzzle that is known to have no
    solution is not searched and gets an error. The other settings are those of `solve`.
    """
    check_abstain(abstain)
    own = task_of(model, task)
    above = None if risk is None else risk_rung(model, own, risk, **settings).above
    records, tokens = read_texts(own, texts)
    counts = _count(own, tokens, COUNTING)
    for place in [place for place, count in counts.items() if count == 0]:
        records[place] = unsolvable(own, tokens.pop(place))
    if tokens:
        begun = time.perf_counter()
        batch = torch.stack(list(tokens.values()))
        solution = solve(model, batch, task=own, **settings)
        took = time.perf_counter() - begun
        rate = took / int(solution.evaluations.sum())
        rest = {place: puzzle for place, puzzle in tokens.items() if place not in counts}
        counts |= _count(own, rest, COUNTING_SHARE * took)
        for row, place in enumerate(tokens):
            record = puzzle_record(own, batch[row], solution, row, rate, abstain, above)
            counted = replace(record, solutions=counts.get(place))
            records[place] = unsolvable(own, batch[row]) if counted.solutions == 0 else counted
    return [found for found in records if found is not None]


def unsolvable(task: Task, puzzle: Tensor) -> PuzzleRecord:
    """The record of a puzzle without a solution."""
    return PuzzleRecord(
        task.decode(puzzle), solutions=0, task=type_of(task, puzzle),
        address=address_of(task, puzzle),
        error="no valid solution found: the clues contradict each other; correct one of them",
    )  # fmt: skip


def risk_rung(
    model: RecursiveModel, task: Task | str | None, risk: float, *, method: str = ADAPTIVE,
    tuned: bool = True, seed: int = 0, progress: object = None, watch: object = None,
    **settings: Any,
) -> Rung:  # fmt: skip
    """The answers that may be given at this risk: those with more trust than the rung's limit.

    SettingsError where the model has no calibration, where it is for other settings than these, or
    where its puzzles cannot support the risk. The arguments are those of `solve`.
    """
    check_risk(risk)
    if method != ADAPTIVE:
        raise SettingsError(f"a risk goes with the method {ADAPTIVE}, got {method}; leave one out")
    calibration = calibration_of(model)
    if calibration is None:
        raise SettingsError(
            "a risk needs a model with a calibration beside its weights, got one without; make it "
            "with tiltrm tune --model FOLDER --data PUZZLES"
        )
    own = adaptive_plan(model, task, tuned=tuned, **settings).settings()
    other = sorted(name for name, value in own.items() if calibration.settings.get(name) != value)
    other += ["seconds"] if settings.get("seconds") is not None else []
    if other:
        raise SettingsError(
            f"a risk needs the settings that the calibration was made with, got another "
            f"{', '.join(other)}; leave these out, or run tiltrm tune again"
        )
    return rung_for(calibration.ladder, risk)


def count_all(task: Task, puzzles: Sequence[Tensor], seconds: float = COUNTING) -> list[int | None]:
    """Solutions of every puzzle, 2 for several; None where that is not known in so many seconds."""
    counts = _count(task, dict(enumerate(puzzles)), seconds)
    return [counts.get(place) for place in range(len(puzzles))]


def _count(task: Task, puzzles: Mapping[int, Tensor], seconds: float) -> dict[int, int | None]:
    """Solutions of the puzzles by place, 2 for several; None where that is not cheap to tell.

    `count_solutions(puzzle)` is an optional method of a task. Puzzles with few clues come first,
    since they are the likeliest to have several solutions; after `seconds` no other is begun.
    Proved by tests/solving/test_call.py::test_several_solutions_are_told_in_any_batch.
    """
    count: Callable[[Tensor], int | None] | None = getattr(task, "count_solutions", None)
    found: dict[int, int | None] = {}
    end = time.perf_counter() + seconds
    for place in sorted(puzzles, key=lambda place: _clues(puzzles[place])):
        if count is None or time.perf_counter() > end:
            break
        found[place] = count(puzzles[place])
    return found


def _clues(puzzle: Tensor) -> int:
    """Cells that are not blank."""
    return int((puzzle != BLANK).sum())


def check_abstain(abstain: float | None) -> None:
    """Raise SettingsError unless it is None or a confidence."""
    if abstain is not None and not 0.0 <= abstain <= 1.0:
        raise SettingsError(f"abstain must be a confidence in [0, 1], got {abstain}")


def read_texts(
    task: Task, texts: Sequence[str]
) -> tuple[list[PuzzleRecord | None], dict[int, Tensor]]:
    """The records of the bad texts, None for the others, and the tokens of the others by place."""
    records: list[PuzzleRecord | None] = [None] * len(texts)
    tokens: dict[int, Tensor] = {}
    for place, text in enumerate(texts):
        try:
            tokens[place] = task.encode(text)
        except PuzzleError as error:
            records[place] = PuzzleRecord(text, error=str(error))
    return records, tokens
