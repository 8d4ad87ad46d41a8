"""The clouds of a diagnosis: an exploration without tilt is recorded, then summed by chunks.

The first particle of each cloud has no noise, so it is the deterministic trajectory; the others
are independent draws of the proposal. Nothing is resampled, so a particle has one outcome, and
any guide at any beta can be judged on the same run. Proved by tests/diagnose/test_clouds.py.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tiltrm.diagnose.alignment import Alignment
from tiltrm.diagnose.entropy import Uncertainty, along_path
from tiltrm.diagnose.verdict import Bootstrap, Signals
from tiltrm.explore import Exploration, NoiseFreeFirst, everywhere, explore
from tiltrm.explore.cloud import StepInfo
from tiltrm.explore.guides import Score
from tiltrm.explore.search import Progress
from tiltrm.explore.select import Candidates, unguided_map, weighted_map
from tiltrm.explore.weights import normalise
from tiltrm.model.base import RecursiveModel
from tiltrm.statistics import won_pairs
from tiltrm.tasks.base import Task
from tiltrm.tasks.published import has_rules


class CloudRecord(NamedTuple):
    """Every step of the clouds of a few puzzles, on the CPU."""

    scores: dict[str, Tensor]  # by guide: (puzzle, step, particle); -inf for a dead particle
    answers: Tensor  # (puzzle, step, particle, cell) uint8
    keys: Tensor  # (puzzle,): the root of each puzzle's randomness
    halted: Tensor  # (puzzle,) bool: some halt logit was above 0


class _Recorder:
    """Collects the steps of one chunk, and passes the record to `consume` after the last one."""

    def __init__(self, guides: Mapping[str, Score], consume: Callable[[CloudRecord], None]) -> None:
        self.guides, self.consume = guides, consume
        self.steps: list[tuple[dict[str, Tensor], Tensor]] = []
        self.halted: Tensor | None = None

    def __call__(self, info: StepInfo) -> None:
        context = info.context
        if context.clock.step == 1:
            self.steps, self.halted = (
                [],
                None,
            )  # a chunk that ran out of memory starts again, smaller
        scores = {n: g(context.state, context).float().cpu() for n, g in self.guides.items()}
        scores = {n: torch.where(torch.isfinite(s), s, -torch.inf) for n, s in scores.items()}
        self.steps.append((scores, context.answers.cpu()))
        now = (context.halt_logit() > 0).any(-1).cpu()
        self.halted = now if self.halted is None else self.halted | now
        if context.clock.step == context.clock.steps:
            by_guide = {n: torch.stack([s[n] for s, _ in self.steps], 1) for n in self.guides}
            answers = torch.stack([a for _, a in self.steps], 1)
            keys = context.problem.keys.cpu()
            self.consume(CloudRecord(by_guide, answers, keys, self.halted))


def record_clouds(
    model: RecursiveModel, tokens: Tensor, settings: Exploration, guides: Mapping[str, Score],
    consume: Callable[[CloudRecord], None], *, seed: int, progress: Progress | None = None,
) -> None:  # fmt: skip
    """Explore without a tilt; `consume` gets the puzzles chunk by chunk, in their order."""
    untilted = Exploration(
        particles=settings.particles, noise=settings.noise, outer_steps=settings.outer_steps,
        beta=0.0, trigger="never", potential="terminal", entropy_every=0, on_degenerate="abstain",
        placement=NoiseFreeFirst(everywhere),
    )  # fmt: skip
    explore(model, tokens, untilted, guide=next(iter(guides.values())), seed=seed,
            watch=_Recorder(guides, consume), progress=progress)  # fmt: skip


class CloudStatistics:
    """Sums over the recorded clouds. The verdict is about the first guide."""

    def __init__(
        self, model: RecursiveModel, settings: Exploration, guides: list[str], task: Task | None
    ) -> None:
        self.model, self.settings, self.task = model, settings, task
        self.alignments = {name: Alignment(settings.beta) for name in guides}
        self.uncertainty = Uncertainty()
        self.bootstrap = Bootstrap()
        self.solved: dict[str, int] = {}  # by method, of the labelled puzzles
        self.labelled = 0

    def add(self, record: CloudRecord, tokens: Tensor, labels: Tensor | None, tube: Tensor) -> None:
        """tokens, labels: (puzzle, cell); tube: (puzzle, 2), rollouts and rollouts that stayed."""
        last = record.answers[:, -1]  # (puzzle, particle, cell)
        right = None if labels is None else (last == labels[:, None]).all(-1)
        noisy_right = None if right is None else right[:, 1:]
        moved = [
            alignment.add(record.scores[name][..., 1:], last[:, 1:], noisy_right)
            for name, alignment in self.alignments.items()
        ]
        score = next(iter(record.scores.values()))  # (puzzle, step, particle)
        signals = self._signals(record, tokens, moved[0], score, tube)
        self.bootstrap.add(record.keys, signals.vector())
        log_weights = normalise((self.settings.beta * score.double()).cumsum(1))[0]
        terminal, path = along_path(record.answers, log_weights, self.model.vocabulary)
        guided = _pick(last, weighted_map(Candidates(last, log_weights[:, -1], score[:, -1])))
        free = torch.ones_like(tokens, dtype=torch.bool)
        if self.task is not None:
            free = ~self.task.given(tokens)
        self.uncertainty.add(terminal, path, guided, free, labels)
        if labels is not None and right is not None:
            noisy = Candidates(last[:, 1:], torch.zeros_like(score[:, -1, 1:]), score[:, -1, 1:])
            unguided = _pick(noisy.answers, unguided_map(noisy))
            self._count(
                deterministic=right[:, 0], unguided=(unguided == labels).all(-1),
                guided=(guided == labels).all(-1), oracle=right.any(-1),
            )  # fmt: skip

    def _signals(
        self, record: CloudRecord, tokens: Tensor, moved: Tensor, score: Tensor, tube: Tensor
    ) -> Signals:
        """The evidence of these puzzles for the verdict. It does not see any label."""
        quiet = record.answers[:, :, 0]  # the noise-free trajectory: (puzzle, step, cell)
        window = quiet[:, -self.model.cycles :]
        settled = (window == window[:, -1:]).flatten(1).all(-1)
        if window.shape[1] < 2:
            settled = torch.zeros_like(settled)
        same = (record.answers[:, -1, 1:] == quiet[:, -1, None]).all(-1).double().mean(-1)
        won = pairs = checked = torch.zeros(len(tokens)).double()
        any_valid = borrowed = torch.zeros(len(tokens), dtype=torch.bool)
        if self.task is not None and has_rules(self.task):
            valid = self.task.violations(tokens[:, None], record.answers[:, -1]) == 0
            won, pairs = won_pairs(score[:, -1, 1:], valid[:, 1:])
            checked, any_valid = torch.ones(len(tokens)), valid.any(-1)
            borrowed = _valid_elsewhere(self.task, tokens, record.answers[:, -1])
        recovered = torch.where(settled, same, 0.0)
        return Signals(
            moved, settled, recovered, tube[:, 0], tube[:, 1], pairs, won, checked, any_valid,
            borrowed, record.halted,
        )  # fmt: skip

    def _count(self, **right: Tensor) -> None:
        """Per method, which puzzles it answered exactly: (puzzle,) bool each."""
        for name, hit in right.items():
            self.solved[name] = self.solved.get(name, 0) + int(hit.sum())
        self.labelled += len(right["oracle"])

    def figures(self) -> dict[str, Any]:
        """Alignment by guide, entropy, and with labels accuracy."""
        found: dict[str, Any] = {
            "alignment": {name: one.figures() for name, one in self.alignments.items()},
            "entropy": self.uncertainty.figures(),
        }
        if self.labelled:
            found["accuracy"] = {name: hits / self.labelled for name, hits in self.solved.items()}
        return found


def _valid_elsewhere(task: Task, tokens: Tensor, answers: Tensor) -> Tensor:
    """Whether an answer of the cloud keeps the rules of the chunk's next puzzle: (puzzle,) bool.

    A puzzle with the same clues is no other puzzle, nor is one without clues.
    """
    other = tokens.roll(-1, 0)
    clues, others = task.given(tokens), task.given(other)
    differ = ((clues != others) | ((tokens != other) & clues)).any(-1)
    return (task.violations(other[:, None], answers) == 0).any(-1) & differ


def _pick(answers: Tensor, particle: Tensor) -> Tensor:
    """The answer of one particle of each cloud: (puzzle, particle, cell) -> (puzzle, cell)."""
    return answers[torch.arange(len(answers)), particle]
