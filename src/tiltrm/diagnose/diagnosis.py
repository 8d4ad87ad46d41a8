"""diagnose: one small run that shows whether exploration will help a model on given puzzles."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from tiltrm.checks import require_number, require_whole
from tiltrm.diagnose.clouds import CloudRecord, CloudStatistics, record_clouds
from tiltrm.diagnose.report import DiagnosisReport
from tiltrm.diagnose.stability import Probe, Stability, first_exit
from tiltrm.diagnose.verdict import judge
from tiltrm.errors import SettingsError
from tiltrm.explore import Exploration
from tiltrm.explore.batching import one_thread_each, workers
from tiltrm.explore.guides import Score, halting
from tiltrm.explore.inputs import checked_inputs, device_of
from tiltrm.explore.keys import derive, puzzle_keys
from tiltrm.explore.search import Progress
from tiltrm.model.base import RecursiveModel, evaluations_per_step, step
from tiltrm.solving.tidy import with_tidy_answers
from tiltrm.tasks.base import Task

SMALL = Exploration(particles=6, outer_steps=9)  # the default settings of a diagnosis
PAPER = Exploration()
NOISES = (0.1, 0.2, 0.3, 0.5, 1.0)
ROOTED = 2  # puzzles whose stability is measured
ROLLOUTS = 3
CHUNK = 64  # puzzles whose results are held at a time; results do not depend on it
VERDICT_ALPHA = 1.0  # the verdict uses the tube of this alpha


def diagnose(
    model: RecursiveModel, tokens: Tensor, labels: Tensor | None = None, *,
    task: Task | None = None, guides: Mapping[str, Score] | None = None,
    settings: Exploration | None = None, noises: Sequence[float] = NOISES, rooted: int = ROOTED,
    seed: int = 0, progress: Progress | None = None,
) -> DiagnosisReport:  # fmt: skip
    """Will guided exploration help here, and which answers can be trusted?

    The verdict is about the first guide at the noise and beta of `settings`, and never uses the
    labels. Memory does not grow with the number of puzzles.
    Proved by tests/diagnose/test_diagnosis.py.

    Args:
        tokens: The puzzles, (puzzle, cell).
        labels: Their answers, (puzzle, cell). They add figures and leave the verdict as it is.
        task: Tells which cells are given and whether an answer is valid.
        guides: Guides by name, all scored on the same run; the halting head by default.
        settings: At least 3 particles, noise and beta above 0; `SMALL` by default.
        noises: Stability is measured at each of them, and at the noise of the settings.
        rooted: Number of puzzles, evenly spaced, whose stability is measured. 0 leaves it out.
        progress: Called as `progress(done, of)`, counted in evaluations.
    """
    settings = settings or SMALL
    _check(settings)
    seed = require_whole("seed", seed)
    require_whole("rooted", rooted, 0)
    for noise in noises:
        require_number("noise", noise)
    model = with_tidy_answers(model, task)
    tokens, _, labels = checked_inputs(model, tokens, None, labels)
    guides = dict(guides or {"halting": halting(model)})
    stability = Stability(model, sorted({*noises, settings.noise}), rollouts=ROLLOUTS)
    places = torch.linspace(0, len(tokens) - 1, min(rooted, len(tokens))).long().unique().tolist()
    per_probe, per_step = _unit_costs(model, stability, settings)
    total = len(places) * per_probe + len(tokens) * settings.outer_steps * per_step
    tick = progress or (lambda done, of: None)

    tubes = torch.zeros(len(tokens), 2, dtype=torch.int64)  # rollouts, and rollouts that stayed
    found = _probe_all(model, tokens[places], stability, settings, seed)
    for number, (place, probes) in enumerate(zip(places, found, strict=True), 1):
        tubes[place] = _add_probes(stability, probes, settings.noise)
        tick(number * per_probe, total)

    statistics = CloudStatistics(model, settings, list(guides), task)
    taken = 0  # puzzles consumed; `explore` may cut a chunk into smaller ones

    def consume(record: CloudRecord) -> None:
        nonlocal taken
        part = slice(taken, taken + len(record.answers))
        taken = part.stop
        known = None if labels is None else labels[part].cpu()
        statistics.add(record, tokens[part].cpu(), known, tubes[part])

    for first in range(0, len(tokens), CHUNK):
        done = len(places) * per_probe + first * settings.outer_steps * per_step
        record_clouds(
            model, tokens[first : first + CHUNK], settings, guides, consume, seed=seed,
            progress=lambda steps, _, done=done: tick(done + steps * per_step, total),  # type: ignore[misc]
        )  # fmt: skip
    return _report(statistics, stability, settings, total, next(iter(guides)))


def planned_evaluations(
    model: RecursiveModel, puzzles: int, settings: Exploration, noises: Sequence[float] = NOISES,
    rooted: int = ROOTED,
) -> int:  # fmt: skip
    """The evaluations that `diagnose` takes for so many puzzles."""
    stability = Stability(model, sorted({*noises, settings.noise}), rollouts=ROLLOUTS)
    per_probe, per_step = _unit_costs(model, stability, settings)
    return min(rooted, puzzles) * per_probe + puzzles * settings.outer_steps * per_step


def _unit_costs(
    model: RecursiveModel, stability: Stability, settings: Exploration
) -> tuple[int, int]:
    """Evaluations of the probes of one puzzle, and of one outer step of its cloud."""
    per_probe = 2 * stability.cost() + settings.outer_steps * evaluations_per_step(model)
    return per_probe, settings.particles * evaluations_per_step(model)


def _check(settings: Exploration) -> None:
    if settings.particles < 3 or settings.noise <= 0 or settings.beta <= 0:
        raise SettingsError(
            "a diagnosis needs at least 3 particles (one has no noise) and noise and beta above 0, "
            f"got {settings.particles}, {settings.noise:g} and {settings.beta:g}"
        )


def _probe_all(
    model: RecursiveModel, puzzles: Tensor, stability: Stability, settings: Exploration, seed: int
) -> Iterator[list[Probe]]:
    """`_probe_puzzle` for every puzzle in turn; on a CPU in torch's number of threads, one each."""
    work = partial(_probe_puzzle, model, stability=stability, settings=settings, seed=seed)
    if device_of(model, puzzles).type != "cpu":
        yield from map(work, puzzles)
        return
    with one_thread_each() as threads:
        yield from (map if threads == 1 else workers(threads).map)(work, puzzles)


