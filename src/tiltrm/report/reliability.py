"""A picture of reliability: stated confidence against the share of right answers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tiltrm.errors import DataError
from tiltrm.evaluate.reliability import Reliability
from tiltrm.report.drawing import figure_style

LEAST = 1e-4  # doubt below this is drawn here


def draw_reliability(found: Sequence[Reliability], path: Path) -> None:
    """Write the picture; its format is that of the file's name (svg, png, pdf).

    The axes show doubt, 1 - p, in logarithms: most answers are nearly certain.
    """
    with figure_style() as new:
        figure = new(5.2, 4.6)
        axes = figure.add_subplot()
        axes.plot([LEAST, 1.0], [LEAST, 1.0], color="0.7", linewidth=1, label="as promised")
        for one in found:
            doubt = [max(LEAST, 1 - part.expected) for part in one.bins]
            wrong = [max(LEAST, 1 - part.observed) for part in one.bins]
            most = max((part.answers for part in one.bins), default=1)
            sizes = [12 + 40 * part.answers / most for part in one.bins]
            axes.scatter(doubt, wrong, s=sizes, label=f"{one.title} ({one.split})")
        axes.set(
            xscale="log", yscale="log", xlabel="stated: 1 - confidence",
            ylabel="observed: share of wrong answers",
        )  # fmt: skip
        axes.legend(fontsize=8)
        save_figure(figure, path)


def save_figure(figure: Any, path: Path) -> None:
    """Write a matplotlib figure; DataError where the file cannot be written."""
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path}: expected a picture's name (.svg, .png) in a folder that exists, got: {error}"
        ) from error
