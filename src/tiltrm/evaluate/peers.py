"""The methods that are compared, ours and the peers', all on the same weights.

deterministic   one trajectory without noise, 16 supervision steps of 3 cycles unless set
guided          the paper's Algorithm 1
unguided        its noise without its tilt, the most frequent answer
ptrm            independent rollouts, noise once a supervision step, best final score or majority
halt_first      K trajectories, one of them without noise, until the halt logit of one passes
symmetry        deterministic copies of the puzzle under its symmetries, answers undone, then a vote
c_voting        random first states, then no noise; the final answer with the highest mean
                probability of its tokens (C-voting, arXiv 2604.13521, from its description)
adaptive        ours: stages of growing clouds that stop when the answer is decided
adaptive_rules  the same, stopped at a valid solution only
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tiltrm.evaluate.measure import ByStep, Columns, Judge, Measurement, columns
from tiltrm.evaluate.options import PLANNED, RULES, fields_of, plan_of
from tiltrm.evaluate.symmetry_voting import symmetry_vote
from tiltrm.explore import Exploration, explore
from tiltrm.explore.batching import in_groups
from tiltrm.explore.guides import Score
from tiltrm.explore.inputs import device_of
from tiltrm.explore.noise import START_ANSWER, START_LATENT, Where
from tiltrm.explore.plan import Adaptive, Stage
from tiltrm.explore.running import run_search
from tiltrm.explore.search import (
    TIMED_OUT,
    UNDECIDED,
    Progress,
    StagedSearch,
    adaptive_search,
)
from tiltrm.explore.stopping import by_halting, every
from tiltrm.model.base import RecursiveModel, evaluations_per_step
from tiltrm.model.puzzle_rows import with_puzzle
from tiltrm.settings import AGREE_AMONG, AGREE_SHARE, HALT_ABOVE
from tiltrm.solving import parse_guide, plan_clues, plan_views, stopping_rules
from tiltrm.solving.methods import FIXED, path_values
from tiltrm.solving.tidy import with_tidy_answers
from tiltrm.tasks import Task
from tiltrm.tasks.published import on_board

Settings = Mapping[str, Any]  # complete, see tiltrm.evaluate.options


class Case(NamedTuple):
    """The puzzles, model and settings that a method is evaluated on."""

    model: RecursiveModel
    task: Task
    tokens: Tensor  # (puzzle, cell)
    labels: Tensor | None  # (puzzle, cell); None: the rules say which answers are right
    settings: Settings
    seed: int
    keys: Tensor  # (puzzle,) rows of the split
    progress: Progress | None = None

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return device_of(self.model, self.tokens)

    @property
    def judge(self) -> Judge:
        """Which answers are right."""
        return Judge(self.task, self.tokens, self.labels)

    @property
    def compared(self) -> bool:
        """Whether right means equal to the label in every cell, as `explore` takes it."""
        return self.labels is not None and bool(on_board(self.task, self.tokens).all())

    @property
    def seconds(self) -> float:
        """Computing time that a puzzle may take."""
        return float(self.settings.get("seconds", math.inf))

    @property
    def guide(self) -> Score:
        """The guide that the settings name; the halting head where they name none."""
        named = self.settings.get("guide", "halting")
        return parse_guide(named, self.model, self.task, len(self.settings.get("stages", ())) > 1)


Method = Callable[[Case], Measurement]


def exploration(method: str, settings: Settings) -> Exploration:
    """The exploration of a fixed method; the path entropy only where cells are kept."""
    own = {name: settings[name] for name in fields_of(method) if name in settings}
    return replace(FIXED[method], **own, entropy_every=int(settings["cells"]))


def _fixed(method: str, case: Case) -> Measurement:
    """A cloud that takes all of its steps: what `tiltrm.explore` gives."""
    own, guide, settings = exploration(method, case.settings), case.guide, case.settings
    watch = None
    cloud = own.particles > 1
    judged = cloud and not case.compared and math.isinf(case.seconds)
    if settings["by_step"] or judged:
        judge, keys = case.judge.on(case.device), case.keys.to(case.device)
        last_only = not settings["by_step"]
        watch = ByStep(own, guide, judge, keys, case.seed, last_only=last_only)
    result = explore(
        case.model, case.tokens, own, guide=guide, seed=case.seed, keys=case.keys,
        labels=case.labels, seconds=case.seconds, progress=case.progress, watch=watch,
    )  # fmt: skip
    oracle = watch.oracle[:, -1] if watch and judged else result.oracle
    recorded = watch if settings["by_step"] else None
    steps = result.evaluations // (own.particles * evaluations_per_step(case.model))
    return Measurement(
        answers=result.answers,
        confidence=result.solution_columns(own)["confidence"],
        halt_probability=result.halt_probability,
        evaluations=result.evaluations,
        outer_steps=steps,
        decided_by=[
            UNDECIDED if taken == own.outer_steps else TIMED_OUT for taken in steps.tolist()
        ],
        terminal_entropy=result.terminal_entropy if settings["cells"] else None,
        path_entropy=result.path_entropy,
        oracle=oracle if cloud else None,
        exact_by_step=recorded.exact if recorded else None,
        oracle_by_step=recorded.oracle if recorded and cloud else None,
    )


def _adaptive(method: str, case: Case) -> Measurement:
    """`tiltrm.solve` with its stopping rules. The labels are not looked at."""
    return _searched(case, planned_search(method, case))


def planned_search(method: str, case: Case) -> StagedSearch:
    """The search of an adaptive method with the case's settings."""
    model, settings, plan = case.model, case.settings, plan_of(case.settings)
    rules = stopping_rules(
        model, case.task.is_solved if method == RULES else None,
        halt_above=settings["halt_above"],
        uncalibrated_halt_above=settings.get("uncalibrated_halt_above", HALT_ABOVE),
        agree_share=settings.get("agree_share", AGREE_SHARE),
        agree_among=settings.get("agree_among", AGREE_AMONG),
        shortest_visited=settings.get("shortest_visited", False),
    )  # fmt: skip
    views = plan_views(plan, case.task, model, case.device)
    visited = path_values(case.task) if settings.get("shortest_visited") else None
    clues = plan_clues(plan, case.task)
    return adaptive_search(model, plan, rules, case.guide, views, visited, clues)


