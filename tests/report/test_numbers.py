"""What the items say, against the same numbers counted by hand from the shards."""

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tiltrm.evaluate.summary import Spread
from tiltrm.report import (
    fig2_noise,
    fig4_entropy,
    fig6_settings,
    fig7_contraction,
    frontier,
    table1,
)
from tiltrm.report.frontier import STOPPED
from tiltrm.report.items import ITEMS
from tiltrm.report.results import MAZE, SUDOKU, StoredResults
from tiltrm.report.section import Section


def rows(section: Section, **wanted: Any) -> list[dict[str, Any]]:
    """The lines of an item's CSV that have these values."""
    lines = [dict(zip(section.data.head, line, strict=True)) for line in section.data.rows]
    return [line for line in lines if all(line[name] == value for name, value in wanted.items())]


def failed(results: StoredResults) -> set[int]:
    shards = results.read(results.table1_jobs(SUDOKU))
    return {
        int(puzzle)
        for shard in shards if shard.job.method == "deterministic"
        for puzzle, exact in zip(shard["puzzle"], shard["exact"], strict=True) if not exact
    }  # fmt: skip


def test_table1_means_over_runs_and_df_over_failures(results: StoredResults) -> None:
    section = table1.section(results)
    hard = failed(results)
    kept_of, means = [], []
    for shard in results.read(results.table1_jobs(SUDOKU)):
        if shard.job.method == "guided":
            kept = np.isin(shard["puzzle"], sorted(hard))
            kept_of.append(100 * shard["exact"][kept])
            means.append(kept_of[-1].mean())
    (line,) = rows(section, benchmark="Sudoku-Extreme", split="DF", method="guided")
    assert line["exact"] == pytest.approx(np.concatenate(kept_of).mean())
    assert line["sd"] == pytest.approx(np.std(means, ddof=1))
    assert line["puzzles"] == len(hard)
    assert (line["paper"], line["paper sd"]) == (85.9, 1.5)
    assert rows(section, split="DF", method="deterministic")[0]["exact"] == 0.0
    ways = {c.what.partition(",")[0]: c.paper for c in section.comparisons if "the way" in c.what}
    assert ways["Sudoku-Extreme Test"] == pytest.approx(100)
    assert ways["Maze-Hard Test"] == pytest.approx(-30.2, abs=0.1)


def test_table1_keeps_a_measured_nothing_apart_from_nothing_measured(
    results: StoredResults,
) -> None:
    of = {entry.method: entry for entry in table1.entries(results, MAZE)}
    none = replace(of["guided"].row, shortest=Spread(0.0, None), valid=None)
    for method, shown in (("guided", (0.0, None)), ("oracle", (None, None))):
        assert table1._line(of[method]._replace(row=none))[-3:-1] == shown


def test_fig1_finds_the_step_that_passes_the_baseline(results: StoredResults) -> None:
    section = ITEMS["fig1"].section(results)
    goal = rows(section, split="Test", method="deterministic")[-1]["exact"]
    guided = rows(section, split="Test", method="guided")
    first = next(line["outer step"] for line in guided if line["exact"] > goal)
    assert section.comparisons[-1].ours == first
    assert section.comparisons[-1].paper == 10
    assert {line["outer step"] for line in guided} == set(range(1, 49))


def test_fig2_names_the_quietest_noise_that_solves_most(results: StoredResults) -> None:
    section = fig2_noise.section(results)
    assert len(rows(section, panel="accuracy")) == 2 * 2 * 8
    (best,) = (c for c in section.comparisons if c.what.startswith("noise at which"))
    guided = rows(section, panel="accuracy", method="guided")
    most = max(line["value"] for line in guided)
    assert best.ours == min(line["noise"] for line in guided if line["value"] == most)


def test_fig3_says_what_the_paper_says_of_both(results: StoredResults) -> None:
    section = ITEMS["fig3"].section(results)
    bounds = {c.what: (c.paper, c.ours) for c in section.comparisons if "bound" in c.what}
    study = results.diagnosis(MAZE)["alignment"]["halting"]
    assert bounds["Maze-Hard, largest bound at β = 1 (paper: at most)"] == (
        2.0, pytest.approx(100 * max(study["bound"]))
    )  # fmt: skip
    assert bounds["Sudoku-Extreme, largest bound at β = 0.25 (paper: more than)"][0] == 12.5
    late = [c.ours for c in section.comparisons if "n > 16" in c.what]
    assert late == pytest.approx([100 * study["bound"][16], study["widest_spread"][16]])
    assert sum("largest spread" in c.what for c in section.comparisons) == 2
    assert "n = 1 of 48 on Sudoku-Extreme and n = 1 of 48 on Maze-Hard. What" in section.reading


def test_fig4_ranks_free_cells_and_leaves_the_doubtful_tenth_out(results: StoredResults) -> None:
    section = fig4_entropy.section(results)
    shards, hard = fig4_entropy.clouds(results)
    found = []
    for shard in shards:
        kept = np.isin(shard["puzzle"], hard)
        free = shard["free"][kept]
        value = shard["terminal_entropy"][kept][free].astype(float)
        right = shard["cell_right"][kept][free]
        above = value[~right][:, None] - value[right][None]
        if above.size:
            found.append(((above > 0) + 0.5 * (above == 0)).mean())
    line = next(c for c in section.comparisons if c.what.startswith("DF, token AUROC"))
    assert line.ours == pytest.approx(np.mean(found))
    assert line.our_spread == pytest.approx(np.std(found, ddof=1))
    assert [panel.title.split(": ")[1] for panel in section.panels[:2]] == ["solved", "unsolved"]


