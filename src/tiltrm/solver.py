"""solve: every method behind one call, and one record a puzzle for people and programs."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tiltrm.errors import PuzzleError, SettingsError
from tiltrm.explore import Exploration, Result, adaptive, explore
from tiltrm.explore.adaptive import Adaptive, Solution
from tiltrm.explore.guides import Score
from tiltrm.explore.run import Progress, Watch, device_of
from tiltrm.methods import ADAPTIVE, METHODS, Views, views_of
from tiltrm.model.base import RecursiveModel
from tiltrm.recipe import prepare, task_of
from tiltrm.tasks import Task

__all__ = ["METHODS", "Grid", "Solved", "solve", "solve_texts", "task_of"]

KEYS = (  # of the JSON object, in this order
    "puzzle", "answer", "solved_by_rules", "confidence", "entropy", "halt_probability",
    "evaluations", "seconds", "abstained", "error",
)  # fmt: skip
DIGITS = 6  # of the numbers in JSON


def solve(
    model: RecursiveModel, puzzles: Sequence[str] | Tensor, *, method: str = ADAPTIVE,
    task: Task | str | None = None, seed: int = 0, rules: bool = False,
    guide: str | Score = "halting", particles: int | None = None, noise: float | None = None,
    beta: float | None = None, resample_below: float | None = None,
    outer_steps: int | None = None, halt_above: float | None = None,
    progress: Progress | None = None, watch: Watch | None = None,
) -> Solution:  # fmt: skip
    """Solve texts, or tokens (puzzle, cell), with one of METHODS; see tiltrm.methods.

    What is None is the method's own. For 'adaptive', `particles` is the largest cloud and
    `outer_steps` the most that a puzzle gets; `halt_above` is the halt logit that decides one (the
    model's calibrated value, else 2); with `rules` the rules alone decide. `guide` is a function, a
    name, or a sum such as 'halting+2*rules'. `task` is the model's own unless given. `watch` is
    called with the StepInfo of every outer step. Proved by tests/test_solver.py.
    """
    recipe = prepare(
        model, task, method=method, guide=guide, rules=rules, halt_above=halt_above,
        particles=particles, noise=noise, beta=beta, resample_below=resample_below,
        outer_steps=outer_steps,
    )  # fmt: skip
    if isinstance(puzzles, str):
        puzzles = [puzzles]
    tokens = puzzles
    if not isinstance(tokens, Tensor):
        tokens = task_of(model, task).encode_all(tokens)
    if recipe.fixed is not None:
        result = explore(
            model, tokens, recipe.fixed, guide=recipe.guide, seed=seed, progress=progress,
            watch=watch,
        )  # fmt: skip
        return as_solution(result, recipe.fixed)
    plan = recipe.plan or Adaptive()
    views: Views = ()
    if plan.turned:
        views = views_of(plan, task_of(model, task), model, device_of(model, tokens))
    return adaptive.solve(
        model, tokens, recipe.judges or {}, plan, guide=recipe.guide, seed=seed,
        progress=progress, watch=watch, views=views,
    )  # fmt: skip


def as_solution(result: Result, settings: Exploration) -> Solution:
    """A fixed exploration in the words of the adaptive one: it always uses up its budget.

    A cloud is as sure as its vote: by weight (map) or by heads (majority). Where none votes (a
    single particle, or the best score), the halting head says how sure.
    """
    sure = result.halt_probability
    if settings.particles > 1 and settings.select == "map":
        sure = result.confidence
    elif settings.particles > 1 and settings.select == "majority":
        sure = result.agreement
    evaluations = result.evaluations
    return Solution(
        answers=result.answers,
        confidence=sure,
        cell_confidence=result.cell_confidence,
        terminal_entropy=result.terminal_entropy,
        halt_probability=result.halt_probability,
        evaluations=evaluations,
        outer_steps=torch.full_like(evaluations, settings.outer_steps),
        particles=torch.full_like(evaluations, settings.particles),
        degenerate=result.degenerate,
        decided_by=(adaptive.UNDECIDED,) * len(evaluations),
    )


class Grid(NamedTuple):
    """What `Task.render` and `Task.picture` draw; clues alone where nothing was answered."""

    puzzle: Tensor  # (cell,)
    answer: Tensor | None = None  # (cell,)
    confidence: Tensor | None = None  # (cell,)


@dataclass(frozen=True, eq=False)
class Solved:
    """One puzzle: the ten fields of its JSON object, and a few more for people.

    A puzzle that cannot be read has its `error` and nothing else. Where the solver abstains there
    is no answer. `seconds` is the puzzle's share of its batch's time, by evaluations.
    """

    puzzle: str  # on one line; as it came where it cannot be read
    answer: str | None = None
    solved_by_rules: bool | None = None
    confidence: float | None = None  # that the whole answer is right
    entropy: list[float] | None = None  # (cell,) in [0, 1]
    halt_probability: float | None = None
    evaluations: int | None = None
    seconds: float | None = None
    abstained: bool | None = None
    error: str | None = None
    decided_by: str = ""
    outer_steps: int | None = None  # of all its stages so far
    particles: int | None = None  # of its last cloud
    grid: Grid | None = None

    def as_json(self) -> str:
        """The object on one line, its keys always the same."""
        return json.dumps({key: getattr(self, key) for key in KEYS}, allow_nan=False)


def solve_texts(
    model: RecursiveModel, texts: Sequence[str], *, task: Task | str | None = None,
    abstain: float | None = None, **settings: Any,
) -> list[Solved]:  # fmt: skip
    """One record a text, in order; a bad puzzle has its error, the others are solved.

    With `abstain`, an answer with a confidence below it or against the rules is withheld; that of a
    cloud that died always is.
    The settings are those of `solve`.
    """
    check_abstain(abstain)
    own = task_of(model, task)
    records, good = read_texts(own, texts)
    if good:
        begun = time.perf_counter()
        tokens = torch.stack(list(good.values()))
        solution = solve(model, tokens, task=own, **settings)
        rate = (time.perf_counter() - begun) / int(solution.evaluations.sum())
        for row, place in enumerate(good):
            records[place] = record(own, tokens[row], solution, row, rate, abstain)
    return [found for found in records if found is not None]


def check_abstain(abstain: float | None) -> None:
    """Raise SettingsError unless it is a confidence or left out."""
    if abstain is not None and not 0.0 <= abstain <= 1.0:
        raise SettingsError(f"abstain must be a confidence in [0, 1], got {abstain}")


def read_texts(task: Task, texts: Sequence[str]) -> tuple[list[Solved | None], dict[int, Tensor]]:
    """The records of the bad texts in their places, and the tokens of the good by their places."""
    records: list[Solved | None] = [None] * len(texts)
    good: dict[int, Tensor] = {}
    for place, text in enumerate(texts):
        try:
            good[place] = task.encode(text)
        except PuzzleError as error:
            records[place] = Solved(text, error=str(error))
    return records, good


def record(
    task: Task, puzzle: Tensor, solution: Solution, row: int, rate: float, abstain: float | None
) -> Solved:
    """The record of one row of a solution; `rate` is seconds to an evaluation."""
    answer = solution.answers[row]
    evaluations = int(solution.evaluations[row])
    sure = float(solution.confidence[row])
    solved = bool(task.is_solved(puzzle, answer))
    doubtful = abstain is not None and (sure < abstain or not solved)
    withheld = bool(solution.degenerate[row]) or doubtful
    return Solved(
        puzzle=task.decode(puzzle),
        answer=None if withheld else task.decode(answer),
        solved_by_rules=None if withheld else solved,
        confidence=round(sure, DIGITS),
        entropy=[round(value, DIGITS) for value in solution.terminal_entropy[row].tolist()],
        halt_probability=round(float(solution.halt_probability[row]), DIGITS),
        evaluations=evaluations,
        seconds=round(rate * evaluations, DIGITS),
        abstained=withheld,
        decided_by=solution.decided_by[row],
        outer_steps=int(solution.outer_steps[row]),
        particles=int(solution.particles[row]),
        grid=Grid(puzzle) if withheld else Grid(puzzle, answer, solution.cell_confidence[row]),
    )