def _halt_first(case: Case) -> Measurement:
    """All trajectories step together, and all of their evaluations count until one halts.

    Where none halts in time, the most frequent answer stands.
    """
    stages = (Stage(case.settings["particles"], case.settings["outer_steps"]),)
    plan = Adaptive(stages, case.settings["noise"], beta=0.0)
    rule = by_halting(case.model, case.settings["halt_above"])
    rules = {"halting": every(case.model.cycles, rule)}
    return _searched(case, adaptive_search(case.model, plan, rules))


def _searched(case: Case, search: StagedSearch) -> Measurement:
    found = run_search(
        replace(search, seconds=case.seconds), case.tokens, seed=case.seed, keys=case.keys,
        progress=case.progress,
    )  # fmt: skip
    return Measurement(
        found.answers, found.confidence, found.halt_probability, found.evaluations,
        found.outer_steps, found.decided_by,
    )  # fmt: skip


def _symmetry(case: Case) -> Measurement:
    own = replace(FIXED["deterministic"], outer_steps=case.settings["outer_steps"])
    return symmetry_vote(
        case.model, case.judge, own, copies=case.settings["copies"],
        select=case.settings["select"], seed=case.seed, progress=case.progress,
    )  # fmt: skip


def _c_voting(case: Case) -> Measurement:
    """Trajectories from random first states; the most confident final answer stands."""
    model = case.model

    def mean_probability(answer: Tensor) -> Tensor:
        return torch.softmax(model.decode(answer), -1).amax(-1).mean(-1)

    own = Exploration(
        particles=case.settings["particles"], noise=case.settings["noise"],
        outer_steps=case.settings["outer_steps"], placement=first_state, beta=0.0,
        trigger="never", potential="terminal", select="best_score", entropy_every=0,
        on_degenerate="abstain",
    )  # fmt: skip
    result = explore(
        model, case.tokens, own, seed=case.seed, keys=case.keys, labels=case.labels,
        guide=lambda state, context: in_groups(mean_probability, state.answer),
        progress=case.progress,
    )  # fmt: skip
    return Measurement(
        result.answers, result.score.clamp(0.0, 1.0), result.halt_probability, result.evaluations,
        torch.full_like(result.evaluations, own.outer_steps),
        (UNDECIDED,) * len(result.answers), oracle=result.oracle,
    )  # fmt: skip


def first_state(where: Where) -> float:
    """Noise on the state before the first outer step, and nowhere else."""
    return float(where.clock.step == 1 and where.site in (START_LATENT, START_ANSWER))


METHODS: dict[str, Method] = {
    **{name: partial(_fixed, name) for name in FIXED},
    "halt_first": _halt_first,
    "symmetry": _symmetry,
    "c_voting": _c_voting,
    **{name: partial(_adaptive, name) for name in PLANNED},
}


def evaluate_method(method: str, case: Case) -> Columns:
    """The columns of a shard: the method's answers, measured."""
    model = with_puzzle(case.model, case.settings.get("puzzle_id"))
    case = case._replace(model=with_tidy_answers(model, case.task))
    found = METHODS[method](case)
    return columns(found, case.judge, case.keys, case.device)