def test_fig4_leaves_out_what_lies_above_the_decile_of_test(results: StoredResults) -> None:
    """The threshold is of all puzzles of a fold, on the failures too; what equals it stays."""
    shards, hard = fig4_entropy.clouds(results)
    found = []
    for shard in shards:
        free = shard["free"]
        mean = np.array([
            values[mask].astype(float).mean()
            for values, mask in zip(shard["terminal_entropy"], free, strict=True)
        ])  # fmt: skip
        ranked = np.sort(mean)
        kept = mean <= ranked[math.ceil(0.9 * len(ranked)) - 1] + 1e-9
        kept &= np.isin(shard["puzzle"], hard)
        if kept.any():
            found.append(100 * shard["exact"][kept].mean())
    line = next(
        c for c in fig4_entropy.section(results).comparisons if c.what.startswith("DF, solved of")
    )
    assert line.ours == pytest.approx(np.mean(found))
    assert line.paper == 99.7


def test_fig7_contraction_is_path_less_terminal_on_failures(results: StoredResults) -> None:
    section = fig7_contraction.section(results)
    assert {line["puzzle"] for line in rows(section)} == failed(results)
    for word, solved in (("solved", True), ("unsolved", False)):
        mean = np.mean([line["contraction"] for line in rows(section, solved=solved)])
        (line,) = (c for c in section.comparisons if c.what.startswith(f"mean contraction, {word}"))
        assert line.ours == pytest.approx(mean, abs=1e-6)


def test_fig6_covers_the_papers_axes_and_ours(results: StoredResults) -> None:
    section = fig6_settings.section(results)
    mine = {line["setting"] for line in rows(section, benchmark="Sudoku-Extreme")}
    assert mine == {"beta", "particles", "resample_below", "potential", "placement"}
    assert {line["setting"] for line in rows(section, benchmark="Maze-Hard")} == {
        "beta", "particles", "resample_below",
    }  # fmt: skip
    sizes = {line["value"] for line in rows(section, setting="particles")}
    assert sizes == {1, 2, 4, 8, 16, 32, 64}
    never = rows(section, benchmark="Sudoku-Extreme", resampling="never")
    assert len(never) == 8
    shares = [line["exact"] for line in never if line["value"] > 0]
    (swing,) = (
        c for c in section.comparisons if c.what.startswith("Sudoku-Extreme, never resampled")
    )
    assert swing.ours == pytest.approx(max(shares) - min(shares))
    assert (
        swing.ours < section.comparisons[0].ours
    )  # in the mock too, resampling costs at high beta


def test_numbers_on_an_axis_are_short() -> None:
    assert fig6_settings.tick_labels([0.0, 0.0625, 0.5, 1.0, 4.0]) == ["0", "1/16", "1/2", "1", "4"]
    assert fig6_settings.tick_labels([0.0, 0.1, 0.5, 1.0]) == ["0", "0.1", "0.5", "1"]
    assert fig6_settings.tick_labels([1, 16]) == ["1", "16"]
    assert fig6_settings.tick_labels(["every_step", "terminal"]) == ["every step", "terminal"]


def test_frontier_counts_its_own_cost_and_pairs_with_adaptive(results: StoredResults) -> None:
    section = ITEMS["frontier"].section(results)
    shards = results.read(frontier.jobs(results, SUDOKU))
    mine = [s for s in shards if s.job.method == "ptrm" and s.job.options["select"] == "best_score"
            and s.job.options["particles"] == 100]  # fmt: skip
    (line,) = rows(section, benchmark="Sudoku-Extreme", method="ptrm", setting="K = 100")
    assert line["evaluations"] == pytest.approx(np.mean([s["evaluations"].mean() for s in mine]))
    assert line["exact"] == pytest.approx(100 * np.mean([s["exact"].mean() for s in mine]))
    (ours,) = rows(section, benchmark="Sudoku-Extreme", method="adaptive", p=None)
    (plain,) = rows(section, method="deterministic", setting="N = 48", benchmark="Sudoku-Extreme")
    assert plain["adaptive less this, points"] == pytest.approx(ours["exact"] - plain["exact"])
    assert plain["adaptive less this, points"] > 1
    assert len(rows(section, split="published", benchmark="Sudoku-Extreme")) == 5
    assert len([n for n in section.notes if n.startswith("PTRM")]) == 5


def test_the_notes_on_ptrm_name_the_cheapest_that_is_no_worse(results: StoredResults) -> None:
    section = ITEMS["frontier"].section(results)
    runs = rows(section, benchmark="Sudoku-Extreme", method="adaptive")
    ours = [*runs, *rows(section, benchmark="Sudoku-Extreme", method=STOPPED)]
    assert len(ours) > len(runs)
    cheapest = min(line["evaluations"] for line in ours)
    dearer = 0
    for peer in rows(section, benchmark="Sudoku-Extreme", method="ptrm", split="Test"):
        enough = [line["evaluations"] for line in ours if line["exact"] >= peer["exact"]]
        head = f"PTRM, best final Q, {peer['setting']}:"
        (note,) = (note for note in section.notes if note.startswith(head))
        if not enough:
            assert note.endswith("no point of adaptive solves as many.")
            continue
        (times,) = re.findall(r"([\d.]+) times fewer", note)
        assert float(times) == pytest.approx(peer["evaluations"] / min(enough), rel=0.01)
        dearer += min(enough) > cheapest
    assert dearer  # else the test could not tell
