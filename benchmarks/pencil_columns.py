"""Table 1's columns by type of pencil puzzle, with the label-free verdict said before."""

from collections.abc import Iterator, Mapping

from benchmarks.pencil_results import TypeColumns
from benchmarks.verdict import GuidanceExperiment, Setting, predict
from tiltrm.cli.methods import parse_method
from tiltrm.data import Puzzles
from tiltrm.errors import SettingsError
from tiltrm.evaluate.measure import Judge
from tiltrm.evaluate.options import complete
from tiltrm.evaluate.peers import exploration
from tiltrm.explore import Exploration
from tiltrm.model.build import Model
from tiltrm.solving import parse_guide
from tiltrm.tasks.pencil import PENCIL

GUIDE = "halting"
Said = tuple[str, float, int]  # verdict, its certainty, puzzles that it was computed on


def guided_settings(text: str) -> Exploration:
    """'guided:particles=16' -> its settings on pencil puzzles."""
    name, own = parse_method(text)
    if name != "guided":
        raise SettingsError(f"--columns compares guided with the others, got {name!r}")
    return exploration(name, complete(name, own, PENCIL.name))


def say_verdicts(
    model: Model, asked: Mapping[str, Puzzles], settings: Exploration
) -> Iterator[tuple[str, Said]]:
    """The verdict on each type, without labels; printed before anything is measured."""
    setting = Setting(GUIDE, settings.noise, settings.beta)
    print(f"\nverdicts at noise {settings.noise:g} and beta {settings.beta:g}:")
    for name, puzzles in asked.items():
        verdict, certainty = predict(model, puzzles, setting)
        print(f"{name}: {verdict} (certainty {certainty:.2f}, {len(puzzles)} puzzles)", flush=True)
        yield name, (verdict, certainty, len(puzzles))


def measure_columns(
    model: Model, puzzles: Mapping[str, Puzzles], settings: Exploration, said: Mapping[str, Said]
) -> Iterator[TypeColumns]:
    """The effect of guidance on each type that a verdict was said about."""
    guide = parse_guide(GUIDE, model, PENCIL)
    for name, own in puzzles.items():
        if name in said:
            right = Judge(PENCIL, own.questions, own.answers).right
            effect = GuidanceExperiment(model, own.questions, right)(settings, guide)
            yield TypeColumns(name, len(own), *said[name], effect)
