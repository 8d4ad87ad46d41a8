"""The frontier of pencil puzzles: solved against evaluations, for all puzzles and by type."""

from itertools import groupby
from typing import Any

from benchmarks.pencil_results import MethodResult, PencilResults
from tiltrm.errors import SettingsError
from tiltrm.report.drawing import PANEL, STYLES, MethodStyle, figure_style, to_svg

OTHER = MethodStyle("", "oracle")  # methods without a style of their own


def draw(results: PencilResults) -> str:
    """SVG with a panel for all puzzles and one for every type; settings of a method are joined."""
    if not results.rows:
        raise SettingsError(
            "a picture needs results of at least one method, got none; add --method"
        )
    names = ["all", *results.types]
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    with figure_style() as figure:
        whole = figure(columns * PANEL[0], rows * PANEL[1] + 0.5)
        panels = whole.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flatten()
        for axes, name in zip(panels, names, strict=False):
            own = [row for row in results.rows if row.type == name]
            _draw_panel(axes, f"{name}, {own[0].puzzles:,} puzzles", own)
        costs = [row.evaluations for row in results.rows]
        low, high = min(costs) / 2, max(costs) * 2
        powers = [10.0**n for n in range(9) if low <= 10.0**n <= high]
        panels[0].set_xlim(low, high)
        panels[0].set_xticks(powers, [f"{power:,.0f}" for power in powers])
        panels[0].set_xticks([], minor=True)
        for axes in panels[len(names) :]:
            axes.set_visible(False)
        handles, labels = panels[0].get_legend_handles_labels()
        whole.legend(handles, labels, loc="outside lower center", ncols=4)
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
    axes.set(title=title, xlabel="mean evaluations a puzzle", ylabel="solved, %", ylim=(-4, 104))
    axes.label_outer()
