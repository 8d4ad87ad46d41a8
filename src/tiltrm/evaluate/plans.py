"""The jobs of every table and figure; nothing is computed here."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tiltrm.errors import SettingsError
from tiltrm.evaluate.job import DIAGNOSE, SOLVE, Job
from tiltrm.evaluate.options import PLANNED, TURNED, complete, stages_as_lists
from tiltrm.evaluate.sizes import SIZES, Size, size_of
from tiltrm.evaluate.target import EvalTarget
from tiltrm.explore.plan import Adaptive, parse_stages
from tiltrm.solving.guide_folder import pinned_guide
from tiltrm.tasks.registry import defaults_of

__all__ = [
    "SIZES", "Size", "axes", "diagnostics", "done", "frontier", "grid", "jobs", "sweep",
    "table1", "whole",
]  # fmt: skip

UNSEEDED = ("deterministic",)  # the same for every seed
NOISES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)
BETAS = (0.0, 0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
CLOUDS = (1, 2, 4, 8, 16, 32, 64)
THRESHOLDS = (0.0, 0.1, 0.3, 0.5, 0.7, 1.0)
POTENTIALS = ("every_step", "difference", "terminal")
PLACEMENTS = ("everywhere", "latent", "answer", "supervision")
GRID = {"noise": (0.1, 0.2, 0.3, 0.4, 0.5), "beta": (0.1, 0.25, 0.5, 1.0)}


def jobs(
    target: EvalTarget, method: str, settings: Mapping[str, Any] | None = None, *, seeds: int = 1,
    folds: int = 1, limit: int | None = None,
) -> list[Job]:  # fmt: skip
    """One method on every seed and fold; a method without randomness has one seed."""
    if limit is not None and limit < 1:
        raise SettingsError(f"limit must be at least 1 puzzle, got {limit}")
    count = target.puzzles if limit is None else min(limit, target.puzzles)
    if seeds < 1:
        raise SettingsError(f"seeds must be at least 1, got {seeds}")
    if not 1 <= folds <= count:
        raise SettingsError(f"folds must lie in 1..{count}, the number of puzzles, got {folds}")
    found = complete(method, settings or {}, target.task)
    for name in ("guide", "guides"):  # a learned guide is part of the key by its content
        if name in found:
            value = found[name]
            one = isinstance(value, str)
            found[name] = pinned_guide(value) if one else tuple(map(pinned_guide, value))
    own = tuple(found.items())
    return [
        Job(
            kind=DIAGNOSE if method == DIAGNOSE else SOLVE, model=target.model,
            weights=target.weights, task=target.task, data=target.data, split=target.split,
            checksum=target.checksum, limit=None if count == target.puzzles else count,
            method=method, settings=own, seed=seed, fold=fold, folds=folds,
        )
        for seed in range(1 if method in UNSEEDED else seeds)
        for fold in range(folds)
    ]  # fmt: skip


def table1(
    target: EvalTarget, size: str = "full", chosen: Mapping[str, Any] | None = None
) -> list[Job]:
    """Deterministic, unguided and guided on every seed and fold (Table 1, Figs. 1, 4 and 7).

    The cells are kept for the first seed of guided alone. `chosen` are settings of guided other
    than the paper's; unguided takes its noise and particles from them.
    """
    own = size_of(size)
    chosen = dict(chosen or {})
    shared = {
        name: chosen[name] for name in ("particles", "noise", "outer_steps") if name in chosen
    }
    steps = {name: value for name, value in shared.items() if name == "outer_steps"}
    make = _Maker(target, own, own.table, own.seeds, own.folds)
    guided = make("guided", **chosen, by_step=True)
    detailed = make("guided", **chosen, by_step=True, cells=True)
    found = [
        *make("deterministic", **steps, by_step=True),
        *make("unguided", **shared, by_step=True),
        *(job for job in detailed if job.seed == 0),
        *(job for job in guided if job.seed > 0),
    ]
    return sorted(found, key=lambda job: job.seed)


def frontier(target: EvalTarget, size: str = "full", limit: int | None = None) -> list[Job]:
    """Accuracy against evaluations: ours and the peers, on the same weights and puzzles.

    `limit` overrides how many puzzles the size says.
    """
    own = size_of(size)
    limits = own.frontier if limit is None else {target.task: limit}
    parts = min(own.parts, target.puzzles, limits.get(target.task) or own.parts)
    make = _Maker(target, own, limits, folds=parts)
    task = defaults_of(target.task)
    copies = (4, 8, 16) if task.symmetric_views else (2, 4, 8)
    own_plan: dict[str, Any] = {}
    if task.frontier_stages:
        stages = stages_as_lists(Adaptive(parse_stages(task.frontier_stages)))
        own_plan = {"stages": stages, TURNED: task.symmetric_views}
    plain = {"stages": stages_as_lists(Adaptive()), "noise": 0.5}  # without symmetric views
    found = _once([
        *_each(make("deterministic", outer_steps=n) for n in (48, 96, 192, 384)),
        *_each(make("unguided", particles=n) for n in (4, 16, 64)),
        *_each(make("guided", particles=n) for n in CLOUDS[1:]),
        *_each(make("ptrm", particles=n) for n in (4, 16, 100)),
        *_each(make("ptrm", particles=n, select="majority") for n in (16, 100)),
        *_each(make("halt_first", particles=n) for n in (4, 12, 32)),
        *_each(make("symmetry", copies=n) for n in copies),
        *_each(make("adaptive", **own_plan, outer_steps=n) for n in task.frontier_steps),
        *make("adaptive", **own_plan),
        *make("adaptive_rules", **own_plan),
        *(make("adaptive", **plain) if task.symmetric_views else []),
    ])  # fmt: skip
    return sorted(found, key=lambda job: job.fold)


def done(wanted: Iterable[Job], has: Callable[[Job], bool]) -> list[Job]:
    """Of a plan that is half done, the folds whose every job of the first seed is there.

    And the seeds that are there in all of those, so that all methods have the same puzzles.
    """
    wanted = list(wanted)
    lacking = [job for job in wanted if not has(job)]
    folds = {job.fold for job in wanted} - {job.fold for job in lacking if job.seed == 0}
    seeds = {job.seed for job in wanted} - {job.seed for job in lacking if job.fold in folds}
    return [job for job in wanted if job.fold in folds and job.seed in seeds]


def whole(wanted: Iterable[Job], has: Callable[[Job], bool]) -> list[Job]:
    """Of a plan that is half done, the settings whose every seed and fold is there."""
    wanted = list(wanted)
    lacking = {(job.method, job.settings) for job in wanted if not has(job)}
    return [job for job in wanted if (job.method, job.settings) not in lacking]


def axes(target: EvalTarget, size: str = "full") -> dict[str, list[Job]]:
    """Guided exploration with one setting varied at a time (Fig. 2 left, Fig. 6), by name."""
    own = size_of(size)
    make = _Maker(target, own, own.sweep)
    found = {
        "noise": _each(make("guided", noise=x, particles=s) for s in (4, 16) for x in NOISES),
        "noise, unguided": _each(
            make("unguided", noise=x, particles=s) for s in (4, 16) for x in NOISES
        ),
        "beta": _each(make("guided", beta=x) for x in BETAS),
        "beta, never resampled": _each(make("guided", beta=x, trigger="never") for x in BETAS),
        "particles": _each(make("guided", particles=s) for s in CLOUDS),
        "resample_below": _each(make("guided", resample_below=x) for x in THRESHOLDS),
        "potential": _each(make("guided", potential=x) for x in POTENTIALS),
        "placement": _each(make("guided", placement=x) for x in PLACEMENTS),
    }
    return {name: _once(some) for name, some in found.items()}


def sweep(target: EvalTarget, size: str = "full") -> list[Job]:
    """Every job of `axes`, each once."""
    return _once(_each(axes(target, size).values()))


def grid(target: EvalTarget, size: str = "full") -> list[Job]:
    """Noise x beta of guided exploration on val: what `choose_settings` chooses from."""
    own = size_of(size)
    make = _Maker(target, own, {target.task: None} if size == "full" else own.sweep)
    return _each(
        make("guided", noise=noise, beta=beta) for noise in GRID["noise"] for beta in GRID["beta"]
    )


def diagnostics(target: EvalTarget, size: str = "full") -> list[Job]:
    """Stability, alignment and entropy with the paper's cloud (Figs. 2, 3 and 5)."""
    own = size_of(size)
    count = own.diagnose.get(target.task, own.diagnose["sudoku"])
    settings = {"particles": 16, "outer_steps": 48, "noises": NOISES, "rooted": own.rooted}
    capped = _capped(DIAGNOSE, settings, target.task, own)
    return jobs(target, DIAGNOSE, capped, limit=count)


