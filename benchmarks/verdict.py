"""Is the label-free verdict right? Predictions first, then what guidance does, on other puzzles.

`python -m benchmarks.verdict --data VAL.csv.gz` asks `tiltrm.diagnose` about several settings of
noise and guide on the first puzzles without their labels, writes the verdicts down, then runs
Algorithm 1 in each setting on the puzzles that follow, and scores the verdicts: guidance helped
where it put more weight on right trajectories, whether or not the vote was right before.
"""

import argparse
from dataclasses import replace
from typing import NamedTuple

from tiltrm.data import Puzzles, read
from tiltrm.device import choose
from tiltrm.diagnose import diagnose
from tiltrm.diagnose.scoring import Scorer, hits
from tiltrm.explore import Exploration
from tiltrm.model import load
from tiltrm.model.base import RecursiveModel
from tiltrm.solving import parse_guide


class Setting(NamedTuple):
    """What is asked about."""

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


def predicted(model: RecursiveModel, puzzles: Puzzles, setting: Setting) -> tuple[str, float]:
    """The verdict without labels, and its certainty."""
    guide = parse_guide(setting.guide, model, puzzles.task)
    report = diagnose(
        model, puzzles.questions, task=puzzles.task, guides={setting.guide: guide},
        settings=Exploration(particles=6, outer_steps=9, noise=setting.noise, beta=setting.beta),
    )  # fmt: skip
    return report.verdict, report.certainty


def main() -> None:
    """All predictions, then all outcomes, then the score."""
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
    said = []
    for setting in SETTINGS:
        verdict, certainty = predicted(model, asked, setting)
        said.append(verdict)
        print(f"{setting}: {verdict} (certainty {certainty:.2f})", flush=True)
    outcomes = []
    score = Scorer(model, others.questions, others.labels())
    usual = Exploration(particles=arguments.particles, outer_steps=arguments.outer_steps)
    print(f"\n{'':34} deterministic unguided guided, mass gained (%), {len(others)} puzzles")
    for setting, verdict in zip(SETTINGS, said, strict=True):
        guide = parse_guide(setting.guide, model, others.task)
        found = score(replace(usual, noise=setting.noise, beta=setting.beta), guide)
        outcomes.append(found)
        shares = " ".join(f"{100 * share:8.1f}" for share in found[:4])
        right = "right" if found.verdict == verdict else f"wrong: {found.verdict}"
        print(f"{setting}: {shares} +- {100 * found.error:.1f}  {right}", flush=True)
    print(f"\n{100 * hits(said, outcomes):.0f} % of {len(said)} verdicts came true")


if __name__ == "__main__":
    main()
