"""The events of a run, as plain dictionaries for the page: start, step, baseline, result.

The server streams them one by one; the file of `solve --html` holds all of them. The baseline is
the deterministic run of the same puzzle.
"""

import json
import shlex
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tiltrm.explore.cloud import StepInfo
from tiltrm.explore.plan import Adaptive, Stage
from tiltrm.explore.result import SearchResult, beliefs, marginal_entropy
from tiltrm.explore.search import StagedSearch, adaptive_search
from tiltrm.model.base import RecursiveModel, evaluations_per_step, model_info
from tiltrm.solving import PuzzleRecord, stopping_rules
from tiltrm.tasks import Task
from tiltrm.tasks.published import has_rules, has_types, on_board, token_colours, type_of
from tiltrm.tasks.registry import source_of

DIGITS = 4
GRIDS = 6  # particles whose own answers are shown
BASELINE = Adaptive(stages=(Stage(1, 48),))  # the model as published, stopped when decided


def baseline_search(model: RecursiveModel) -> StagedSearch:
    """The deterministic run that is shown beside others."""
    return adaptive_search(model, BASELINE, stopping_rules(model))


def start(
    task: Task, model: RecursiveModel, puzzle: Tensor, *, method: str, seed: int,
    settings: Mapping[str, Any], model_name: str | None, tuned: bool = True, paths: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """The `start` event: the puzzle, and the settings that were given (names as in `solve`).

    `paths` says that the command may name the folder of a user's own task.
    All events list the cells of the puzzle, which may be fewer than those of the task's board.
    """
    text = task.decode(puzzle)
    typed = {**settings, "untuned": not tuned}
    inside = on_board(task, puzzle)
    rows = inside[: task.side**2].view(task.side, task.side)  # a header may follow
    optional: dict[str, Any] = {"type": type_of(task, puzzle)} if has_types(task) else {}
    if (colours := token_colours(task)) is not None:
        optional["colours"] = list(colours)
    return {
        "puzzle": text,
        "task": task.name,
        "side": int(rows.any(0).sum()),  # columns
        "cells": int(inside.sum()),
        "given": task.given(puzzle)[inside].tolist(),
        "symbols": ["", *symbols(task, model.vocabulary)],
        "method": method,
        "seed": seed,
        "settings": dict(settings),
        "command": command(text, method, seed, typed, model_name, _task_words(task, model, paths)),
    } | optional  # fmt: skip


def symbols(task: Task, vocabulary: int | None = None) -> list[str]:
    """The characters of the ids 1, 2, ... of the task, or of a model's vocabulary if given."""
    return [task.decode(torch.tensor([i])) for i in range(1, vocabulary or task.vocabulary)]


def command(
    text: str, method: str, seed: int, settings: Mapping[str, Any], model_name: str | None,
    task: str | None = None,
) -> str:  # fmt: skip
    """The command line of the same run; `model_name` is None for the default model.

    `task` is needed where neither the puzzle nor the model says it.
    """
    named = {"task": task, "model": model_name, "method": method, "seed": seed or None, **settings}
    words = ["tiltrm", "solve", text]
    for name, value in named.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif value is not None and value is not False:
            words += [flag, str(value)]
    return shlex.join(words)


def _task_words(task: Task, model: RecursiveModel, paths: bool) -> str | None:
    """The value of --task: the file of a user's own task, or the name that a model lacks."""
    source = source_of(task.name)
    if source is not None:
        return f"{source.where if paths else Path(source.where).name}:{source.name}"
    return None if model_info(model).task else task.name


class FrameBuilder:
    """Builds the `step` events of one puzzle; counts its cost and notes which particles are new."""

    def __init__(self, search: StagedSearch, task: Task) -> None:
        self.model, self.plan, self.task = search.model, search.plan, task
        self.ends = list(accumulate(stage.outer_steps for stage in self.plan.stages))
        self.stage = 0
        self.fresh: list[bool] = []
        self.evaluations = 0

    def frame(self, info: StepInfo, row: int = 0) -> dict[str, Any]:
        """The `step` event of the puzzle at `row`."""
        clock = info.context.clock
        particles = info.log_weights.shape[1]
        self._begin_stage(clock.step, particles)
        self.evaluations += particles * evaluations_per_step(self.model)
        ancestors = info.ancestors[row].tolist()
        halting = _rounded(torch.sigmoid(info.context.halt_logit()[row]).nan_to_num(0.0))
        weights = info.log_weights[row].exp()
        inside = on_board(self.task, info.context.problem.tokens[row])
        prediction = beliefs(info, self.model.vocabulary, row)[inside]
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
            "grids": _grids(info.context.answers[row][:, inside], weights.tolist(), halting),
            "stage": self.stage,
            "fresh": list(self.fresh),
        }
        self.fresh = [self.fresh[ancestor] for ancestor in ancestors]
        return frame

    def _begin_stage(self, step: int, particles: int) -> None:
        """Where a stage begins, note which particles are fresh.

        A stage keeps particle 0 of the one before, all of them if it `continues`, and none in a
        plan with symmetric views.
        """
        if step == 1:
            self.fresh = [True] * particles
        elif step > self.ends[self.stage]:
            self.stage += 1
            continues = self.plan.stages[self.stage].continues
            kept = 0 if self.plan.symmetric_views else len(self.fresh) if continues else 1
            self.fresh = [slot >= kept for slot in range(particles)]


def baseline(task: Task, puzzle: Tensor, solution: SearchResult, row: int = 0) -> dict[str, Any]:
    """The `baseline` event: the deterministic run."""
    answer = solution.answers[row]
    return {
        "solved": bool(task.is_solved(puzzle, answer)) if has_rules(task) else None,
        "outer_steps": int(solution.outer_steps[row]),
        "evaluations": int(solution.evaluations[row]),
        "tokens": answer[on_board(task, puzzle)].tolist(),
        "decided": solution.decided_by[row] == "halting",
    }


def result(record: PuzzleRecord) -> dict[str, Any]:
    """The `result` event: the object of `solve --json`, its steps and its last cloud's size."""
    found: dict[str, Any] = json.loads(record.as_json())
    return found | {"outer_steps": record.outer_steps, "particles": record.particles}


def _grids(answers: Tensor, weights: list[float], halting: list[float]) -> list[dict[str, Any]]:
    """The heaviest particles and their answers; ties: higher halting first, then lower index."""
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