@dataclass(frozen=True)
class _Maker:
    """`jobs` for one target and size."""

    target: EvalTarget
    size: Size
    limits: Mapping[str, int | None]
    seeds: int = 1
    folds: int = 1  # more of them are smaller batches, and slower

    def __call__(self, method: str, **settings: Any) -> list[Job]:
        task = self.target.task
        limit = self.limits.get(task, self.limits.get("sudoku"))  # a toy task is a small Sudoku
        own = _capped(method, settings, task, self.size)
        return jobs(self.target, method, own, seeds=self.seeds, folds=self.folds, limit=limit)


def _capped(method: str, settings: dict[str, Any], task: str, size: Size) -> dict[str, Any]:
    """The settings, none of them beyond what the size allows."""
    if not size.most:
        return settings
    if method in PLANNED:
        own = {"particles": size.most["particles"], "outer_steps": size.most["outer_steps"]}
        least = {name: min(own[name], settings.get(name, own[name])) for name in own}
        return {**settings, **least}
    whole = complete(method, settings, task)
    return {n: min(v, size.most[n]) if n in size.most else v for n, v in whole.items()}


def _each(lists: Iterable[Iterable[Job]]) -> list[Job]:
    return [job for some in lists for job in some]


def _once(some: Iterable[Job]) -> list[Job]:
    """Without repetitions, in order of first appearance."""
    return list({job.key: job for job in some}.values())
