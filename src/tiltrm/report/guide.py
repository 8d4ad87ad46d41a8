"""Fig. 3: can the guide tell right trajectories from wrong ones, and can it move the cloud?"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from tiltrm.report import figures, paper
from tiltrm.report.evidence import BENCHMARKS, MAZE, SUDOKU, Evidence, percent
from tiltrm.report.sheet import Cell, Compared, Panel, Sheet, Table
from tiltrm.report.style import paint

HEAD = (
    "benchmark", "outer step", "score right", "sd right", "score wrong", "sd wrong", "gap",
    "bound", "moved", "spread", "in-cloud AUROC",
)  # fmt: skip
HEADROOM = 1.2  # for the legend
LATER = " What is said of later steps leaves out the first third, in which little has settled."
KEYS = (
    "score_right", "score_right_std", "score_wrong", "score_wrong_std", "gap", "bound", "moved",
    "widest_spread", "auroc",
)  # fmt: skip


def sheet(evidence: Evidence) -> Sheet:
    """The whole item."""
    panels: list[Panel] = []
    compared: list[Compared] = []
    rows: list[tuple[Cell, ...]] = []
    peaks: list[str] = []
    for part in (SUDOKU, MAZE):
        if part in evidence.subjects:
            found = evidence.diagnosis(part)
            study = found["alignment"]["halting"]
            panels += _panels(part, found)
            compared += _compared(part, study)
            peaks.append(f"n = {_peak(study)} of {len(study['bound'])} on {BENCHMARKS[part]}")
            lines = zip(*(study[key] for key in KEYS), strict=True)
            rows += [(BENCHMARKS[part], n, *line) for n, line in enumerate(lines, 1)]
    return Sheet(
        "fig3", "Figure 3 · Is the halting head a good guide?",
        "Left: the guide's score log σ(halt logit), which the tilt uses, of particles that end "
        "right and wrong, with one standard deviation. Right: the bound on the mass that one tilt "
        "can move (solid), what it does move (dashed), and the gap of the means (dotted, right "
        "scale). Clouds are untilted, so that each particle has one outcome. The bound is largest "
        f"at {' and '.join(peaks)}.{LATER if MAZE in evidence.subjects else ''}",
        tuple(panels), tuple(compared), Table(HEAD, rows), evidence.missing(MAZE),
    )  # fmt: skip


def _panels(part: str, found: Mapping[str, Any]) -> list[Panel]:
    study = found["alignment"]["halting"]
    name = BENCHMARKS[part]
    right, wrong = (figures.numbers(study[f"score_{word}"])[-1] for word in ("right", "wrong"))
    top = percent(max(study["bound"]))
    return [
        Panel(f"{name}: scores by outcome", f"Mean guide score at the last step: {right:.3g} of "
              f"particles that end right, {wrong:.3g} of the others.",
              lambda axes: figures.scores(axes, found)),
        Panel(f"{name}: what one tilt can move",
              f"The bound is at most {top:.3g} %.", partial(_draw, study)),
    ]  # fmt: skip


def _peak(study: Mapping[str, Any]) -> int:
    bound: list[float] = study["bound"]
    return 1 + bound.index(max(bound))


def _compared(part: str, study: Mapping[str, Any]) -> list[Compared]:
    """The paper's claims are about the largest bound: above 12.5 % (Sudoku), below 2 % (maze).

    What it says of all steps of a maze, it says of the later ones, n > `third`, too.
    """
    name, third = BENCHMARKS[part], len(study["bound"]) // 3
    side = "paper: more than" if part == SUDOKU else "paper: at most"
    theirs = paper.SPREAD_BOUND[part] if study["beta"] == paper.BOUND_BETA[part] else None
    since = {"": 0, f", n > {third}": third} if part == MAZE else {"": 0}
    lines = [
        Compared(f"{name}, largest bound at β = {study['beta']:g}{when} ({side})", theirs,
                 percent(max(study["bound"][first:])), digits=2)
        for when, first in since.items()
    ]  # fmt: skip
    if part == MAZE:
        lines += [
            Compared(f"{name}, largest spread of the score{when}", paper.MAZE_SPREAD,
                     max(study["widest_spread"][first:]), "", digits=3)
            for when, first in since.items()
        ]  # fmt: skip
    gaps = [value for value in figures.numbers(study["gap"]) if value == value]
    if gaps:
        lines.append(Compared(f"{name}, gap at the last step", None, gaps[-1], "", digits=3))
    return lines


def _draw(study: Mapping[str, Any], axes: Any) -> None:
    steps = range(1, len(study["bound"]) + 1)
    bound, moved = ([percent(value) for value in study[key]] for key in ("bound", "moved"))
    gap = figures.numbers(study["gap"])
    known = [value for value in gap if value == value]
    axes.plot(steps, bound, color=paint("guided"), label="bound")
    axes.plot(steps, moved, "--", color=paint("unguided"), label="moved")
    axes.set(xlabel="outer step n", ylabel=f"mass of the cloud, %, β = {study['beta']:g}",
             ylim=(0, HEADROOM * max(*bound, *moved)))  # fmt: skip
    other = axes.twinx()
    other.plot(steps, gap, ":", color=paint("oracle"), label="gap Δ", clip_on=False)
    low, high = min([0.0, *known]), max([0.0, *known])
    other.set(ylabel="gap Δ", ylim=(low, low + HEADROOM * (high - low or 1.0)))
    other.spines["right"].set_visible(True)
    other.grid(visible=False)
    lines = [*axes.get_lines(), *other.get_lines()]
    axes.legend(lines, [line.get_label() for line in lines], loc="upper center", ncols=3)
