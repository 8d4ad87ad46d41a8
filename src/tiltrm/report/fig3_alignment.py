"""Figure 3: can the guide tell right trajectories from wrong ones, and can it move the cloud?"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from tiltrm.report import diagnosis, paper
from tiltrm.report.drawing import colour
from tiltrm.report.results import BENCHMARKS, MAZE, StoredResults, percent
from tiltrm.report.section import DataTable, Panel, PaperComparison, Rows, Section

COLUMNS = {  # of the CSV file, and their keys in a diagnosis
    "score right": "score_right", "sd right": "score_right_std", "score wrong": "score_wrong",
    "sd wrong": "score_wrong_std", "gap": "gap", "bound": "bound", "moved": "moved",
    "spread": "widest_spread", "in-cloud AUROC": "auroc",
}  # fmt: skip
HEADROOM = 1.2  # for the legend
LATER = " What is said of later steps leaves out the first third, in which little has settled."


def section(results: StoredResults) -> Section:
    """Two panels for each benchmark: scores by outcome, and what one tilt can move."""
    panels: list[Panel] = []
    comparisons: list[PaperComparison] = []
    rows: Rows = []
    peaks: list[str] = []
    for benchmark in results.benchmarks:
        found, name = results.diagnosis(benchmark), BENCHMARKS[benchmark]
        study = found["alignment"]["halting"]
        bound = study["bound"]
        panels += _panels(name, found)
        comparisons += _comparisons(benchmark, study)
        peaks.append(f"n = {1 + bound.index(max(bound))} of {len(bound)} on {name}")
        lines = zip(*(study[key] for key in COLUMNS.values()), strict=True)
        rows += [(name, n, *line) for n, line in enumerate(lines, 1)]
    later = any(paper.TILT_BOUND[benchmark].every_step for benchmark in results.benchmarks)
    return Section(
        "fig3", "Figure 3 · Is the halting head a good guide?",
        "Left: the guide's score log σ(halt logit), which the tilt uses, of particles that end "
        "right and wrong, with one standard deviation. Right: the bound on the mass that one tilt "
        "can move (solid), what it does move (dashed), and the gap of the means (dotted, right "
        "scale). Clouds are untilted, so that each particle has one outcome. The bound is largest "
        f"at {' and '.join(peaks)}.{LATER if later else ''}",
        tuple(panels), tuple(comparisons), DataTable(("benchmark", "outer step", *COLUMNS), rows),
        results.missing(MAZE),
    )  # fmt: skip


def _panels(name: str, found: Mapping[str, Any]) -> list[Panel]:
    study = found["alignment"]["halting"]
    right, wrong = (diagnosis.numbers(study[f"score_{word}"])[-1] for word in ("right", "wrong"))
    top = percent(max(study["bound"]))
    return [
        Panel(f"{name}: scores by outcome", f"Mean guide score at the last step: {right:.3g} of "
              f"particles that end right, {wrong:.3g} of the others.",
              lambda axes: diagnosis.draw_scores(axes, found)),
        Panel(f"{name}: what one tilt can move",
              f"The bound is at most {top:.3g} %.", partial(_draw, study)),
    ]  # fmt: skip


def _comparisons(benchmark: str, study: Mapping[str, Any]) -> list[PaperComparison]:
    """The paper's claims about the largest bound, at its own beta.

    A claim about every step is also compared on the later steps alone, n > a third of them.
    """
    name, third, theirs = (
        BENCHMARKS[benchmark],
        len(study["bound"]) // 3,
        paper.TILT_BOUND[benchmark],
    )
    side = "paper: at most" if theirs.every_step else "paper: more than"
    claimed = theirs.percent if study["beta"] == paper.BETA[benchmark] else None
    since = {"": 0, f", n > {third}": third} if theirs.every_step else {"": 0}
    lines = [
        PaperComparison(f"{name}, largest bound at β = {study['beta']:g}{when} ({side})", claimed,
                        percent(max(study["bound"][first:])), digits=2)
        for when, first in since.items()
    ]  # fmt: skip
    if theirs.spread is not None:
        lines += [
            PaperComparison(f"{name}, largest spread of the score{when}", theirs.spread,
                            max(study["widest_spread"][first:]), "", digits=3)
            for when, first in since.items()
        ]  # fmt: skip
    gaps = [gap for gap in study["gap"] if gap is not None and gap == gap]
    if gaps:
        what = f"{name}, gap at the last step"
        lines.append(PaperComparison(what, None, gaps[-1], "", digits=3))
    return lines


def _draw(study: Mapping[str, Any], axes: Any) -> None:
    steps = range(1, len(study["bound"]) + 1)
    bound, moved = ([percent(value) for value in study[key]] for key in ("bound", "moved"))
    gap = diagnosis.numbers(study["gap"])
    known = [value for value in gap if value == value]
    axes.plot(steps, bound, color=colour("guided"), label="bound")
    axes.plot(steps, moved, "--", color=colour("unguided"), label="moved")
    axes.set(xlabel="outer step n", ylabel=f"mass of the cloud, %, β = {study['beta']:g}",
             ylim=(0, HEADROOM * max(*bound, *moved)))  # fmt: skip
    other = axes.twinx()
    other.plot(steps, gap, ":", color=colour("oracle"), label="gap Δ", clip_on=False)
    low, high = min([0.0, *known]), max([0.0, *known])
    other.set(ylabel="gap Δ", ylim=(low, low + HEADROOM * (high - low or 1.0)))
    other.spines["right"].set_visible(True)
    other.grid(visible=False)
    lines = [*axes.get_lines(), *other.get_lines()]
    axes.legend(lines, [line.get_label() for line in lines], loc="upper center", ncols=3)
