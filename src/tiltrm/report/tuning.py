"""A picture of a tuning run: the frontier of plans, with the chosen one marked."""

from pathlib import Path

from tiltrm.report.drawing import figure_style
from tiltrm.report.reliability import save_figure
from tiltrm.solving.tune import Tuning


def draw_frontier(found: Tuning, path: Path) -> None:
    """Write the picture; its format is that of the file's name (svg, png, pdf)."""
    with figure_style() as new:
        figure = new(6.0, 4.2)
        axes = figure.add_subplot()
        costs = [point.evaluations for point in found.frontier]
        rights = [100 * point.right for point in found.frontier]
        axes.plot(
            costs, rights, marker=".", drawstyle="steps-post", color="0.5",
            label="plans that no other beats",
        )  # fmt: skip
        played = found.played
        axes.plot(played.evaluations, 100 * played.right, "o", label="chosen, as played")
        for checked, mark, name in (
            (found.checked, "*", "chosen, other puzzles"),
            (found.untuned, "x", "the task's own plan, other puzzles"),
        ):
            share = 100 * checked.right / checked.puzzles
            axes.plot(checked.evaluations, share, mark, label=name)
        axes.set(xscale="log", xlabel="evaluations a puzzle", ylabel=f"right by {found.judge}, %")
        axes.legend(fontsize=8)
        save_figure(figure, path)
