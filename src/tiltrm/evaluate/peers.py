"""The methods that are compared, ours and the peers', all on the same weights.

deterministic   one trajectory without noise, 16 supervision steps of 3 cycles unless set
guided          the paper's Algorithm 1
unguided        its noise without its tilt, the most frequent answer
ptrm            independent rollouts, noise once a supervision step, best final score or majority
halt_first      K trajectories, one of them free of noise, until one's halt logit passes
symmetry        deterministic copies of the puzzle under its symmetries, answers undone, then a vote
adaptive        ours: a growing cloud that stops when the answer is decided
adaptive_rules  the same, where the rules of the task alone decide
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tiltrm.evaluate.measure import ByStep, Columns, Outcome, columns
from tiltrm.evaluate.options import EXPLORED, PLANNED, RULES, plan_of
from tiltrm.evaluate.views import vote
from tiltrm.explore import Exploration, explore
from tiltrm.explore.adaptive import Adaptive, Solution, Stage
from tiltrm.explore.adaptive import solve as solve_adaptively
from tiltrm.explore.cloud import Cloud, Context
from tiltrm.explore.decide import Judge, Verdict, by_halting
from tiltrm.explore.guides import Guide
from tiltrm.explore.run import Progress, device_of
from tiltrm.methods import FIXED, judges, parse_guide, views_of
from tiltrm.model.base import RecursiveModel
from tiltrm.solver import as_solution
from tiltrm.tasks import Task

Settings = Mapping[str, Any]  # complete, see tiltrm.evaluate.options
Run = Callable[..., Outcome]  # (model, task, tokens, labels, settings, seed, keys, progress)
Method = Callable[..., Columns]  # (model, task, tokens, labels, settings, seed, keys, progress=)


def guide_of(model: RecursiveModel, task: Task, settings: Settings) -> Guide:
    """The guide that the settings name; the halting head where they name none."""
    return parse_guide(settings.get("guide", "halting"), model, lambda: task)


def exploration(method: str, settings: Settings) -> Exploration:
    """The exploration of a fixed method; the path entropy only where cells are kept."""
    own = {name: settings[name] for name in EXPLORED[method]}
    return replace(FIXED[method], **own, entropy_every=int(settings["cells"]))


def _fixed(
    method: str, model: RecursiveModel, task: Task, tokens: Tensor, labels: Tensor,
    settings: Settings, seed: int, keys: Tensor, progress: Progress | None,
) -> Outcome:  # fmt: skip
    """A cloud that runs to its end: just what `tiltrm.explore` gives."""
    own, guide = exploration(method, settings), guide_of(model, task, settings)
    device = device_of(model, tokens)
    watch = None
    if settings["by_step"]:
        watch = ByStep(own, guide, labels.to(device), keys.to(device), seed)
    result = explore(
        model, tokens, own, guide=guide, seed=seed, keys=keys, labels=labels, progress=progress,
        watch=watch,
    )  # fmt: skip
    found = _outcome(as_solution(result, own), cells=settings["cells"])
    cloud = own.particles > 1
    return replace(
        found, path_entropy=result.path_entropy, oracle=result.oracle if cloud else None,
        exact_by_step=watch.exact if watch else None,
        oracle_by_step=watch.oracle if watch and cloud else None,
    )  # fmt: skip


def _outcome(solution: Solution, *, cells: bool = False) -> Outcome:
    return Outcome(
        solution.answers, solution.confidence, solution.halt_probability, solution.evaluations,
        solution.outer_steps, solution.decided_by,
        terminal_entropy=solution.terminal_entropy if cells else None,
    )  # fmt: skip


def _adaptive(
    method: str, model: RecursiveModel, task: Task, tokens: Tensor, labels: Tensor,
    settings: Settings, seed: int, keys: Tensor, progress: Progress | None,
) -> Outcome:  # fmt: skip
    """`tiltrm.solve` with its judges. The labels are not looked at."""
    plan = plan_of(settings)
    rules = task.is_solved if method == RULES else None
    deciding = judges(model, settings["halt_above"], rules)
    guide = guide_of(model, task, settings)
    solution = solve_adaptively(
        model, tokens, deciding, plan, guide=guide, seed=seed, keys=keys, progress=progress,
        views=views_of(plan, task, model, device_of(model, tokens)),
    )  # fmt: skip
    return _outcome(solution)


def _halt_first(
    model: RecursiveModel, task: Task, tokens: Tensor, labels: Tensor, settings: Settings,
    seed: int, keys: Tensor, progress: Progress | None,
) -> Outcome:  # fmt: skip
    """All trajectories step together, and all of their evaluations count until one passes.

    Where none passes in time, the most frequent answer stands.
    """
    stages = (Stage(settings["particles"], settings["outer_steps"]),)
    plan = Adaptive(stages, settings["noise"], beta=0.0, resample_below=0.0)
    judge = at_supervision_ends(by_halting(model, settings["halt_above"]), model.cycles)
    solution = solve_adaptively(
        model, tokens, {"halting": judge}, plan, seed=seed, keys=keys, progress=progress
    )
    return _outcome(solution)


def at_supervision_ends(judge: Judge, cycles: int) -> Judge:
    """The judge, asked only where the model was trained to halt."""

    def asked(cloud: Cloud, context: Context) -> Verdict:
        verdict = judge(cloud, context)
        if context.clock.step % cycles:
            return verdict._replace(decided=torch.zeros_like(verdict.decided))
        return verdict

    return asked


def _symmetry(
    model: RecursiveModel, task: Task, tokens: Tensor, labels: Tensor, settings: Settings,
    seed: int, keys: Tensor, progress: Progress | None,
) -> Outcome:  # fmt: skip
    own = replace(FIXED["deterministic"], outer_steps=settings["outer_steps"])
    return vote(
        model, task, tokens, labels, own, copies=settings["copies"], select=settings["select"],
        seed=seed, progress=progress,
    )  # fmt: skip


def _measured(run: Run) -> Method:
    """A method whose outcome becomes columns."""

    def method(
        model: RecursiveModel, task: Task, tokens: Tensor, labels: Tensor, settings: Settings,
        seed: int, keys: Tensor, progress: Progress | None = None,
    ) -> Columns:  # fmt: skip
        found = run(model, task, tokens, labels, settings, seed, keys, progress)
        return columns(found, task, tokens, labels, keys, device_of(model, tokens))

    return method


METHODS: dict[str, Method] = {
    **{name: _measured(partial(_fixed, name)) for name in EXPLORED},
    "halt_first": _measured(_halt_first),
    "symmetry": _measured(_symmetry),
    **{name: _measured(partial(_adaptive, name)) for name in PLANNED},
}
