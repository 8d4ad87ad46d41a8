"""The events of a solve that is watched, as plain dictionaries for a page or a file.

`start`, a `step` for every outer step, `baseline`, `result`; a replay holds all four.
"""

import json
import shlex
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tiltrm.explore.batching import in_groups
from tiltrm.explore.cloud import StepInfo
from tiltrm.explore.plan import Adaptive
from tiltrm.explore.result import SearchResult, beliefs, marginal_entropy
from tiltrm.model.base import RecursiveModel, evaluations_per_step
from tiltrm.solving import Solved
from tiltrm.tasks import Task
from tiltrm.tasks.registry import TaskSource, source_of

DIGITS = 4
GRIDS = 6  # particles whose own answers are shown


def start(
    task: Task, model: RecursiveModel, puzzle: Tensor, *, method: str, seed: int,
    settings: Mapping[str, Any], model_name: str | None,
) -> dict[str, Any]:  # fmt: skip
    """What stays the same; `settings` are those that were given, by their names in `solve`."""
    text = task.decode(puzzle)
    return {
        "puzzle": text,
        "task": task.name,
        "side": task.side,
        "cells": task.cells,
        "given": task.given(puzzle).tolist(),
        "symbols": ["", *symbols(task, model.vocabulary)],
        "method": method,
        "seed": seed,
        "settings": dict(settings),
        "command": command(text, method, seed, settings, model_name, source_of(task.name)),
    }


def symbols(task: Task, vocabulary: int | None = None) -> list[str]:
    """The characters of the ids 1, 2, ...: those of the task, or so many as a model has."""
    return [task.decode(torch.tensor([i])) for i in range(1, vocabulary or task.vocabulary)]


def command(
    text: str, method: str, seed: int, settings: Mapping[str, Any], model_name: str | None,
    source: TaskSource | None = None,
) -> str:  # fmt: skip
    """The command line that does the same; `model_name` is None for the usual one.

    `source` is what brought a task of one's own; clients hear of its file the last name alone.
    """
    task = source and f"{Path(source.where).name}:{source.name}"
    named = {"task": task, "model": model_name, "method": method, "seed": seed or None, **settings}
    words = ["tiltrm", "solve", text]
    for name, value in named.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif value is not None and value is not False:
            words += [flag, str(value)]
    return shlex.join(words)


class Film:
    """Turns the steps of one puzzle into frames; it counts what they cost and who is fresh."""

    def __init__(self, model: RecursiveModel, plan: Adaptive | None) -> None:
        self.model = model
        self.stages = plan.stages if plan else ()
        self.symmetric_views = plan is not None and plan.symmetric_views
        self.ends = list(accumulate(stage.outer_steps for stage in self.stages))
        self.stage = 0
        self.fresh: list[bool] = []
        self.evaluations = 0

    def frame(self, info: StepInfo, row: int = 0) -> dict[str, Any]:
        """The `step` event of the puzzle at `row`."""
        clock = info.context.clock
        particles = info.log_weights.shape[1]
        self._grow(clock.step, particles)
        self.evaluations += particles * evaluations_per_step(self.model)
        ancestors = info.ancestors[row].tolist()
        logit = in_groups(self.model.halt_logit, info.context.state.answer[row : row + 1])[0]
        halting = _rounded(torch.sigmoid(logit).nan_to_num(0.0))
        weights = info.log_weights[row].exp()
        prediction = beliefs(info, self.model.vocabulary, row)
        share, token = prediction.max(-1)
        frame = {
            "step": clock.step,
            "steps": clock.steps,
            "particles": particles,
            "evaluations": self.evaluations,
            "ess": round(float(info.ess[row]), DIGITS),
            "weights": _rounded(weights),
            "scores": [
                value if value > -torch.inf else None for value in _rounded(info.score[row])
            ],
            "halting": halting,
            "ancestors": ancestors,
            "leading": token.tolist(),
            "confidence": _rounded(share.clamp(0.0, 1.0)),
            "entropy": _rounded(marginal_entropy(prediction)),
            "grids": _grids(info.context.answers[row], weights.tolist(), halting),
            "stage": self.stage,
            "fresh": list(self.fresh),
        }
        self.fresh = [self.fresh[ancestor] for ancestor in ancestors]
        return frame

    def _grow(self, step: int, particles: int) -> None:
        """A stage keeps its first particle, or all where it goes on; those after are fresh.

        Where the particles of a plan are turned, it keeps none.
        """
        if step == 1:
            self.fresh = [True] * particles
        elif self.stage < len(self.ends) - 1 and step > self.ends[self.stage]:
            self.stage += 1
            goes_on = self.stages[self.stage].continues
            kept = 0 if self.symmetric_views else len(self.fresh) if goes_on else 1
            self.fresh = [place >= kept for place in range(particles)]


def baseline(task: Task, puzzle: Tensor, solution: SearchResult, row: int = 0) -> dict[str, Any]:
    """The `baseline` event: the deterministic run."""
    answer = solution.answers[row]
    return {
        "solved": bool(task.is_solved(puzzle, answer)),
        "outer_steps": int(solution.outer_steps[row]),
        "evaluations": int(solution.evaluations[row]),
        "tokens": answer.tolist(),
        "decided": solution.decided_by[row] == "halting",
    }


def result(solved: Solved) -> dict[str, Any]:
    """The `result` event: the object of `solve --json`, and how it came about."""
    found: dict[str, Any] = json.loads(solved.as_json())
    return found | {
        "decided_by": solved.decided_by,
        "outer_steps": solved.outer_steps,
        "particles": solved.particles,
    }


def _grids(answers: Tensor, weights: list[float], halting: list[float]) -> list[dict[str, Any]]:
    """The heaviest particles with their own answers; ties go to the surer, then to the first."""
    order = sorted(range(len(weights)), key=lambda s: (-weights[s], -halting[s], s))
    return [
        {
            "particle": s,
            "weight": round(weights[s], DIGITS),
            "halting": halting[s],
            "tokens": answers[s].tolist(),
        }
        for s in order[:GRIDS]
    ]


def _rounded(values: Tensor) -> list[float]:
    return [round(value, DIGITS) for value in values.tolist()]