@torch.no_grad()
def _probe_puzzle(
    model: RecursiveModel, puzzle: Tensor, stability: Stability, settings: Exploration, seed: int
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
            probes.append(stability.probe(inputs, state, derive(keys, n)))
    return probes


def _add_probes(stability: Stability, probes: Sequence[Probe], noise: float) -> Tensor:
    """Add the probes of one puzzle; (2,) its rollouts at this noise, and those that stayed."""
    rolled = stayed = 0
    for probe in probes:
        stability.add(probe)
        norms = probe.norms[stability.noises.index(noise)]
        rolled += len(norms)
        exits = first_exit(norms, VERDICT_ALPHA * math.sqrt(probe.size))
        stayed += int((exits > norms.shape[-1]).sum())
    return torch.tensor([rolled, stayed])


def _report(
    statistics: CloudStatistics, stability: Stability, settings: Exploration, evaluations: int,
    guide: str,
) -> DiagnosisReport:  # fmt: skip
    found = judge(
        statistics.bootstrap, settings.noise, settings.beta, stability.survival(VERDICT_ALPHA),
        statistics.alignments[guide].suggested_beta(),
    )  # fmt: skip
    figures = {
        "settings": {"guide": guide, "noise": settings.noise, "beta": settings.beta,
                     "particles": settings.particles, "outer_steps": settings.outer_steps},
        "behind_the_verdict": found.figures(),
        "stability": stability.figures(),
        **statistics.figures(),
    }  # fmt: skip
    shortened = (
        f"shortened: {settings.particles} particles (1 free of noise, none resampled) for "
        f"{settings.outer_steps} outer steps where the paper has {PAPER.particles} for "
        f"{PAPER.outer_steps}; stability from {next(iter(stability.tubes.values())).states} states"
    )
    return DiagnosisReport(
        found.verdict, found.reasons, found.suggested, found.certainty, figures,
        statistics.bootstrap.puzzles, evaluations, shortened,
    )  # fmt: skip
