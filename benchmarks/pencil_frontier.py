"""The frontier of pencil puzzles: solved against evaluations, for all puzzles and by type."""

from itertools import groupby
from typing import Any

from benchmarks.pencil_results import MethodResult, PencilResults
from tiltrm.report.drawing import PANEL, STYLES, MethodStyle, figure_style, to_svg

OTHER = MethodStyle("", "oracle")  # methods without a style of their own


def draw(results: PencilResults) -> str:
    """SVG with a panel for all puzzles and one for every type; settings of a method are joined."""
    names = ["all", *results.types]
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    with figure_style() as figure:
        whole = figure(columns * PANEL[0], rows * PANEL[1] + 0.5)
        panels = whole.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flatten()
        for axes, name in zip(panels, names, strict=False):
            own = [row for row in results.rows if row.type == name]
            _draw_panel(axes, f"{name}, {own[0].puzzles:,} puzzles", own)
        for axes in panels[len(names) :]:
            axes.set_visible(False)
        handles, labels = panels[0].get_legend_handles_labels()
        whole.legend(handles, labels, loc="outside lower center", ncols=4)
        whole.supxlabel("mean evaluations a puzzle", fontsize=9.5)
        return to_svg(whole)


def _draw_panel(axes: Any, title: str, rows: list[MethodResult]) -> None:
    def method(row: MethodResult) -> str:
        return row.method.partition(":")[0]

    for name, some in groupby(sorted(rows, key=method), key=method):
        points = sorted((row.evaluations, 100 * row.solved) for row in some)
        style = STYLES.get(name, OTHER)
        size = {"*": 11.0, "P": 8.0}.get(style.marker, 6.0)
        axes.plot(
            *zip(*points, strict=True), label=style.label or name, color=style.colour,
            marker=style.marker, linestyle=style.dash, markersize=size,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set(title=title, ylabel="solved, %", ylim=(-4, 104))
    axes.label_outer()
