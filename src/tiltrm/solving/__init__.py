"""Solving: `solve`, its methods, the table of settings, plans, and the records of results."""

from tiltrm.settings import METHODS, TABLE, check_settings, settings_for
from tiltrm.solving.call import solve, solve_texts
from tiltrm.solving.methods import (
    build_search,
    exploration_for,
    parse_guide,
    stopping_rules,
    task_of,
)
from tiltrm.solving.plans import default_plan, plan_clues, plan_views, resized_plan
from tiltrm.solving.solution import PuzzleRecord, Solution

__all__ = [
    "METHODS",
    "TABLE",
    "PuzzleRecord",
    "Solution",
    "build_search",
    "check_settings",
    "default_plan",
    "exploration_for",
    "parse_guide",
    "plan_clues",
    "plan_views",
    "resized_plan",
    "settings_for",
    "solve",
    "solve_texts",
    "stopping_rules",
    "task_of",
]
