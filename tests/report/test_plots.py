"""What a picture shows is what the table beside it says: read back from the axes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tiltrm.data import read
from tiltrm.evaluate.shards import Shard
from tiltrm.evaluate.summary import Spread
from tiltrm.report import (
    diagnosis,
    fig1_steps,
    fig4_entropy,
    fig6_settings,
    fig7_contraction,
    frontier,
    frontier_plot,
    paper,
    table1,
)
from tiltrm.report.drawing import STYLES, colour, figure_style
from tiltrm.report.items import ITEMS
from tiltrm.report.results import MAZE, SUDOKU, StoredResults
from tiltrm.report.section import Panel, Section
from tiltrm.tasks import SUDOKU as TASK

from .test_numbers import rows

pytest.importorskip("matplotlib", reason="figures need matplotlib")


def drawn(panel: Panel) -> Any:
    with figure_style() as figure:
        canvas = figure(4.2, 3.15)
        axes = canvas.subplots()
        panel.draw(axes)
        canvas.draw_without_rendering()
        return axes


def panel(section: Section, title: str) -> Panel:
    (found,) = (panel for panel in section.panels if panel.title == title)
    return found


def lines(axes: Any) -> dict[str, tuple[list[float], list[float]]]:
    """The lines that a legend names: where they go through."""
    named = (line for line in axes.lines if not line.get_label().startswith("_"))
    return {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in named}


def bands(axes: Any) -> list[list[float]]:
    """The heights of each band's edges at its places from the left, low and high in turn."""
    found = []
    for band in axes.collections:
        (path,) = band.get_paths()
        places = sorted({float(x) for x, _ in path.vertices})
        heights = [[float(y) for x, y in path.vertices if x == place] for place in places]
        found.append([edge for own in heights for edge in (min(own), max(own))])
    return found


def test_table1_has_ours_above_the_papers(results: StoredResults) -> None:
    section = table1.section(results)
    for benchmark, split in (("Sudoku-Extreme", "Test"), ("Sudoku-Extreme", "DF"),
                             ("Maze-Hard", "Test")):  # fmt: skip
        axes = drawn(panel(section, f"{benchmark}, {split}"))
        names = [label.get_text() for label in axes.get_yticklabels()]
        at = {round(text.xy[1], 2): (text.xy[0], text.get_text()) for text in axes.texts}
        for line in rows(section, benchmark=benchmark, split=split):
            place = names.index(STYLES[line["method"]].label)
            for height, mean, sd in ((0.17, "exact", "sd"), (-0.17, "paper", "paper sd")):
                x, text = at[round(place + height, 2)]
                assert text == f"{line[mean]:.1f}"
                assert x == pytest.approx(line[mean] + (line[sd] or 0.0))


def test_fig1_has_every_step_with_its_deviation(results: StoredResults) -> None:
    section = fig1_steps.section(results)
    for split in ("Test", "DF"):
        axes = drawn(panel(section, f"Sudoku-Extreme, {split}"))
        shown = lines(axes)
        for method, band in zip(dict.fromkeys(row[1] for row in section.data.rows), bands(axes),
                                strict=True):  # fmt: skip
            mine = rows(section, split=split, method=method)
            places, values = shown[STYLES[str(method)].label]
            assert places == [line["outer step"] for line in mine]
            assert values == pytest.approx([line["exact"] for line in mine])
            edges = [line["exact"] + side * line["sd"] for line in mine for side in (-1, 1)]
            assert band == pytest.approx(edges)


def test_fig2_has_a_line_for_each_method_and_size(results: StoredResults) -> None:
    section = ITEMS["fig2"].section(results)
    axes = drawn(panel(section, "Accuracy against noise"))
    shown, edges = lines(axes), bands(axes)
    cases = [(method, size) for method in ("guided", "unguided") for size in (4, 16)]
    for (method, size), band in zip(cases, edges, strict=True):
        mine = rows(section, panel="accuracy", method=method, **{"S or alpha": size})
        places, values = shown[f"{STYLES[method].label}, S = {size}"]
        assert (places, values) == ([r["noise"] for r in mine], [r["value"] for r in mine])
        assert band == pytest.approx([r[edge] for r in mine for edge in ("low", "high")])
        assert all(line["low"] <= line["value"] <= line["high"] for line in mine)


