"""Recursive models behind one Protocol, and the checkpoints that hold them."""

from tiltrm.model.base import RecursiveModel, State, evaluations_per_step, step
from tiltrm.model.checkpoint import bundled, describe, load, save
from tiltrm.model.hrm import HRM, HRMConfig
from tiltrm.model.trm import TRM, TRMConfig

__all__ = [
    "HRM",
    "TRM",
    "HRMConfig",
    "RecursiveModel",
    "State",
    "TRMConfig",
    "bundled",
    "describe",
    "evaluations_per_step",
    "load",
    "save",
    "step",
]
