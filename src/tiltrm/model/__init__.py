"""Recursive models behind one Protocol, and the checkpoints that hold them."""

from tiltrm.model.base import (
    ModelInfo,
    RecursiveModel,
    State,
    evaluations_per_step,
    model_info,
    step,
)
from tiltrm.model.checkpoint import bundled, describe, load, save
from tiltrm.model.hrm import HRM, HRMConfig
from tiltrm.model.trm import TRM, TRMConfig

__all__ = [
    "HRM",
    "TRM",
    "HRMConfig",
    "ModelInfo",
    "RecursiveModel",
    "State",
    "TRMConfig",
    "bundled",
    "describe",
    "evaluations_per_step",
    "load",
    "model_info",
    "save",
    "step",
]
