"""The complete settings of an evaluated method: those that were given, and the defaults.

A job carries all of them, so that a shard says what made it and no default can change behind it.
"""

from collections.abc import Iterable, Mapping, Sequence
from reprlib import repr
from types import NoneType
from typing import Any

from tiltrm import settings as defaults
from tiltrm.cpu_precision import PRECISIONS
from tiltrm.diagnose import NOISES, ROOTED, SMALL
from tiltrm.errors import SettingsError
from tiltrm.evaluate.job import DIAGNOSE
from tiltrm.explore.choices import BEST_SO_FAR
from tiltrm.explore.plan import Adaptive, Stage, parse_stages
from tiltrm.settings import (
    ADAPTIVE,
    LARGEST_CLOUD,
    LONGEST_RUN,
    TABLE,
    Exploration,
    Setting,
    settings_for,
    settings_of,
)
from tiltrm.solving.methods import FIXED, exploration_for
from tiltrm.solving.plans import TunedPlan, default_plan, resized_plan, usual_stopping
from tiltrm.tasks.registry import defaults_of

RULES = "adaptive_rules"  # adaptive, stopped at a valid solution only
PLANNED = (ADAPTIVE, RULES)
STEERING = ("noise", "beta", "resample_below")  # settings of a plan besides its stages
TURNED = "turned"  # the stored name of symmetric_views; left out where false
PRECISION = "precision"  # left out where it is the device's usual one
ROWS: dict[str, Setting] = {  # settings of jobs that `solve` does not have
    row.name: row
    for row in (
        Setting("by_step", bool, False, "keep the accuracy after every step", tuple(FIXED)),
        Setting("cells", bool, False, "keep the entropy of every cell", tuple(FIXED)),
        Setting(TURNED, bool, False, "symmetric views", PLANNED),
        Setting("rooted", int, ROOTED, "puzzles whose stability is measured", (DIAGNOSE,)),
        Setting(PRECISION, str, None, "of the network", defaults.EVALUATED, choices=PRECISIONS),
    )
}
RECORDS = {name: ROWS[name].default for name in ("by_step", "cells")}  # kept, not done
SYMMETRY: dict[str, Any] = {"copies": 8, "outer_steps": 48, "select": "majority"}
HALT_FIRST: dict[str, Any] = {
    "particles": 12, "noise": 0.3, "halt_above": 0.0, "outer_steps": 48,
}  # fmt: skip
C_VOTING: dict[str, Any] = {"particles": 16, "noise": 1.0, "outer_steps": 48}
DIAGNOSED: dict[str, Any] = {
    "particles": SMALL.particles, "outer_steps": SMALL.outer_steps, "noise": SMALL.noise,
    "beta": SMALL.beta, "guides": ("halting",), "noises": NOISES, "rooted": ROOTED,
}  # fmt: skip
NAMES = defaults.EVALUATED
VOTES = ("majority", "best_score")  # selectors of symmetry voting
FIRST = (  # fields of Exploration in the first shards; later ones are stored where they are set
    "particles", "noise", "beta", "resample_below", "outer_steps", "placement", "resampler",
    "trigger", "potential", "score_every", "select",
)  # fmt: skip
STOPPING = {  # defaults of the stopping rules when the first shards were stored
    "agree_share": 0.9, "agree_among": 16, "uncalibrated_halt_above": 2.0,
    "shortest_visited": False,
}  # fmt: skip


def fields_of(method: str) -> tuple[str, ...]:
    """The fields of Exploration that a fixed method lets one set, in the order of the table."""
    return tuple(name for name in settings_for(method) if name in settings_of(Exploration))


