"""Guided stochastic exploration: Algorithm 1 of the paper, each piece interchangeable."""

from tiltrm.explore import guides
from tiltrm.explore.cloud import Clock, Cloud, Context, Question, StepInfo, ask, begin, take
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
from tiltrm.explore.run import explore
from tiltrm.explore.settings import Exploration
from tiltrm.explore.step import step, tilted, trajectory_sampler

__all__ = [
    "Clock",
    "Cloud",
    "Context",
    "Exploration",
    "Noise",
    "NoiseFreeFirst",
    "OncePerSupervision",
    "Question",
    "Result",
    "Scheduled",
    "StepInfo",
    "Trace",
    "annealed",
    "answer_only",
    "ask",
    "begin",
    "everywhere",
    "explore",
    "guides",
    "latent_only",
    "step",
    "take",
    "tilted",
    "trajectory_sampler",
]
