"""The description of a model for the page: sizes, defaults, plans and views as plain JSON.

The page computes in JavaScript; every number that the library decides (plans, thresholds, defaults
of methods, the drawn symmetries) is written down here, so that both read the same.
"""

import base64
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from tiltrm.explore.plan import Adaptive, Stage
from tiltrm.model.base import RecursiveModel
from tiltrm.settings import METHODS
from tiltrm.solving import exploration_for, plan_views
from tiltrm.solving.confidence import calibration_of
from tiltrm.solving.methods import FIXED, Stopping, adaptive_plan
from tiltrm.tasks import Symmetry, Task

VIEWS = 32  # symmetric views written down for each stage, so the largest cloud that has views
BASELINE = (Stage(1, 48),)  # the deterministic run beside others, as in tiltrm.serve.frames
THRESHOLDS = ("halt_above", "settled", "agree_share", "agree_among")
PLANNED = ("halt_above", "agree_share", "agree_among", "rules", "shortest_visited")
FIXED_SETTINGS = (
    "particles", "noise", "beta", "resample_below", "outer_steps", "placement", "resampler",
    "trigger", "potential", "score_every", "select",
)  # fmt: skip


def describe(
    model: RecursiveModel, name: str, task: Task, *, bundled: bool = False
) -> dict[str, Any]:
    """What the page's engine must know of a model and its task.

    `bundled` says that `tiltrm solve` knows the model by its name.
    Proved by tests/export/test_engine.py.
    """
    found = adaptive_plan(model, task)
    plan = found.plan
    first = model.start(model.embed(torch.ones(1, model.cells, dtype=torch.int64)))
    symbols = [task.decode(torch.tensor([token])) for token in range(1, model.vocabulary)]
    return {
        "name": name,
        "bundled": bundled,
        "task": task.name,
        "side": task.side,
        "cells": model.cells,
        "vocabulary": model.vocabulary,
        "positions": first.answer.shape[-2],
        "width": first.answer.shape[-1],
        "inner_steps": model.inner_steps,
        "cycles": model.cycles,
        "symbols": ["", *symbols],
        "first": {half: getattr(first, half)[0, 0].float().tolist() for half in first._fields},
        "first_token": int(model.decode(first.answer)[0, 0].argmax()),
        "plan": _plan(plan),
        "unknown_plan": _plan(Adaptive()),
        "baseline": _stages(BASELINE),
        "methods": {method: _fixed(method, task) for method in METHODS if method in FIXED},
        "stopping": _stopping(Stopping.of(model), THRESHOLDS),
        "planned": _stopping(found.stopping, PLANNED),
        "puzzle_id": found.puzzle_id,
        "calibration": _calibration(model),
        "views": _views(plan, task, model),
    }


def _plan(plan: Adaptive) -> dict[str, Any]:
    return {
        "stages": _stages(plan.stages),
        "noise": plan.noise,
        "beta": plan.beta,
        "resample_below": plan.resample_below,
        "symmetric_views": plan.symmetric_views,
    }


def _stages(stages: Sequence[Stage]) -> list[dict[str, Any]]:
    return [vars(stage) for stage in stages]


def _fixed(method: str, task: Task) -> dict[str, Any]:
    settings = exploration_for(method, task)
    return {name: getattr(settings, name) for name in FIXED_SETTINGS}


def _stopping(stopping: Stopping, names: Sequence[str]) -> dict[str, Any]:
    """Settings of `tiltrm.solving.stopping_rules`."""
    return {name: getattr(stopping, name) for name in names}


def _calibration(model: RecursiveModel) -> dict[str, Any] | None:
    """The curves of a calibration, and the settings that they are for."""
    found = calibration_of(model)
    if found is None:
        return None
    curves = {name: curve._asdict() for name, curve in found.curves.items()}
    return {
        "settings": dict(found.settings), "curves": curves, "right_if_valid": found.right_if_valid,
    }  # fmt: skip


def _views(plan: Adaptive, task: Task, model: RecursiveModel) -> dict[str, Any] | None:
    """The symmetry of every particle of every stage; a smaller cloud has the first of them."""
    wide = tuple(replace(stage, particles=max(stage.particles, VIEWS)) for stage in plan.stages)
    drawn = plan_views(replace(plan, stages=wide), task, model, torch.device("cpu"))
    if not drawn:
        return None
    return {
        "source": [_packed(each, "source", np.uint16) for each in drawn],
        "names": [_packed(each, "names", np.uint8) for each in drawn],
    }


def _packed(views: Symmetry, table: str, kind: type[np.unsignedinteger[Any]]) -> str:
    """(particle, entry) as base64, little-endian."""
    numbers = getattr(views, table).numpy().astype(np.dtype(kind).newbyteorder("<"))
    return base64.b64encode(numbers.tobytes()).decode("ascii")
