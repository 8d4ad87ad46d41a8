"""A picture of a tuning run: the frontier of plans, with the chosen one marked."""

from pathlib import Path

from tiltrm.errors import DataError, SettingsError
from tiltrm.solving.tune import Tuning


def draw_frontier(found: Tuning, path: Path) -> None:
    """Write the picture; its format is that of the file's name (svg, png, pdf)."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise SettingsError(
            "a picture needs matplotlib, which is not here; pip install 'tiltrm[report]'"
        ) from error
    figure = Figure(figsize=(6.0, 4.2), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(
        [p.evaluations for p in found.frontier], [100 * p.right for p in found.frontier],
        marker=".", drawstyle="steps-post", color="0.5", label="plans that no other beats",
    )  # fmt: skip
    axes.plot(found.played.evaluations, 100 * found.played.right, "o", label="chosen, as played")
    for checked, mark, name in (
        (found.checked, "*", "chosen, other puzzles"),
        (found.untuned, "x", "the task's own plan, other puzzles"),
    ):
        axes.plot(checked.evaluations, 100 * checked.right / checked.puzzles, mark, label=name)
    axes.set(
        xscale="log", xlabel="evaluations a puzzle", ylabel=f"right by {found.judge}, %",
    )  # fmt: skip
    axes.legend(fontsize=8)
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path}: expected a picture's name (.svg, .png) in a folder that exists, got: {error}"
        ) from error
