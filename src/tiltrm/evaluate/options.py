"""The settings of every method that is evaluated: which there are, and what they are unless given.

A job carries all of them, so that a shard says what made it and no default can change behind it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from reprlib import repr
from typing import Any

from tiltrm.diagnose import NOISES, ROOTED, SMALL
from tiltrm.errors import SettingsError
from tiltrm.evaluate.job import DIAGNOSE
from tiltrm.explore.plan import Adaptive, Stage
from tiltrm.methods import ADAPTIVE, FIXED, LARGEST, MAZE, numbers, plan, usual_plan

RECORDS: dict[str, Any] = {"by_step": False, "cells": False}  # what is kept, not what is done
STEERED = (
    "particles", "noise", "beta", "resample_below", "outer_steps", "placement", "resampler",
    "trigger", "potential", "score_every", "select",
)  # fmt: skip
EXPLORED = {  # fields of Exploration that a fixed method lets one set
    "deterministic": ("outer_steps",),
    "guided": STEERED,
    "unguided": ("particles", "noise", "outer_steps", "placement"),
    "ptrm": ("particles", "noise", "outer_steps", "select"),
}
GUIDABLE = ("guided", "ptrm")  # those that ask a guide
RULES, HALT = "adaptive_rules", "halt_above"
STEERING = ("noise", "beta", "resample_below")  # of a plan
TURNED = "turned"  # left out where false, so that shards without it are found; goes with stages
PLANNED = (ADAPTIVE, RULES)
BESIDES = {"particles": 1, "outer_steps": 1, TURNED: False}  # a plan takes them; like these values
HALT_FIRST: dict[str, Any] = {
    "particles": 12, "noise": 0.3, "halt_above": 0.0, "outer_steps": 48,
}  # fmt: skip
SYMMETRY: dict[str, Any] = {"copies": 8, "outer_steps": 48, "select": "majority"}
DIAGNOSED: dict[str, Any] = {
    "particles": SMALL.particles, "outer_steps": SMALL.outer_steps, "noise": SMALL.noise,
    "beta": SMALL.beta, "guides": ("halting",), "noises": NOISES, "rooted": ROOTED,
}  # fmt: skip
NAMES = (*EXPLORED, "halt_first", "symmetry", *PLANNED)
MOST_COPIES = 4096
FINITE = 1e300  # numbers beyond are none
VOTES = ("majority", "best_score")
KINDS = {int: "a whole number", str: "a name", bool: "true or false"}


def complete(method: str, given: Mapping[str, Any], task: str) -> dict[str, Any]:
    """Every setting of the method on this task; SettingsError for what it lacks or cannot take.

    complete(m, complete(m, x)) == complete(m, x). Proved by tests/evaluate/test_options.py.
    """
    if method not in (*NAMES, DIAGNOSE):
        raise SettingsError(f"method must be one of {', '.join(NAMES)}, got {method!r}")
    usual, known = usually(method, task), settable(method, task)
    if method == RULES and given.get(HALT) is None:
        known = (*known, HALT)  # as complete settings have it
    unknown = [name for name in given if name not in known]
    if unknown:
        raise SettingsError(
            f"the settings of {method} are {', '.join(known)}, got {', '.join(unknown)}; leave it "
            "out or choose another method"
        )
    found = {**usual, **{name: _formed(name, usual, value) for name, value in given.items()}}
    if method in PLANNED:
        if "stages" not in given:
            own = plan({name: found[name] for name in STEERING if name in given}, usual_plan(task))
            found = {TURNED: own.turned, **found, **_told(own)}
        return _planned(found, task)
    _check(method, found)
    return found


def settable(method: str, task: str) -> tuple[str, ...]:
    """The settings that one may give: a plan takes a few besides; rules ask no halting head."""
    names = (*usually(method, task), *(BESIDES if method in PLANNED else ()))
    return tuple(name for name in names if (method, name) != (RULES, HALT))


def usually(method: str, task: str) -> dict[str, Any]:
    """The settings of a method that is told nothing."""
    maze = task == "maze"
    if method in EXPLORED:
        fixed = replace(FIXED[method], **(MAZE.get(method, {}) if maze else {}))  # type: ignore[arg-type]
        usual: dict[str, Any] = {name: getattr(fixed, name) for name in EXPLORED[method]}
        return usual | ({"guide": "halting"} if method in GUIDABLE else {}) | RECORDS
    if method in PLANNED:
        return {**_told(usual_plan(task)), "guide": "halting", "halt_above": None}
    if method == "symmetry":
        return SYMMETRY
    usual = HALT_FIRST if method == "halt_first" else DIAGNOSED
    return {**usual, **{n: v for n, v in MAZE["guided"].items() if n in usual}} if maze else usual


def plan_of(settings: Mapping[str, Any]) -> Adaptive:
    """The plan that settings with all its stages say."""
    own = {name: settings[name] for name in STEERING}
    return Adaptive(staged(settings["stages"]), **own, turned=settings.get(TURNED, False))


def staged(stages: Any) -> tuple[Stage, ...]:
    """The stages of a plan from [particles, outer steps, goes on, noise] each."""
    if not isinstance(stages, list | tuple) or not all(map(_is_stage, stages)):
        raise SettingsError(
            "stages must be a list of [particles, outer steps], with true after them where "
            f"trajectories go on and then a noise where it has its own, got {repr(stages)}"
        )
    return tuple(Stage(*stage[:3], *map(float, stage[3:])) for stage in stages)


def _is_stage(given: Any) -> bool:
    if not isinstance(given, list | tuple) or not 2 <= len(given) <= 4:
        return False
    sizes = zip(given, LARGEST.values(), strict=False)  # particles, outer steps
    return (
        all(type(size) is int and 1 <= size <= most for size, most in sizes)
        and all(type(goes_on) is bool for goes_on in given[2:3])
        and all(type(noise) in (int, float) for noise in given[3:])
    )


def steps_of(stages: Iterable[Sequence[int]]) -> int:
    """The most outer steps that a plan with these stages gives a puzzle."""
    return sum(stage[1] for stage in stages)


def listed(own: Adaptive) -> tuple[tuple[float, ...], ...]:
    """The inverse of `staged`; a stage says its noise only where it has one of its own."""
    return tuple(
        (s.particles, s.outer_steps, s.goes_on, *(() if s.noise is None else (s.noise,)))
        for s in own.stages
    )


def _told(own: Adaptive) -> dict[str, Any]:
    """The plan as settings."""
    return {"stages": listed(own), **{name: getattr(own, name) for name in STEERING}}


def _planned(given: dict[str, Any], task: str) -> dict[str, Any]:
    """Particles and outer steps become part of the stages, as `tiltrm.methods.plan` does it."""
    sizes = {name: given[name] for name in LARGEST if name in given}
    rest = {name: given[name] for name in (*STEERING, "halt_above")}
    numbers(ADAPTIVE, {**rest, **sizes}, task)  # for its checks
    own = plan(sizes, plan_of(given))
    turned = {TURNED: True} if own.turned else {}
    return {**_told(own), "guide": given["guide"], "halt_above": given["halt_above"], **turned}


def _check(method: str, settings: Mapping[str, Any]) -> None:
    """Ranges, as Exploration and the methods of `solve` check them."""
    if method in EXPLORED:
        replace(FIXED[method], **{name: settings[name] for name in EXPLORED[method]})
    if method == "symmetry" and not 1 <= settings["copies"] <= MOST_COPIES:
        raise SettingsError(f"copies must lie in 1..{MOST_COPIES}, got {settings['copies']}")
    if method == "symmetry" and settings["select"] not in VOTES:
        raise SettingsError(f"select must be {' or '.join(VOTES)}, got {settings['select']!r}")
    if settings.get("rooted", 0) < 0 or any(noise < 0 for noise in settings.get("noises", ())):
        raise SettingsError("rooted and noises must be at least 0, got less")
    names = ("particles", "outer_steps", "noise", "beta", "resample_below", "halt_above")
    numbers(ADAPTIVE, {name: settings[name] for name in names if name in settings}, "")


def _formed(name: str, usual: Mapping[str, Any], value: Any) -> Any:
    """The value in the one form that its setting has: 1 as 1.0 where a number is meant."""
    if name == "stages":
        return value  # `staged` looks at them
    like = usual.get(name, BESIDES.get(name))
    if isinstance(like, tuple):
        if not isinstance(value, list | tuple):
            raise SettingsError(f"{name} must be a list, got {value!r}")
        return tuple(_formed(name, {name: like[0]}, item) for item in value)
    if like is None and value is None:
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and isinstance(like, float | None) and not isinstance(like, bool):
        if not abs(value) < FINITE:  # so that NaN fails too
            raise SettingsError(f"{name} must be a finite number, got {repr(value)}")
        return float(value)
    if type(value) is not type(like):
        kind = KINDS.get(type(like), "a number")
        raise SettingsError(f"{name} must be {kind}, got {value!r}")
    return value
