"""The frontier: how many puzzles each method solves against what it spends on a puzzle."""

from collections.abc import Sequence
from functools import partial

from tiltrm.evaluate.summary import Stopped
from tiltrm.report import frontier_draw, paper
from tiltrm.report.evidence import BENCHMARKS, MAZE, SUDOKU, Evidence, interval, percent
from tiltrm.report.frontier_points import Point, gather, settings
from tiltrm.report.sheet import Cell, Compared, Panel, Sheet, Table

HEAD = (
    "benchmark", "split", "method", "setting", "puzzles", "exact", "95 % low", "95 % high",
    "evaluations", "adaptive less this, points", "paired 95 % low", "paired 95 % high", "p",
)  # fmt: skip
STOPPED = "adaptive, stopped early (at least)"


def sheet(evidence: Evidence) -> Sheet:
    """The whole item."""
    panels: list[Panel] = []
    rows: list[tuple[Cell, ...]] = []
    shown: list[tuple[Cell, ...]] = []
    compared: list[Compared] = []
    notes: list[str] = []
    for part in (SUDOKU, MAZE):
        if part in evidence.subjects:
            found, line = gather(evidence, part)
            count = found[0].row.puzzles
            split = evidence.subjects[part].split
            title = f"{BENCHMARKS[part]}, {count:,} puzzles of {split}"
            draw = partial(frontier_draw.draw, part, found, line)
            panels.append(Panel(title, _spoken(found), draw, wide=True))
            rows += [_line(part, point) for point in found]
            rows += [_stopped(part, split, count, each) for each in line] + _published(part)
            shown += [_shown(part, point) for point in found]
            compared += _compared(part, found)
            notes += _cheaper(part, found, line)
            if (lacking := settings(evidence, part) - len(found)) > 0:
                notes.append(f"{title}: {lacking} more settings are not computed yet.")
    return Sheet(
        "frontier", "The frontier · Right answers against compute",
        "Up and to the left is better. Filled marks are all methods on the same frozen weights and "
        "puzzles, with 95 % intervals; hollow marks are figures that others published for their "
        "own weights. The line of adaptive goes by what its whole run shows of fewer outer steps, "
        "answers that it was not yet sure of counted as wrong. The vertical axis stretches "
        "towards 100 %: equal steps up divide what is left unsolved by the same factor.",
        tuple(panels), tuple(compared), Table(HEAD, rows),
        (*notes, *evidence.missing(MAZE)),
        Table(("method", "exact, % (95 %)", "evaluations a puzzle",
               "adaptive less this, points (95 %)", "p"), shown),
    )  # fmt: skip


def _line(part: str, point: Point) -> tuple[Cell, ...]:
    gap = point.against
    paired_ = (None,) * 4 if gap is None else (
        100 * gap.difference, 100 * gap.low, 100 * gap.high, gap.p_value)  # fmt: skip
    return (BENCHMARKS[part], point.row.split, point.variant, point.budget, point.row.puzzles,
            *interval(point.row), point.evaluations, *paired_)  # fmt: skip


def _stopped(part: str, split: str, count: int, each: Stopped) -> tuple[Cell, ...]:
    nothing = (None,) * 2
    return (BENCHMARKS[part], split, STOPPED, f"steps = {each.steps}", count, percent(each.exact),
            *nothing, each.evaluations, *nothing, *nothing)  # fmt: skip


def _published(part: str) -> list[tuple[Cell, ...]]:
    nothing = (None,) * 4
    return [
        (BENCHMARKS[part], "published", peer.method, f"{peer.name} ({peer.weights})", None,
         peer.exact, None, None, float(peer.evaluations), *nothing)
        for peer in paper.PEERS[part]
    ]  # fmt: skip


def _shown(part: str, point: Point) -> tuple[Cell, ...]:
    middle, low, high = interval(point.row)
    gap = point.against
    return (
        f"{_prefix(part)}{point.label}, {point.budget}", f"{middle:.2f} ({low:.1f} – {high:.1f})",
        f"{point.evaluations:,.0f}",
        None if gap is None else f"{100 * gap.difference:+z.2f} "
        f"({100 * gap.low:+z.1f} to {100 * gap.high:+z.1f})",
        None if gap is None else "< 0.001" if gap.p_value < 0.001 else f"{gap.p_value:.3f}",
    )  # fmt: skip


def _prefix(part: str) -> str:
    return "" if part == SUDOKU else f"{BENCHMARKS[part]}: "


def _compared(part: str, found: Sequence[Point]) -> list[Compared]:
    """Where others published a figure for such a method: theirs on their weights, ours on these."""
    at = {(point.variant, point.budget): point for point in found}
    lines = []
    for peer in paper.PEERS[part]:
        mine = at.get(peer.here) if peer.here else None
        if mine is not None:
            what = (
                f"{_prefix(part)}{peer.name}, {peer.evaluations:,} evaluations; here "
                f"{mine.budget}, {mine.evaluations:,.0f}"
            )
            lines.append(Compared(what, peer.exact, interval(mine.row)[0], digits=2))
    ours = max((p for p in found if p.variant == "adaptive"), key=lambda p: p.row.exact.mean)
    what = f"{_prefix(part)}{ours.label}, {ours.evaluations:,.0f} evaluations"
    return [*lines, Compared(what, None, interval(ours.row)[0], digits=2)]


def _cheaper(part: str, found: Sequence[Point], line: Sequence[Stopped]) -> list[str]:
    """For every budget of PTRM: the cheapest of ours that solves at least as many."""
    ours = [(p.row.exact.mean, p.evaluations, "adaptive has")
            for p in found if p.variant == "adaptive"]  # fmt: skip
    ours += [(s.exact, s.evaluations, f"adaptive, stopped after {s.steps} steps, has at least")
             for s in line]  # fmt: skip
    said = []
    for peer in (p for p in found if p.row.method == "ptrm"):
        enough = [own for own in ours if own[0] >= peer.row.exact.mean]
        head = f"{_prefix(part)}{peer.label}, {peer.budget}: {interval(peer.row)[0]:.2f} % at "
        if enough:
            exact, spent, who = min(enough, key=lambda own: round(own[1], 6))
            tail = (f"{who} {percent(exact):.2f} % at {spent:,.0f}, "
                    f"{_times(peer.evaluations / spent)}.")  # fmt: skip
        else:
            tail = "no point of adaptive solves as many."
        said.append(f"{head}{peer.evaluations:,.0f} evaluations; {tail}")
    return said


def _times(fewer: float) -> str:
    """A ratio in words, from the side on which it is above 1."""
    times = max(fewer, 1 / fewer)
    said = f"{times:,.0f}" if times >= 1000 else f"{times:.3g}"
    return "about as many" if said == "1" else f"{said} times {'fewer' if fewer > 1 else 'more'}"


def _spoken(found: Sequence[Point]) -> str:
    return "Percent solved at mean evaluations a puzzle. " + "; ".join(
        f"{p.label}, {p.budget}: {interval(p.row)[0]:.1f} at {p.evaluations:,.0f}" for p in found
    )  # fmt: skip