def test_fig3_has_bound_moved_and_gap(results: StoredResults) -> None:
    section = ITEMS["fig3"].section(results)
    for part, name in ((SUDOKU, "Sudoku-Extreme"), (MAZE, "Maze-Hard")):
        study = results.diagnosis(part)["alignment"]["halting"]
        axes = drawn(panel(section, f"{name}: what one tilt can move"))
        shown = lines(axes)
        for key in ("bound", "moved"):
            assert shown[key][1] == pytest.approx([100 * value for value in study[key]])
        (other,) = (twin for twin in axes.figure.axes if twin is not axes)
        gap = lines(other)["gap Δ"][1]
        assert gap[1:] == study["gap"][1:]
        scores = drawn(panel(section, f"{name}: scores by outcome"))
        for word, band in zip(("right", "wrong"), bands(scores), strict=True):
            mean, sd = np.array(study[f"score_{word}"]), np.array(study[f"score_{word}_std"])
            assert lines(scores)[f"ends {word}"][1] == pytest.approx(mean)
            assert band == pytest.approx(np.stack((mean - sd, mean + sd), 1).ravel())


def test_survival_has_a_line_for_each_radius(results: StoredResults) -> None:
    found = results.diagnosis(SUDOKU)
    shown = lines(drawn(Panel("", "", lambda axes: diagnosis.draw_survival(axes, found))))
    for alpha in (0.5, 1.0, 1.5):
        tubes = [tube for tube in found["stability"]["tubes"] if tube["alpha"] == alpha]
        noises, stays = [t["noise"] for t in tubes], [t["survival"] for t in tubes]
        assert shown[f"α = {alpha:g}"] == (noises, stays)


@pytest.mark.parametrize("word", ["solved", "unsolved"])
def test_fig4_has_the_answer_its_faults_and_its_doubt(results: StoredResults, word: str) -> None:
    """The answer is the label and what it is off by; the title counts puzzles from 1."""
    shards, _ = fig4_entropy.clouds(results)
    (own,) = (p for p in fig4_entropy.example_panels(shards)[0] if p.title.endswith(f": {word}"))
    number = int(own.title.split()[1])
    shard, row = _find(shards, number - 1)
    label = read(results.targets[SUDOKU].data, TASK).labels()[number - 1].numpy()
    answer = label.astype(int) + shard["off"][row]
    right, free = shard["cell_right"][row], shard["free"][row]
    assert bool(shard["exact"][row]) == (word == "solved")
    assert f"Puzzle {number} of Test, {word}, {(~right).sum()} wrong cells" in own.spoken
    axes = drawn(own)
    texts = {text.get_position(): text.get_text() for text in axes.texts}
    shades = {tuple(p.get_xy()[0]): p.get_alpha() for p in axes.patches}
    struck = {
        (min(line.get_xdata()), min(line.get_ydata()))
        for line in axes.lines if line.get_color() == colour("wrong")
    }  # fmt: skip
    for cell in range(81):
        y, x = divmod(cell, 9)
        digit = int(answer[cell]) - 1
        assert texts[x + 0.5, y + 0.54] == (str(digit) if 1 <= digit <= 9 else "?")
        assert ((x + 0.12, y + 0.12) in struck) == (not right[cell])
        doubt_ = min(1.0, float(shard["path_entropy"][row][cell]) / fig4_entropy.FULL)
        assert shades.get((x, y)) == (
            pytest.approx(fig4_entropy.OPACITY * doubt_) if free[cell] else None
        )


def _find(shards: list[Shard], puzzle: int) -> tuple[Shard, int]:
    ((shard, row),) = (
        (shard, row) for shard in shards for row in np.flatnonzero(shard["puzzle"] == puzzle)
    )
    return shard, int(row)


def test_of_a_kind_the_puzzle_in_the_middle_by_doubt_is_shown(results: StoredResults) -> None:
    shards, _ = fig4_entropy.clouds(results)
    mean = {}
    for shard in shards:
        for row in np.flatnonzero(~shard["exact"]):
            path = shard["path_entropy"][row][shard["free"][row]].astype(float)
            mean[int(shard["puzzle"][row])] = path.mean()
    (own,) = (p for p in fig4_entropy.example_panels(shards)[0] if p.title.endswith(": unsolved"))
    shown = mean[int(own.title.split()[1]) - 1]
    below = sum(value < shown for value in mean.values())
    assert below == len(mean) // 2


def test_fig4_has_a_band_for_each_entropy(results: StoredResults) -> None:
    section = fig4_entropy.section(results)
    axes = drawn(panel(section, "Token accuracy by entropy"))
    cases = [(split, name) for split in ("Test", "DF") for name in fig4_entropy.LABELS]
    for (split, name), band in zip(cases, bands(axes), strict=True):
        mine = rows(section, split=split, entropy=name)
        places, values = lines(axes)[f"{split}, {fig4_entropy.LABELS[name]}"]
        assert places == pytest.approx([(line["low"] + line["high"]) / 2 for line in mine])
        assert values == [line["accuracy"] for line in mine]
        edges = [line[f"95 % {edge}"] for line in mine for edge in ("low", "high")]
        assert band == pytest.approx(edges)
        assert all(line["low"] < line["high"] for line in mine)


