"""diagnose: one small run, and everything it says about exploration on a model and its puzzles."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from tiltrm.checks import require_number, require_whole
from tiltrm.diagnose.gather import Gathering
from tiltrm.diagnose.report import Report
from tiltrm.diagnose.stability import Probe, Stability
from tiltrm.diagnose.tube import first_exit
from tiltrm.diagnose.verdict import judge
from tiltrm.diagnose.watching import Watched, watch
from tiltrm.errors import SettingsError
from tiltrm.explore import Exploration
from tiltrm.explore.batching import one_thread_each, workers
from tiltrm.explore.guides import Score, halting
from tiltrm.explore.inputs import checked_inputs, device_of
from tiltrm.explore.keys import derive, puzzle_keys
from tiltrm.explore.search import Progress
from tiltrm.model.base import RecursiveModel, evaluations_per_step, step
from tiltrm.tasks.base import Task

SMALL = Exploration(particles=6, outer_steps=9)  # what a diagnosis runs unless told otherwise
PAPER = Exploration()
NOISES = (0.1, 0.2, 0.3, 0.5, 1.0)
ROOTED = 2  # puzzles whose inner trajectories are looked at
ROLLOUTS = 3
TOGETHER = 64  # puzzles whose results are held at a time; they do not depend on it
TUBE = 1.0  # the alpha that the verdict looks at


def diagnose(
    model: RecursiveModel, tokens: Tensor, labels: Tensor | None = None, *,
    task: Task | None = None, guides: Mapping[str, Score] | None = None,
    settings: Exploration | None = None, noises: Sequence[float] = NOISES, rooted: int = ROOTED,
    seed: int = 0, progress: Progress | None = None,
) -> Report:  # fmt: skip
    """Will guided exploration help here, and which answers may be trusted?

    tokens, labels: (puzzle, cell). The verdict is about the first of `guides` (the halting head
    where none is given) at the noise and beta of `settings`, and never looks at the labels; they
    only add figures. `task` tells which cells are given and whether an answer keeps the rules.
    `rooted` puzzles, evenly spaced, have their stability measured at every noise of `noises` and
    at that of the settings; 0 leaves that out. Everything is summed chunk by chunk.
    `progress(done, of)` counts evaluations. Proved by tests/diagnose/test_run.py.
    """
    settings = settings or SMALL
    _check(settings)
    seed = require_whole("seed", seed)
    require_whole("rooted", rooted, 0)
    for noise in noises:
        require_number("noise", noise)
    tokens, _, labels = checked_inputs(model, tokens, None, labels)
    chosen = dict(guides or {"halting": halting(model)})
    gathering = Gathering(model, settings, list(chosen), task)
    stable = Stability(model, sorted({*noises, settings.noise}), rollouts=ROLLOUTS)
    places = torch.linspace(0, len(tokens) - 1, min(rooted, len(tokens))).long().unique().tolist()
    rooting = 2 * stable.cost() + settings.outer_steps * evaluations_per_step(model)
    per_step = settings.particles * evaluations_per_step(model)
    total = len(places) * rooting + len(tokens) * settings.outer_steps * per_step
    tick = progress or (lambda done, of: None)
    tubes: dict[int, Tensor] = {}  # by puzzle: rollouts, and those that stayed
    found = _root_all(model, tokens[places], stable, settings, seed)
    for number, (place, probes) in enumerate(zip(places, found, strict=True), 1):
        tubes[place] = _count(stable, probes, settings.noise)
        tick(number * rooting, total)
    for first in range(0, len(tokens), TOGETHER):
        part = slice(first, first + TOGETHER)
        done = len(places) * rooting + first * settings.outer_steps * per_step
        _watch(
            model, settings, chosen, gathering, tokens[part],
            None if labels is None else labels[part], _rows(tubes, part), seed,
            lambda steps, _, done=done: tick(done + steps * per_step, total),  # type: ignore[misc]
        )  # fmt: skip
    return _report(gathering, stable, settings, total, next(iter(chosen)))


def _check(settings: Exploration) -> None:
    if settings.particles < 3 or settings.noise <= 0 or settings.beta <= 0:
        raise SettingsError(
            "a diagnosis needs at least 3 particles (one is free of noise) and noise and beta "
            f"above 0, got {settings.particles}, {settings.noise:g} and {settings.beta:g}"
        )


def _rows(tubes: Mapping[int, Tensor], part: slice) -> Tensor:
    """Of every puzzle, zeros where it was not looked at: (puzzle, 2)."""
    nothing = torch.zeros(2, dtype=torch.int64)
    return torch.stack([tubes.get(place, nothing) for place in range(part.start, part.stop)])


def _root_all(
    model: RecursiveModel, puzzles: Tensor, stable: Stability, settings: Exploration, seed: int
) -> Iterator[list[Probe]]:
    """`_root` of every puzzle in turn; on a CPU in as many threads as torch has, one each."""
    work = partial(_root, model, stable=stable, settings=settings, seed=seed)
    if device_of(model, puzzles).type != "cpu":
        yield from map(work, puzzles)
        return
    with one_thread_each() as threads:
        yield from workers(threads).map(work, puzzles)


@torch.no_grad()
def _root(
    model: RecursiveModel, puzzle: Tensor, stable: Stability, settings: Exploration, seed: int
) -> list[Probe]:
    """Probe the deterministic trajectory at its first supervision end and at its last step."""
    puzzle = puzzle.to(device_of(model, puzzle))
    inputs = model.embed(puzzle)
    state, keys = model.start(inputs), derive(puzzle_keys(puzzle[None]).cpu()[0], seed)
    at = {min(model.cycles, settings.outer_steps), settings.outer_steps}
    probes = []
    for n in range(1, settings.outer_steps + 1):
        state = step(model, inputs, state)
        if n in at:
            probes.append(stable.probe(inputs, state, derive(keys, n)))
    return probes


def _count(stable: Stability, probes: Sequence[Probe], noise: float) -> Tensor:
    """Add the probes of one puzzle; (2,) its rollouts at this noise, and those that stayed."""
    rolled = stayed = 0
    for probe in probes:
        stable.add(probe)
        norms = probe.norms[stable.noises.index(noise)]
        rolled += len(norms)
        exits = first_exit(norms, TUBE * math.sqrt(probe.size))
        stayed += int((exits > norms.shape[-1]).sum())
    return torch.tensor([rolled, stayed])


def _watch(
    model: RecursiveModel, settings: Exploration, guides: Mapping[str, Score],
    gathering: Gathering, tokens: Tensor, labels: Tensor | None, tubes: Tensor, seed: int,
    progress: Progress,
) -> None:  # fmt: skip
    """Explore some puzzles and gather what they say; explore may cut them into smaller chunks."""
    taken = 0

    def hand_on(seen: Watched) -> None:
        nonlocal taken
        part = slice(taken, taken + len(seen.answers))
        taken = part.stop
        known = None if labels is None else labels[part].cpu()
        gathering.add(seen, tokens[part].cpu(), known, tubes[part])

    watch(model, tokens, settings, guides, hand_on, seed=seed, progress=progress)


def _report(
    gathering: Gathering, stable: Stability, settings: Exploration, evaluations: int, guide: str
) -> Report:
    better = gathering.studies[guide].suggested_beta()
    found = judge(gathering.sample, settings.noise, settings.beta, stable.survival(TUBE), better)
    figures = {
        "settings": {"guide": guide, "noise": settings.noise, "beta": settings.beta,
                     "particles": settings.particles, "outer_steps": settings.outer_steps},
        "behind_the_verdict": found.figures(),
        "stability": stable.figures(),
        **gathering.figures(),
    }  # fmt: skip
    shortened = (
        f"shortened: {settings.particles} particles (1 free of noise, none resampled) for "
        f"{settings.outer_steps} outer steps where the paper has {PAPER.particles} for "
        f"{PAPER.outer_steps}; stability from {next(iter(stable.tubes.values())).states} states"
    )
    return Report(
        found.verdict, found.reasons, found.suggested, found.certainty, figures,
        gathering.sample.puzzles, evaluations, shortened,
    )  # fmt: skip