def complete(method: str, given: Mapping[str, Any], task: str) -> dict[str, Any]:
    """Every setting of the method on this task; SettingsError for an unknown or impossible one.

    complete(m, complete(m, x)) == complete(m, x). Proved by tests/evaluate/test_options.py.
    """
    if method not in (*NAMES, DIAGNOSE):
        raise SettingsError(f"method must be one of {', '.join(NAMES)}, got {method!r:.60}")
    known = settable(method, task)
    if method == RULES and given.get("halt_above") is None:
        known = (*known, "halt_above")  # complete settings have it
    unknown = [name for name in given if name not in known]
    if unknown:
        raise SettingsError(
            f"the settings of {method} are {', '.join(known)}, got {', '.join(unknown)}; leave it "
            "out or choose another method"
        )
    usual = default_settings(method, task)
    found = {**usual, **{name: _checked(name, value, usual) for name, value in given.items()}}
    if found.get("by_step") and "seconds" in found:
        raise SettingsError("by_step needs every step, so seconds must be left out, got both")
    if found.get("by_step") and found.get("select") == BEST_SO_FAR:
        raise SettingsError(
            f"by_step needs a vote of every step, so select must not be {BEST_SO_FAR}"
        )
    if method in PLANNED:
        if "stages" not in given:
            steering = {name: found[name] for name in STEERING if name in given}
            plan = default_plan(task)
            if given.get(TURNED) is False:  # particles without views of their own cannot guess
                plan = plan.without_guesses()
            own = resized_plan(plan, steering)
            found = {TURNED: own.symmetric_views, **found, **_plan_settings(own)}
            if method == ADAPTIVE:  # `rules` is a method of its own here
                stopping = usual_stopping(task, given)
                found |= {n: v for n, v in stopping.items() if n != "rules" and n not in given}
        if found.get("shortest_visited") and TURNED not in given:
            found[TURNED] = True  # as `adaptive_plan` does
        return _with_stages(found)
    if method in FIXED:  # so that a setting that is new leaves the keys of stored shards alone
        later = [name for name in fields_of(method) if name not in FIRST]
        found = {n: v for n, v in found.items() if n not in later or v != usual[n]}
    if method == "symmetry" and found["select"] not in VOTES:
        raise SettingsError(f"select must be {' or '.join(VOTES)}, got {found['select']!r}")
    return found


def settable(method: str, task: str) -> tuple[str, ...]:
    """The settings that may be given. A plan also takes its size; rules ask no halting head."""
    names = tuple(default_settings(method, task))
    if method in PLANNED:
        names = (*names, "particles", "outer_steps", TURNED, *STOPPING)
    # Only where given: a limit makes results depend on the machine, and most models have one id.
    having = settings_for(ADAPTIVE if method == RULES else method)
    names = (*names, *(name for name in ("seconds", "puzzle_id") if name in having))
    if method != DIAGNOSE:
        names = (*names, PRECISION)
    return tuple(
        name
        for name in dict.fromkeys(names)
        if not (method == RULES and name in ("halt_above", *STOPPING))
    )


def default_settings(method: str, task: str) -> dict[str, Any]:
    """The settings of a method on a task where none is given."""
    if method in FIXED:
        fixed = exploration_for(method, task)
        found: dict[str, Any] = {name: getattr(fixed, name) for name in fields_of(method)}
        guided = "guide" in settings_for(method)
        return found | ({"guide": "halting"} if guided else {}) | RECORDS
    if method in PLANNED:
        changed = {} if method == RULES else changed_stopping_defaults()
        plan = _plan_settings(default_plan(task))
        return {**plan, "guide": "halting", "halt_above": None, **changed}
    if method in ("symmetry", "c_voting"):
        return SYMMETRY if method == "symmetry" else C_VOTING
    usual = HALT_FIRST if method == "halt_first" else DIAGNOSED
    own = defaults_of(task).settings.get("guided", {})
    return {**usual, **{name: value for name, value in own.items() if name in usual}}


def changed_stopping_defaults() -> dict[str, Any]:
    """The defaults of the stopping rules that are not those of `STOPPING`.

    They are part of a job's key; at the values of the first shards they are left out of it.
    """
    now: dict[str, Any] = {
        "agree_share": defaults.AGREE_SHARE, "agree_among": defaults.AGREE_AMONG,
        "uncalibrated_halt_above": defaults.HALT_ABOVE,
    }  # fmt: skip
    return {name: value for name, value in now.items() if value != STOPPING[name]}


def plan_of(settings: Mapping[str, Any]) -> Adaptive:
    """The plan of complete settings."""
    own = {name: settings[name] for name in STEERING}
    return Adaptive(
        stages_from(settings["stages"]), **own, symmetric_views=settings.get(TURNED, False)
    )


