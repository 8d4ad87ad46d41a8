"""The frontier: how many puzzles each method solves against what it spends on a puzzle."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from tiltrm.evaluate import plans
from tiltrm.evaluate.compare import paired
from tiltrm.evaluate.job import Job
from tiltrm.evaluate.options import TURNED, steps_of
from tiltrm.evaluate.shards import Shard
from tiltrm.evaluate.summary import Row, Stopped, groups, stopped, summarise
from tiltrm.report import frontier_plot, paper
from tiltrm.report.frontier_plot import MAJORITY, NOISE_ALONE, FrontierPoint
from tiltrm.report.results import BENCHMARKS, MAZE, SUDOKU, StoredResults, interval, percent
from tiltrm.report.section import Cell, DataTable, Panel, PaperComparison, Rows, Section

BUDGETS = {  # the setting that the points of a method differ by, and its symbol
    "deterministic": ("outer_steps", "N"), "unguided": ("particles", "S"),
    "guided": ("particles", "S"), "ptrm": ("particles", "K"), "halt_first": ("particles", "K"),
    "symmetry": ("copies", "copies"), "adaptive": ("stages", "steps"),
    "adaptive_rules": ("stages", "steps"),
}  # fmt: skip
HEAD = (
    "benchmark", "split", "method", "setting", "puzzles", "exact", "95 % low", "95 % high",
    "evaluations", "adaptive less this, points", "paired 95 % low", "paired 95 % high", "p",
)  # fmt: skip
STOPPED = "adaptive, stopped early (at least)"


class Frontier(NamedTuple):
    """The points of one benchmark."""

    points: list[FrontierPoint]  # series by series, cheapest first
    stopped: list[Stopped]  # the default of adaptive after every number of steps, from its one run


def jobs(results: StoredResults, benchmark: str) -> list[Job]:
    """The jobs of the frontier.

    With `partial`: all methods on the folds that are computed, or if there is none, the settings
    that are computed on all folds, as long as adaptive is one of them.
    """
    wanted = _all_jobs(results, benchmark)
    found = results.available(wanted)
    if found or not results.partial:
        return found
    found = plans.whole(wanted, results.store.has)
    return found if any(job.method == "adaptive" for job in found) else []


def _all_jobs(results: StoredResults, benchmark: str) -> list[Job]:
    limit = results.frontier if benchmark == SUDOKU else None
    return plans.frontier(results.targets[benchmark], results.size, limit)


def read_frontier(results: StoredResults, benchmark: str) -> Frontier:
    """All points that are computed."""
    shards = results.read(jobs(results, benchmark))
    rows = [row for row in summarise(shards) if row.split == results.targets[benchmark].split]
    grouped = groups(shards)
    ours = max(
        (group for group in grouped if group[0].job.method == "adaptive"),
        key=lambda group: (_turned(group[0].job.options), steps_of(group[0].job.options["stages"])),
    )
    points = [_point(row, group, ours) for row, group in zip(rows, grouped, strict=True)]
    order = [point.series for point in points]
    points.sort(key=lambda point: (order.index(point.series), point.evaluations))
    return Frontier(points, stopped(ours))


def _point(row: Row, group: Sequence[Shard], ours: Sequence[Shard]) -> FrontierPoint:
    own = dict(row.settings)
    name, symbol = BUDGETS[row.method]
    size = steps_of(own[name]) if name == "stages" else own[name]
    series = row.method
    if row.method == "ptrm" and own["select"] == "majority":
        series = MAJORITY
    if row.method == "adaptive" and _turned(own) != _turned(ours[0].job.options):
        series = NOISE_ALONE
    against = None if group is ours else paired(ours, group)
    return FrontierPoint(row, series, f"{symbol} = {size}", against)


def _turned(settings: Mapping[str, Any]) -> bool:
    """Whether adaptive also looks at other views of the puzzle."""
    return bool(settings.get(TURNED, False))


def section(results: StoredResults) -> Section:
    """One panel for each benchmark."""
    panels: list[Panel] = []
    rows: Rows = []
    shown: Rows = []
    comparisons: list[PaperComparison] = []
    notes: list[str] = []
    for benchmark in results.benchmarks:
        found = read_frontier(results, benchmark)
        split, count = results.targets[benchmark].split, found.points[0].row.puzzles
        title = f"{BENCHMARKS[benchmark]}, {count:,} puzzles of {split}"
        draw = partial(frontier_plot.draw, benchmark, *found)
        panels.append(Panel(title, _spoken(found.points), draw, wide=True))
        rows += [_line(benchmark, point) for point in found.points]
        rows += [_stopped_line(benchmark, split, count, each) for each in found.stopped]
        rows += [_published_line(benchmark, point) for point in paper.FRONTIER[benchmark]]
        shown += [_shown_line(benchmark, point) for point in found.points]
        comparisons += _comparisons(benchmark, found.points)
        notes += _cheaper(benchmark, *found)
        wanted = {(job.method, job.settings) for job in _all_jobs(results, benchmark)}
        if (missing := len(wanted) - len(found.points)) > 0:
            notes.append(f"{title}: {missing} more settings are not computed yet.")
    return Section(
        "frontier", "The frontier · Right answers against compute",
        "Up and to the left is better. Filled marks are all methods on the same frozen weights and "
        "puzzles, with 95 % intervals; hollow marks are figures that others published for their "
        "own weights. The line of adaptive goes by what its whole run shows of fewer outer steps, "
        "answers that it was not yet sure of counted as wrong. The vertical axis stretches "
        "towards 100 %: equal steps up divide what is left unsolved by the same factor.",
        tuple(panels), tuple(comparisons), DataTable(HEAD, rows),
        (*notes, *results.missing(MAZE)),
        DataTable(("method", "exact, % (95 %)", "evaluations a puzzle",
                   "adaptive less this, points (95 %)", "p"), shown),
    )  # fmt: skip


def _line(benchmark: str, point: FrontierPoint) -> tuple[Cell, ...]:
    gap = point.against
    paired_test = (None,) * 4 if gap is None else (
        100 * gap.difference, 100 * gap.low, 100 * gap.high, gap.p_value)  # fmt: skip
    return (BENCHMARKS[benchmark], point.row.split, point.series, point.budget, point.row.puzzles,
            *interval(point.row), point.evaluations, *paired_test)  # fmt: skip


def _stopped_line(benchmark: str, split: str, count: int, each: Stopped) -> tuple[Cell, ...]:
    return (BENCHMARKS[benchmark], split, STOPPED, f"steps = {each.steps}", count,
            percent(each.exact), None, None, each.evaluations, *(None,) * 4)  # fmt: skip


def _published_line(benchmark: str, point: paper.PublishedPoint) -> tuple[Cell, ...]:
    return (BENCHMARKS[benchmark], "published", point.method, f"{point.name} ({point.weights})",
            None, point.exact, None, None, float(point.evaluations), *(None,) * 4)  # fmt: skip


def _shown_line(benchmark: str, point: FrontierPoint) -> tuple[Cell, ...]:
    middle, low, high = interval(point.row)
    gap = point.against
    return (
        f"{_prefix(benchmark)}{point.label}, {point.budget}",
        f"{middle:.2f} ({low:.1f} – {high:.1f})", f"{point.evaluations:,.0f}",
        None if gap is None else f"{100 * gap.difference:+z.2f} "
        f"({100 * gap.low:+z.1f} to {100 * gap.high:+z.1f})",
        None if gap is None else "< 0.001" if gap.p_value < 0.001 else f"{gap.p_value:.3f}",
    )  # fmt: skip


def _prefix(benchmark: str) -> str:
    """Before lines about other benchmarks than the first."""
    return "" if benchmark == SUDOKU else f"{BENCHMARKS[benchmark]}: "


def _comparisons(benchmark: str, found: Sequence[FrontierPoint]) -> list[PaperComparison]:
    """Published points beside our nearest setting; then the best of adaptive."""
    by_setting = {(point.series, point.budget): point for point in found}
    lines = []
    for theirs in paper.FRONTIER[benchmark]:
        near = by_setting.get(theirs.nearest) if theirs.nearest else None
        if near is not None:
            what = (
                f"{_prefix(benchmark)}{theirs.name}, {theirs.evaluations:,} evaluations; here "
                f"{near.budget}, {near.evaluations:,.0f}"
            )
            lines.append(PaperComparison(what, theirs.exact, near.exact, digits=2))
    best = max((p for p in found if p.series == "adaptive"), key=lambda p: p.row.exact.mean)
    what = f"{_prefix(benchmark)}{best.label}, {best.evaluations:,.0f} evaluations"
    return [*lines, PaperComparison(what, None, best.exact, digits=2)]


def _cheaper(
    benchmark: str, found: Sequence[FrontierPoint], between: Sequence[Stopped]
) -> list[str]:
    """For every budget of PTRM, a sentence: the cheapest of ours that solves at least as many."""
    ours = [(p.row.exact.mean, p.evaluations, "adaptive has")
            for p in found if p.series == "adaptive"]  # fmt: skip
    ours += [(s.exact, s.evaluations, f"adaptive, stopped after {s.steps} steps, has at least")
             for s in between]  # fmt: skip
    sentences = []
    for peer in (p for p in found if p.row.method == "ptrm"):
        head = f"{_prefix(benchmark)}{peer.label}, {peer.budget}: {peer.exact:.2f} % at "
        tail = "no point of adaptive solves as many."
        if enough := [own for own in ours if own[0] >= peer.row.exact.mean]:
            exact, spent, subject = min(enough, key=lambda own: round(own[1], 6))
            tail = (f"{subject} {percent(exact):.2f} % at {spent:,.0f}, "
                    f"{_times(peer.evaluations / spent)}.")  # fmt: skip
        sentences.append(f"{head}{peer.evaluations:,.0f} evaluations; {tail}")
    return sentences


def _times(fewer: float) -> str:
    """A ratio in words: '4 times fewer', or '4 times more' if it is below 1."""
    times = max(fewer, 1 / fewer)
    number = f"{times:,.0f}" if times >= 1000 else f"{times:.3g}"
    word = "fewer" if fewer > 1 else "more"
    return "about as many" if number == "1" else f"{number} times {word}"


def _spoken(found: Sequence[FrontierPoint]) -> str:
    return "Percent solved at mean evaluations a puzzle. " + "; ".join(
        f"{p.label}, {p.budget}: {p.exact:.1f} at {p.evaluations:,.0f}" for p in found
    )
