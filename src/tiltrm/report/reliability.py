"""A picture of reliability: stated confidence against the share of right answers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tiltrm.errors import DataError, SettingsError
from tiltrm.evaluate.reliability import Reliability


def draw_reliability(found: Sequence[Reliability], path: Path) -> None:
    """Write the picture; its format is that of the file's name (svg, png, pdf).

    The axes show doubt, 1 - p, in logarithms: most answers are nearly certain.
    """
    figure = figure_of(found)
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path}: expected a picture's name (.svg, .png) in a folder that exists, got: {error}"
        ) from error


def figure_of(found: Sequence[Reliability]) -> Any:
    """The matplotlib figure."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise SettingsError(
            "a picture needs matplotlib, which is not here; pip install 'tiltrm[report]'"
        ) from error
    figure = Figure(figsize=(5.2, 4.6), layout="constrained")
    axes = figure.add_subplot()
    least = 1e-4
    axes.plot([least, 1.0], [least, 1.0], color="0.7", linewidth=1, label="as promised")
    for one in found:
        points = [
            (max(least, 1 - part.expected), max(least, 1 - part.observed), part.answers)
            for part in one.bins
        ]
        if points:
            x, y, answers = zip(*points, strict=True)
            sizes = [12 + 40 * count / max(answers) for count in answers]
            axes.scatter(x, y, s=sizes, label=f"{one.title} ({one.split})")
    axes.set(
        xscale="log", yscale="log", xlabel="stated: 1 - confidence",
        ylabel="observed: share of wrong answers",
    )  # fmt: skip
    axes.legend(fontsize=8)
    return figure