def stages_from(stages: Any) -> tuple[Stage, ...]:
    """The stages of a plan, from their text or from the lists of `stages_as_lists`."""
    if isinstance(stages, str):
        stages = _as_lists(parse_stages(stages))
    if not isinstance(stages, list | tuple) or not all(map(_is_stage, stages)):
        raise SettingsError(
            'stages must be a text like "1x20 8x24@0.6?1*4", or a list of [particles, outer '
            "steps], each perhaps followed by true where particles continue, then by its own noise "
            f"or null, then by its guesses, got {repr(stages)}"
        )
    return tuple(_stage(*stage) for stage in stages)


def _stage(
    particles: int, outer_steps: int, continues: bool = False, noise: float | None = None,
    guesses: int = 0,
) -> Stage:  # fmt: skip
    own = None if noise is None else float(noise)
    return Stage(particles, outer_steps, continues, own, guesses)


def _is_stage(given: Any) -> bool:
    if not isinstance(given, list | tuple) or not 2 <= len(given) <= 5:
        return False
    sizes = zip(given, (LARGEST_CLOUD, LONGEST_RUN), strict=False)
    return (
        all(type(size) is int and 1 <= size <= most for size, most in sizes)
        and all(type(continues) is bool for continues in given[2:3])
        and all(type(noise) in (int, float, NoneType) for noise in given[3:4])
        and all(type(guesses) is int and 0 <= guesses <= 9 for guesses in given[4:])
    )


def tuned_settings(method: str, tuned: TunedPlan) -> dict[str, Any]:
    """The settings of an adaptive job with the plan that `tiltrm tune` chose."""
    found = {**_plan_settings(tuned.plan), TURNED: tuned.plan.symmetric_views}
    return found if method == RULES else {**found, "halt_above": tuned.halt_above}


def steps_of(stages: Iterable[Sequence[int]]) -> int:
    """The most outer steps that a plan with these stages gives a puzzle."""
    return sum(stage[1] for stage in stages)


def stages_as_lists(plan: Adaptive) -> tuple[tuple[float | None, ...], ...]:
    """[particles, outer steps, continues, own noise, guesses] of every stage.

    The last two stand only where a stage has them, so that the keys of stored shards stay.
    """
    return _as_lists(plan.stages)


def _as_lists(stages: Iterable[Stage]) -> tuple[tuple[float | None, ...], ...]:
    return tuple((s.particles, s.outer_steps, s.continues, *_own(s)) for s in stages)


def _own(stage: Stage) -> tuple[float | None, ...]:
    if stage.guesses:
        return stage.noise, stage.guesses
    return () if stage.noise is None else (stage.noise,)


def _plan_settings(plan: Adaptive) -> dict[str, Any]:
    return {"stages": stages_as_lists(plan), **{name: getattr(plan, name) for name in STEERING}}


def _with_stages(found: dict[str, Any]) -> dict[str, Any]:
    """Particles and outer steps become part of the stages, as `resized_plan` does it."""
    sizes: dict[str, Any] = {n: found[n] for n in ("particles", "outer_steps") if n in found}
    own = resized_plan(plan_of(found), sizes)
    turned = {TURNED: True} if own.symmetric_views else {}
    others = ("guide", "halt_above", "seconds", "puzzle_id", PRECISION, *STOPPING)
    rest = {name: found[name] for name in others if name in found}
    kept = {name: value for name, value in rest.items() if value != STOPPING.get(name, ())}
    return {**_plan_settings(own), **kept, **turned}


def _checked(name: str, value: Any, usual: Mapping[str, Any]) -> Any:
    """The value in the one form that its setting has: 1 as 1.0 where a number is meant."""
    if name == "stages":
        return value  # `stages_from` looks at them
    if isinstance(usual.get(name), tuple):  # the guides and the noises of a diagnosis
        if not isinstance(value, list | tuple):
            raise SettingsError(f"{name} must be a list, got {repr(value)}")
        return tuple(TABLE[name[:-1]].check(item) for item in value)
    if value is None and name == "halt_above" and usual.get(name, 0) is None:
        return None
    if name == "uncalibrated_halt_above":
        return TABLE["halt_above"].check(value)
    return (ROWS | TABLE)[name].check(value)
