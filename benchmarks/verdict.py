"""Is the label-free verdict right? Predictions first, then the effect of guidance, on new puzzles.

`python -m benchmarks.verdict --data VAL.csv.gz` asks `tiltrm.diagnose` about several settings of
noise and guide on the first puzzles without their labels and prints the verdicts. Then it runs
Algorithm 1 in each setting on the puzzles that follow, and scores the verdicts: guidance helped
if it put more weight on right trajectories, whether or not the vote was right before.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from torch import Tensor

from tiltrm.data import Puzzles, read
from tiltrm.device import choose
from tiltrm.diagnose import FLAT, HELP, SMALL, UNSTABLE, diagnose
from tiltrm.diagnose.alignment import mass
from tiltrm.explore import Exploration, explore
from tiltrm.explore.guides import Score
from tiltrm.model import load
from tiltrm.model.base import RecursiveModel
from tiltrm.solving import parse_guide

SURE = 2.0  # standard errors
WORTH = (
    0.02  # mass; the most that the paper's bound allows on its Maze, which guidance did not help
)


class Setting(NamedTuple):
    """One guide at one noise and beta."""

    guide: str
    noise: float
    beta: float = 0.25

    def __str__(self) -> str:
        return f"{self.guide:14} noise {self.noise:<4g} beta {self.beta:<5g}"


SETTINGS = (
    Setting("halting", 0.1), Setting("halting", 0.3), Setting("halting", 0.5),
    Setting("halting", 1.0), Setting("halting", 1.5), Setting("confidence", 0.3),
    Setting("residual", 0.3), Setting("0.02*halting", 0.3), Setting("-1*halting", 0.3),
)  # fmt: skip


Right = Callable[[Tensor], Tensor]  # answers (puzzle, ..., cell) -> (puzzle, ...) bool


def equal_to(labels: Tensor) -> Right:
    """Answers are right if they equal the labels (puzzle, cell)."""
    known = labels.cpu()

    def right(answers: Tensor) -> Tensor:
        shape = (len(known), *(1,) * (answers.dim() - 2), -1)
        return (answers == known.view(shape)).all(-1)

    return right


class ScoredRun(NamedTuple):
    """One exploration, scored: (puzzle,)."""

    solved: Tensor  # 1 if its answer is right
    mass: Tensor  # the weight of the right particles
    oracle: Tensor  # 1 if some particle is right


class GuidanceEffect(NamedTuple):
    """Means over puzzles, all with the same noise, particles and steps.

    Guidance is judged by mass, since the vote can gain without it: any guide breaks ties.
    """

    deterministic: float  # shares solved exactly
    unguided: float
    guided: float
    gained: float = 0.0  # mass on right particles, guided minus unguided
    error: float = 0.0  # its standard error
    oracle: float = 0.0  # share with a right particle in the guided cloud

    @property
    def verdict(self) -> str:
        """The verdict that would have been right. The noise is too high if it lost half of the
        puzzles of the noise-free model and guidance did not recover them."""
        if self.unguided < self.deterministic / 2 and self.guided < self.deterministic:
            return UNSTABLE
        return HELP if self.gained > max(WORTH, SURE * self.error) else FLAT

    @staticmethod
    def of(deterministic: ScoredRun, unguided: ScoredRun, guided: ScoredRun) -> "GuidanceEffect":
        """The effect from three runs on the same puzzles."""
        gain = guided.mass - unguided.mass
        return GuidanceEffect(
            deterministic=float(deterministic.solved.mean()),
            unguided=float(unguided.solved.mean()),
            guided=float(guided.solved.mean()),
            gained=float(gain.mean()),
            error=float(gain.std()) / len(gain) ** 0.5,
            oracle=float(guided.oracle.mean()),
        )


def scored_run(
    model: RecursiveModel, tokens: Tensor, right: Right, settings: Exploration,
    guide: Score | None = None, seed: int = 0,
) -> ScoredRun:  # fmt: skip
    """Run Algorithm 1 with these settings."""
    quick = replace(settings, entropy_every=0, on_degenerate="abstain")
    found = explore(model, tokens, quick, guide=guide, seed=seed)
    succeed = right(found.particle_answers)
    return ScoredRun(
        right(found.answers).double(), mass(found.log_weights.double(), succeed),
        succeed.any(-1).double(),
    )  # fmt: skip


class GuidanceExperiment:
    """Measures the effect of guidance on some puzzles; runs that settings share run once."""

    def __init__(self, model: RecursiveModel, tokens: Tensor, right: Right) -> None:
        self.model, self.tokens, self.right = model, tokens, right
        self.known: dict[Exploration, ScoredRun] = {}

    def __call__(self, settings: Exploration, guide: Score | None = None) -> GuidanceEffect:
        """Run these settings, the same without tilt, and one trajectory without noise."""
        untilted = replace(settings, beta=0.0, trigger="never", potential="terminal")
        quiet, even = self._once(replace(untilted, particles=1, noise=0.0)), self._once(untilted)
        guided = scored_run(self.model, self.tokens, self.right, settings, guide)
        return GuidanceEffect.of(quiet, even, guided)

    def _once(self, settings: Exploration) -> ScoredRun:
        if settings not in self.known:
            self.known[settings] = scored_run(self.model, self.tokens, self.right, settings)
        return self.known[settings]


def share_right(predicted: Sequence[str], effects: Sequence[GuidanceEffect]) -> float:
    """Share of the predicted verdicts that were right."""
    pairs = zip(predicted, effects, strict=True)
    return sum(verdict == effect.verdict for verdict, effect in pairs) / max(1, len(predicted))


def predict(model: RecursiveModel, puzzles: Puzzles, setting: Setting) -> tuple[str, float]:
    """The verdict without labels, and its certainty."""
    guide = parse_guide(setting.guide, model, puzzles.task)
    report = diagnose(
        model, puzzles.questions, task=puzzles.task, guides={setting.guide: guide},
        settings=replace(SMALL, noise=setting.noise, beta=setting.beta),
    )  # fmt: skip
    return report.verdict, report.certainty


def main() -> None:
    """Print all predictions, then all effects, then the score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="sudoku-extreme")
    parser.add_argument("--data", required=True)
    parser.add_argument("--ask", type=int, default=32, help="puzzles without labels")
    parser.add_argument("--puzzles", type=int, default=400, help="puzzles that follow them")
    parser.add_argument("--particles", type=int, default=16)
    parser.add_argument("--outer-steps", type=int, default=48)
    parser.add_argument("--device", default="auto")
    arguments = parser.parse_args()
    model = load(arguments.model, device=choose(arguments.device))
    puzzles = read(arguments.data)
    asked = puzzles.take(slice(0, arguments.ask))
    others = puzzles.take(slice(arguments.ask, arguments.ask + arguments.puzzles))
    predicted = []
    for setting in SETTINGS:
        verdict, certainty = predict(model, asked, setting)
        predicted.append(verdict)
        print(f"{setting}: {verdict} (certainty {certainty:.2f})", flush=True)
    effects = []
    experiment = GuidanceExperiment(model, others.questions, equal_to(others.labels()))
    usual = Exploration(particles=arguments.particles, outer_steps=arguments.outer_steps)
    print(f"\n{'':34} deterministic unguided guided, mass gained (%), {len(others)} puzzles")
    for setting, verdict in zip(SETTINGS, predicted, strict=True):
        guide = parse_guide(setting.guide, model, others.task)
        found = experiment(replace(usual, noise=setting.noise, beta=setting.beta), guide)
        effects.append(found)
        shares = " ".join(f"{100 * share:8.1f}" for share in found[:4])
        right = "right" if found.verdict == verdict else f"wrong: {found.verdict}"
        print(f"{setting}: {shares} +- {100 * found.error:.1f}  {right}", flush=True)
    print(
        f"\n{100 * share_right(predicted, effects):.0f} % of {len(predicted)} verdicts were right"
    )


if __name__ == "__main__":
    main()
