"""Guided stochastic exploration: Algorithm 1 of the paper, each piece interchangeable."""

from tiltrm.explore import guides
from tiltrm.explore.algorithm import explore
from tiltrm.explore.cloud import (
    Clock,
    Cloud,
    Context,
    Problem,
    StepInfo,
    initial_cloud,
    make_problem,
    take,
)
from tiltrm.explore.noise import (
    Noise,
    NoiseFreeFirst,
    OncePerSupervision,
    Scheduled,
    annealed,
    answer_only,
    everywhere,
    latent_only,
)
from tiltrm.explore.result import Result, Trace
from tiltrm.explore.step import Tilt, step, trajectory_sampler
from tiltrm.settings import Exploration

__all__ = [
    "Clock",
    "Cloud",
    "Context",
    "Exploration",
    "Noise",
    "NoiseFreeFirst",
    "OncePerSupervision",
    "Problem",
    "Result",
    "Scheduled",
    "StepInfo",
    "Tilt",
    "Trace",
    "annealed",
    "answer_only",
    "everywhere",
    "explore",
    "guides",
    "initial_cloud",
    "latent_only",
    "make_problem",
    "step",
    "take",
    "trajectory_sampler",
]
