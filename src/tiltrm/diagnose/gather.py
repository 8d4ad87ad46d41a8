"""The sums of a diagnosis, fed with watched puzzles chunk by chunk."""

from typing import Any

import torch
from torch import Tensor

from tiltrm.diagnose.alignment import won_pairs
from tiltrm.diagnose.certainty import Bootstrap
from tiltrm.diagnose.entropy import Uncertainty, along_path
from tiltrm.diagnose.study import Study
from tiltrm.diagnose.verdict import Signals
from tiltrm.diagnose.watching import Watched
from tiltrm.explore import Exploration
from tiltrm.explore.select import Candidates, unguided_map, weighted_map
from tiltrm.explore.weights import normalise
from tiltrm.model.base import RecursiveModel
from tiltrm.tasks.base import Task

METHODS = ("deterministic", "unguided", "guided", "oracle")


class Gathering:
    """Everything about the clouds. The first guide is the one that the verdict is about."""

    def __init__(
        self, model: RecursiveModel, settings: Exploration, guides: list[str], task: Task | None
    ) -> None:
        self.model, self.settings, self.task = model, settings, task
        self.studies = {name: Study(settings.beta, settings.outer_steps) for name in guides}
        self.uncertainty = Uncertainty()
        self.sample = Bootstrap()
        self.solved: dict[str, int] = {}
        self.labelled = 0

    def add(self, seen: Watched, tokens: Tensor, labels: Tensor | None, tube: Tensor) -> None:
        """tokens, labels: (puzzle, cell); tube: (puzzle, 2), rollouts and those that stayed."""
        last = seen.answers[:, -1]  # (puzzle, particle, cell)
        right = None if labels is None else (last == labels[:, None]).all(-1)
        solving = None if right is None else right[:, 1:]
        moved = [
            study.add(seen.scores[name][..., 1:], last[:, 1:], solving)
            for name, study in self.studies.items()
        ]
        score = next(iter(seen.scores.values()))  # (puzzle, step, particle)
        self.sample.add(seen.keys, self._signals(seen, tokens, moved[0], score, tube).vector())
        log_weights = normalise((self.settings.beta * score.double()).cumsum(1))[0]
        terminal, path = along_path(seen.answers, log_weights, self.model.vocabulary)
        final = Candidates(last, log_weights[:, -1], score[:, -1])
        answers = _pick(last, weighted_map(final))
        free = torch.ones_like(tokens, dtype=torch.bool)
        if self.task is not None:
            free = ~self.task.given(tokens)
        self.uncertainty.add(terminal, path, answers, free, labels)
        if labels is not None and right is not None:
            noisy = Candidates(last[:, 1:], torch.zeros_like(score[:, -1, 1:]), score[:, -1, 1:])
            self._count(right[:, 0], _pick(noisy.answers, unguided_map(noisy)), answers, labels,
                        right.any(-1))  # fmt: skip

    def _signals(
        self, seen: Watched, tokens: Tensor, moved: Tensor, score: Tensor, tube: Tensor
    ) -> Signals:
        """What these puzzles say of the verdict. No label is in reach here."""
        quiet = seen.answers[:, :, 0]  # the noise-free trajectory: (puzzle, step, cell)
        window = quiet[:, -self.model.cycles :]
        settled = (window == window[:, -1:]).flatten(1).all(-1)
        if window.shape[1] < 2:
            settled = torch.zeros_like(settled)
        same = (seen.answers[:, -1, 1:] == quiet[:, -1, None]).all(-1).double().mean(-1)
        won = pairs = torch.zeros(len(tokens)).double()
        if self.task is not None:
            keeps = self.task.violations(tokens[:, None], seen.answers[:, -1, 1:]) == 0
            won, pairs = won_pairs(score[:, -1, 1:], keeps)
        recovered = torch.where(settled, same, 0.0)
        return Signals(moved, settled, recovered, tube[:, 0], tube[:, 1], pairs, won)

    def _count(
        self, quiet: Tensor, unguided: Tensor, guided: Tensor, labels: Tensor, oracle: Tensor
    ) -> None:
        exact = [(answers == labels).all(-1) for answers in (unguided, guided)]
        for name, hit in zip(METHODS, (quiet, *exact, oracle), strict=True):
            self.solved[name] = self.solved.get(name, 0) + int(hit.sum())
        self.labelled += len(labels)

    def figures(self) -> dict[str, Any]:
        """Alignment by guide, entropy, and with labels accuracy."""
        found: dict[str, Any] = {
            "alignment": {name: study.figures() for name, study in self.studies.items()},
            "entropy": self.uncertainty.figures(),
        }
        if self.labelled:
            found["accuracy"] = {name: hits / self.labelled for name, hits in self.solved.items()}
        return found


def _pick(answers: Tensor, particle: Tensor) -> Tensor:
    """The answer of one particle of each cloud: (puzzle, particle, cell) -> (puzzle, cell)."""
    return answers[torch.arange(len(answers)), particle]