def test_fig7_has_shares_of_each_outcome(results: StoredResults) -> None:
    section = fig7_contraction.section(results)
    bars, marks = (drawn(panel) for panel in section.panels)
    for word, name, patches in (("unsolved", "wrong", bars.patches[:2]),
                                  ("solved", "adaptive", bars.patches[2:])):  # fmt: skip
        mine = rows(section, solved=word == "solved")
        (outline,) = (patch for patch in patches if not patch.get_fill())
        assert outline.get_label() == f"{word}, {len(mine)} puzzles"
        share, edges, _ = outline.get_data()
        counts = np.histogram([line["contraction"] for line in mine], edges)[0]
        assert share == pytest.approx(100 * counts / len(mine))
        assert share.sum() == pytest.approx(100)
        (mean,) = (line for line in bars.lines if line.get_color() == colour(name))
        assert mean.get_xdata()[0] == pytest.approx(
            np.mean([line["contraction"] for line in mine]), abs=1e-6
        )
        (cloud,) = (own for own in marks.collections if own.get_label() == word)
        wanted = [(line["terminal entropy"], line["path entropy"]) for line in mine]
        assert np.asarray(cloud.get_offsets()) == pytest.approx(np.array(wanted))


@pytest.mark.parametrize("name", ["beta", "particles", "resample_below", "placement"])
def test_fig6_has_ours_the_oracle_and_the_papers_setting(results: StoredResults, name: str) -> None:
    section = fig6_settings.section(results)
    usual = {"particles": 16, "resample_below": 0.3, "placement": "everywhere"}
    for benchmark, beta in (("Sudoku-Extreme", 0.25), ("Maze-Hard", 1.0)):
        mine = [line for line in rows(section, benchmark=benchmark, setting=name)
                if line["resampling"] != "never"]  # fmt: skip
        if not mine:  # placement is not varied on mazes
            continue
        axes = drawn(panel(section, f"{benchmark}: {fig6_settings.SYMBOLS[name]}"))
        shown = lines(axes)
        oracle = [line["exact"] if line["oracle"] is None else line["oracle"] for line in mine]
        assert shown[STYLES["oracle"].label][1] == pytest.approx(oracle)
        (bar,) = (patch for patch in axes.patches if patch.get_alpha() == 0.13)
        place = bar.get_x() + bar.get_width() / 2
        assert mine[round(place)]["value"] == usual.get(name, beta)
        if name == "placement":
            (marks,) = axes.containers
            assert list(marks.lines[0].get_ydata()) == [line["exact"] for line in mine]
            edges = [[low[1], high[1]] for low, high in marks.lines[2][0].get_segments()]
            wanted = [[line["95 % low"], line["95 % high"]] for line in mine]
            assert np.array(edges) == pytest.approx(np.array(wanted))
            continue
        label = "resampled below τ" if name == "beta" else STYLES["guided"].label
        assert shown[label][1] == [line["exact"] for line in mine]
        if name == "beta":
            never = rows(section, benchmark=benchmark, setting=name, resampling="never")
            assert shown["never resampled"][1] == [line["exact"] for line in never]


def test_the_frontier_has_every_point_and_every_published_one(results: StoredResults) -> None:
    section = ITEMS["frontier"].section(results)
    own = next(p for p in section.panels if p.title.startswith("Sudoku-Extreme"))
    axes = drawn(own)
    marked = [line.get_xydata().tolist() for line in axes.lines if line.get_linestyle() == "None"]
    for variant in ("ptrm", "adaptive"):
        mine = rows(section, benchmark="Sudoku-Extreme", method=variant, split="Test")
        assert [[line["evaluations"], line["exact"]] for line in mine] in marked
    spent, exact = lines(axes)[STYLES["ptrm"].label]
    mine = rows(section, benchmark="Sudoku-Extreme", method="ptrm", split="Test")
    assert [spent, exact] == [[line[name] for line in mine] for name in ("evaluations", "exact")]
    hollow = [line for line in axes.lines if line.get_markerfacecolor() == colour("sheet")]
    marks = [(line.get_xdata()[0], line.get_ydata()[0]) for line in hollow if len(line.get_xdata())]
    assert marks == [(peer.evaluations, peer.exact) for peer in paper.FRONTIER[SUDOKU]]


def test_the_frontier_names_the_best_point_of_ours(results: StoredResults) -> None:
    """Not the dearest, where that solves no more."""
    found = [p for p in frontier.read_frontier(results, SUDOKU).points if p.series == "adaptive"]
    best = replace(found[1].row, exact=Spread(0.9995, None), evaluations=Spread(217.6, None))
    series = [found[0], found[1]._replace(row=best), *found[2:]]
    label = frontier_plot._labels([series], (), small=False)[0]
    assert (label.text, label.x) == ("99.95 % at 218", 217.6)
