"""Sentences and tables of the page, number by number, against shards, files and the paper."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tiltrm.diagnose.entropy import Uncertainty
from tiltrm.evaluate.compare import Paired
from tiltrm.evaluate.shards import Shard
from tiltrm.evaluate.summary import DF, Spread
from tiltrm.report import (
    fig1_steps,
    fig3_alignment,
    fig4_entropy,
    fig6_settings,
    fig8_training,
    frontier,
    paper,
    table1,
)
from tiltrm.report.drawing import STYLES
from tiltrm.report.items import ITEMS
from tiltrm.report.results import MAZE, SUDOKU, SWEEP, StoredResults, describe_reductions
from tiltrm.report.section import PaperComparison, Section

from .test_numbers import failed, rows

PAPER = Path(__file__).resolve().parents[3] / "shared" / "paper.tex"


def ours(section: Section, what: str) -> PaperComparison:
    """The one line of a comparison that begins so."""
    (line,) = (line for line in section.comparisons if line.what.startswith(what))
    return line


def runs(results: StoredResults, part: str, method: str) -> list[Shard]:
    return [s for s in results.read(results.table1_jobs(part)) if s.job.method == method]


def spread(values: list[float]) -> tuple[float, float]:
    """In percent."""
    return 100 * float(np.mean(values)), 100 * float(np.std(values, ddof=1))


def test_the_papers_table() -> None:
    """Literally; the paper itself is asked where it is at hand."""
    said = {
        (SUDOKU, "Test"): "85.9±0.6 84.3±0.7 98.0±0.2 98.0±0.3 10000",
        (SUDOKU, DF): "0.0 35.7±2.8 86.0±1.5 85.9±1.5 1400",
        (MAZE, "Test"): "86.6±2.1 85.3±3.0 90.9±2.4 85.3±2.5 1000",
    }
    for key, line in said.items():
        cells = [f"{v.mean}" + (f"±{v.spread}" if v.spread is not None else "")
                 for v in (paper.TABLE1[key][method] for method in table1.METHODS)]  # fmt: skip
        assert " ".join((*cells, str(paper.SIZES[key]))) == line
    if not PAPER.exists():
        pytest.skip("needs ../shared/paper.tex")
    text = PAPER.read_text()
    names = {SUDOKU: "Sudoku-Extreme", MAZE: "Maze-Hard"}
    for (part, split), line in said.items():
        (row,) = re.findall(rf"{names[part]} +& {split} +&(.*)\\\\", text)
        size, *cells = (re.sub(r"\\!|\$|\\phantom\{0\}|[{}, ]", "", c) for c in row.split("&"))
        assert " ".join((*(cell.replace(r"\pm", "±") for cell in cells), size)) == line


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (paper.TOKEN_AUROC["Test"], r"Test $0.834\pm 0.011$"),
        (paper.TOKEN_AUROC["DF"], r"DF $0.710\pm 0.014$"),
        (paper.CONTRACTION["solved"], "Solved puzzles have mean $0.028$"),
        (paper.CONTRACTION["unsolved"], "unsolved puzzles have mean $-0.002$"),
        (paper.TIMES_EARLIER, r"approximately $3.1\times$ earlier"),
        (paper.CHECKPOINTS, "across $19$ training checkpoints"),
        (paper.TILT_BOUND["maze"].spread, r"\le 0.04$"),
        (paper.TILT_BOUND["maze"].percent, r"at $2\%$ for $\beta=1$"),
        (paper.STEP_PASSING_BASELINE, "by step~$10$"),
    ],
)
def test_the_papers_other_numbers(found: paper.Value | float, said: str) -> None:
    numbers = list(found) if isinstance(found, tuple) else [found]
    assert [float(x) for x in re.findall(r"(?<![=])-?\d+\.?\d*", said)] == numbers
    if not PAPER.exists():
        pytest.skip("needs ../shared/paper.tex")
    assert said in PAPER.read_text()


def test_what_others_published_costs_what_its_name_says() -> None:
    """Sudoku takes 7 evaluations an outer step, a maze 5; a rollout of D supervision steps 3 D."""
    at = {(part, peer.name): peer for part in paper.FRONTIER for peer in paper.FRONTIER[part]}
    assert at[SUDOKU, "TRM"].evaluations == 48 * 7
    assert at[SUDOKU, "the paper, S=16"].evaluations == 16 * 48 * 7
    assert at[SUDOKU, "PTRM, K=100, D=64"].evaluations == 100 * 64 * 3 * 7
    assert at[SUDOKU, "EqR, 128 x 64"].evaluations == 128 * 64 * 3 * 7
    assert at[MAZE, "TRM"].evaluations == 48 * 5
    assert at[MAZE, "the paper, S=16"].evaluations == 16 * 48 * 5
    said = {SUDOKU: [87.4, 98.0, 98.75, 97.2, 99.79], MAZE: [85.3, 85.3, 86.73]}
    assert {part: [peer.exact for peer in paper.FRONTIER[part]] for part in said} == said
    for part in (SUDOKU, MAZE):
        guided = paper.TABLE1[part, "Test"]["guided"].mean
        assert at[part, "the paper, S=16"].exact == guided


def test_table1_says_how_much_it_is_of(results: StoredResults) -> None:
    notes = table1.section(results).notes
    count = len(failed(results))
    assert notes == (
        "Sudoku-Extreme Test: 120 puzzles, 10 runs of a seed and a fold (the paper: 10,000 "
        "puzzles, 25 runs).",
        f"Sudoku-Extreme DF: {count} puzzles, 10 runs of a seed and a fold (the paper: 1,400 "
        "puzzles, 25 runs).",
        "Maze-Hard Test: 40 puzzles, 10 runs of a seed and a fold (the paper: 1,000 puzzles, 25 "
        "runs).",
    )


def test_table1_asks_the_guided_cloud_for_the_oracle(results: StoredResults) -> None:
    section = table1.section(results)
    means = [float(shard["oracle"].mean()) for shard in runs(results, SUDOKU, "guided")]
    (line,) = rows(section, benchmark="Sudoku-Extreme", split="Test", method="oracle")
    assert (line["exact"], line["sd"]) == pytest.approx(spread(means))
    compared = ours(section, "Sudoku-Extreme Test, oracle")
    assert (compared.ours, compared.our_spread) == pytest.approx(spread(means))
    assert (compared.paper, compared.paper_spread) == (98.0, 0.2)


def test_table1_says_how_far_ours_goes_to_the_oracle(results: StoredResults) -> None:
    section = table1.section(results)
    exact = {line["method"]: line["exact"] for line in
             rows(section, benchmark="Sudoku-Extreme", split="Test")}  # fmt: skip
    way = ours(section, "Sudoku-Extreme Test, share of the way")
    gone, whole = (exact[m] - exact["deterministic"] for m in ("guided", "oracle"))
    assert way.ours == pytest.approx(100 * gone / whole)


def test_table1_measures_mazes_three_ways(results: StoredResults) -> None:
    section = table1.section(results)
    assert section.shown is not None
    assert section.shown.head[1:] == ("exact", "shortest and valid", "valid")
    shown = {line[0]: line[1:] for line in section.shown.rows}
    for method in ("deterministic", "unguided", "guided"):
        mine = runs(results, MAZE, method)
        shares = [100 * float(np.mean([shard[name].mean() for shard in mine]))
                  for name in ("exact", "shortest", "valid")]  # fmt: skip
        assert shown[STYLES[method].label] == tuple(f"{share:.1f}" for share in shares)
        (line,) = rows(section, benchmark="Maze-Hard", method=method)
        assert [line[n] for n in ("exact", "shortest", "valid")] == pytest.approx(shares)
        assert line["evaluations"] == mine[0]["evaluations"][0]


def test_table1_speaks_of_both(results: StoredResults) -> None:
    section = table1.section(results)
    (line,) = rows(section, benchmark="Sudoku-Extreme", split="Test", method="unguided")
    assert f"; unguided {line['exact']:.1f} %, the paper 84.3 %;" in section.panels[0].spoken


def test_fig1_ends_where_table1_is(results: StoredResults) -> None:
    """The last step of a curve is the result, of the oracle too."""
    section, table = fig1_steps.section(results), table1.section(results)
    for split in ("Test", DF):
        for method in table1.METHODS:
            (line,) = rows(table, benchmark="Sudoku-Extreme", split=split, method=method)
            said = ours(section, f"{split}, {STYLES[method].label} at the last step")
            assert (said.paper, said.paper_spread) == (line["paper"], line["paper sd"])
            last = rows(section, split=split, method=method)[-1]
            assert (said.ours, said.our_spread) == (last["exact"], last["sd"])
            shown = next(p for p in section.panels if p.title.endswith(f", {split}")).spoken
            assert f"{STYLES[method].label} {last['exact']:.1f} %" in shown
    means = [float(s["oracle_by_step"][:, 4].mean()) for s in runs(results, SUDOKU, "guided")]
    fifth = rows(section, split="Test", method="oracle")[4]
    assert (fifth["exact"], fifth["sd"]) == pytest.approx(spread(means))


def test_fig1_passes_where_it_is_above_and_not_where_it_is_level() -> None:
    def line(*shares: float) -> tuple[Spread, ...]:
        return tuple(Spread(share, None) for share in shares)

    lines = {"deterministic": line(0.1, 0.2, 0.5), "guided": line(0.4, 0.5, 0.6)}
    assert fig1_steps._passing_step(lines) == 3
    assert fig1_steps._passing_step(lines | {"guided": line(0.1, 0.2, 0.5)}) is None


def test_figs_2_and_5_say_who_stays_in_the_tube(results: StoredResults) -> None:
    for name, part, theirs in (("fig2", SUDOKU, None), ("fig5", MAZE, 100.0)):
        section = ITEMS[name].section(results)
        tubes = results.diagnosis(part)["stability"]["tubes"]
        for alpha in (0.5, 1.0, 1.5):
            (tube,) = (t for t in tubes if (t["noise"], t["alpha"]) == (0.3, alpha))
            said = ours(section, f"stays in the tube of α = {alpha:g} at σ = 0.3")
            assert said.paper == theirs
            assert said.ours == pytest.approx(100 * tube["survival"])


def test_fig2_names_the_best_noise_of_guided(
    results: StoredResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not of unguided, were that better; tubes are those of the paper's alpha."""
    plain = StoredResults.rows
    full = Spread(1.0, None)
    monkeypatch.setattr(StoredResults, "rows", lambda self, jobs: [
        replace(row, exact=full) if row.method == "unguided" else row for row in plain(self, jobs)
    ])  # fmt: skip
    section = ITEMS["fig2"].section(results)
    guided = rows(section, panel="accuracy", method="guided")
    best = ours(section, "noise at which guided").ours
    assert max(line["value"] for line in guided if line["noise"] == best) == max(
        line["value"] for line in guided
    )
    assert "(α = 1.5)" in section.reading
    stays = next(p.spoken for p in section.panels if p.title == "Survival in the tube")
    (tube,) = (t for t in results.diagnosis(SUDOKU)["stability"]["tubes"]
               if (t["noise"], t["alpha"]) == (0.7, 1.5))  # fmt: skip
    assert f"{tube['survival']:.2f} at 0.7" in stays


def test_fig3_asks_the_paper_only_at_its_own_beta(results: StoredResults) -> None:
    study = results.diagnosis(SUDOKU)["alignment"]["halting"]
    assert fig3_alignment._comparisons(SUDOKU, study)[0].paper == 12.5
    assert fig3_alignment._comparisons(SUDOKU, {**study, "beta": 1.0})[0].paper is None


def test_fig3_has_the_study_line_by_line(results: StoredResults) -> None:
    section = ITEMS["fig3"].section(results)
    names = {"score right": "score_right", "sd right": "score_right_std", "bound": "bound",
             "score wrong": "score_wrong", "sd wrong": "score_wrong_std", "gap": "gap",
             "moved": "moved", "spread": "widest_spread", "in-cloud AUROC": "auroc"}  # fmt: skip
    for part, name in ((SUDOKU, "Sudoku-Extreme"), (MAZE, "Maze-Hard")):
        study = results.diagnosis(part)["alignment"]["halting"]
        mine = rows(section, benchmark=name)
        assert [line["outer step"] for line in mine] == list(range(1, 49))
        for head, key in names.items():
            assert [line[head] for line in mine] == study[key]
        assert ours(section, f"{name}, gap at the last step").ours == study["gap"][-1]
        scores, tilt = (p.spoken for p in section.panels if p.title.startswith(name))
        right, wrong = (study[f"score_{word}"][-1] for word in ("right", "wrong"))
        assert f"{right:.3g} of particles that end right, {wrong:.3g} of the others" in scores
        assert tilt == f"The bound is at most {100 * max(study['bound']):.3g} %."


def test_fig4_says_how_many_are_kept(results: StoredResults) -> None:
    shards, _ = fig4_entropy.clouds(results)
    kept = []
    for shard in shards:
        mean = np.array([value[free].astype(float).mean() for value, free in
                         zip(shard["terminal_entropy"], shard["free"], strict=True)])  # fmt: skip
        decile = np.sort(mean)[int(np.ceil(0.9 * len(mean))) - 1]
        kept.append(float((mean <= decile + 1e-9).mean()))
    said = ours(fig4_entropy.section(results), "Test, solved of the").what
    assert said.startswith(f"Test, solved of the {100 * np.mean(kept):.0f} % kept")


def test_fig4_abstains_by_the_entropy_at_the_end(results: StoredResults) -> None:
    """Another path changes nothing of what is kept; the panel speaks of the end, too."""
    shards, _ = fig4_entropy.clouds(results)
    turned = [replace(s, columns={**s.columns, "path_entropy": 1 - s["path_entropy"]})
              for s in shards]  # fmt: skip
    kept = []
    for some in (shards, turned):
        folds = [fig4_entropy.uncertainty([shard], None) for shard in some]
        kept.append(fig4_entropy._comparisons("Test", folds, folds)[1].ours)
    assert kept[0] == kept[1]
    ranked = fig4_entropy.uncertainty(shards, None).figures()["token_auroc"]["terminal"]
    assert f"Test: token AUROC {ranked:.3f}" in fig4_entropy.section(results).panels[-1].spoken


def fold(*entropies: float) -> Uncertainty:
    """Puzzles of one free cell, all of them right."""
    found, value = Uncertainty(), torch.tensor(entropies)[:, None]
    right = torch.ones_like(value, dtype=torch.bool)
    found.add(value, value, right, right, right)
    return found


def test_fig4_counts_the_folds_that_keep_nothing() -> None:
    """They are part of the coverage; those without a puzzle are not."""
    whole, none, some = fold(*[0.1] * 19, 0.9), fold(0.8, 0.9), fold(0.1, 0.9)
    line = fig4_entropy._comparisons(DF, [none, some, Uncertainty()], [whole] * 3)[1]
    assert line.what.startswith("DF, solved of the 25 % kept below the top tenth of Test's H")
    assert line.what.endswith(" (in 1 of 2 folds none)")
    assert (line.ours, line.our_spread) == (100.0, None)
    line = fig4_entropy._comparisons(DF, [none, none], [whole] * 2)[1]
    assert line.what.startswith("DF, solved of the 0 % kept")
    assert line.texts() == ("99.7 ± 0.3 %", "–", "–")


def test_fig6_leaves_no_tilt_at_all_out_of_the_swing(results: StoredResults) -> None:
    jobs = results.sweep_jobs(SUDOKU)
    found = {name: results.rows(jobs[name]) for name in fig6_settings.SWEEPS[SWEEP]}
    usual = fig6_settings._comparisons(SUDOKU, found)
    for name in ("beta", fig6_settings.NEVER):
        found[name][0] = replace(found[name][0], exact=Spread(0.0, None))
    assert fig6_settings._comparisons(SUDOKU, found) == usual


def test_fig6_says_what_more_particles_give(results: StoredResults) -> None:
    section = fig6_settings.section(results)
    for name, flat in (("Sudoku-Extreme", None), ("Maze-Hard", 0.0)):
        exact = {line["value"]: line["exact"] for line in
                 rows(section, benchmark=name, setting="particles")}  # fmt: skip
        rise = ours(section, f"{name}, most particles less one")
        assert rise.paper == flat
        assert rise.ours == pytest.approx(exact[64] - exact[1])
        shares = [line["exact"] for line in rows(section, benchmark=name, setting="beta")
                  if line["value"] and line["resampling"] != "never"]  # fmt: skip
        swing = ours(section, f"{name}, best less worst")
        assert swing.paper == flat
        assert swing.ours == pytest.approx(max(shares) - min(shares))


def test_the_frontiers_table_on_the_page(results: StoredResults) -> None:
    """Shares become points, and a p-value that is not tiny is said."""
    point = frontier.read_frontier(results, SUDOKU).points[0]
    row = replace(point.row, exact=Spread(0.5, None), evaluations=Spread(1234.4, None),
                  puzzles=100)  # fmt: skip
    for p_value, said in ((0.0009, "< 0.001"), (0.001, "0.001"), (0.0312, "0.031")):
        gap = Paired(100, 0.0525, -0.011, 0.094, 7, 2, p_value)
        found = point._replace(row=row, against=gap)
        assert frontier._shown_line(SUDOKU, found)[1:] == (
            "50.00 (40.4 – 59.6)", "1,234", "+5.25 (-1.1 to +9.4)", said,
        )  # fmt: skip
        line: dict[str, Any] = dict(zip(frontier.HEAD, frontier._line(SUDOKU, found), strict=True))
        names = ("adaptive less this, points", "paired 95 % low", "paired 95 % high", "p")
        assert [line[name] for name in names] == pytest.approx([5.25, -1.1, 9.4, p_value])
        assert line["95 % low"] < line["exact"] < line["95 % high"]


def test_the_frontier_compares_like_with_like(results: StoredResults) -> None:
    section = ITEMS["frontier"].section(results)
    mine = rows(section, benchmark="Sudoku-Extreme", split="Test")
    at = {(line["method"], line["setting"]): line for line in mine}
    for peer in paper.FRONTIER[SUDOKU]:
        if peer.nearest is not None:
            said = ours(section, f"{peer.name}, {peer.evaluations:,} evaluations; here")
            here = at[peer.nearest]
            assert (said.paper, said.ours) == (peer.exact, here["exact"])
            assert said.what.endswith(f"{peer.nearest[1]}, {here['evaluations']:,.0f}")
        (line,) = (r for r in rows(section, split="published", benchmark="Sudoku-Extreme")
                   if r["setting"] == f"{peer.name} ({peer.weights})")  # fmt: skip
        assert (line["exact"], line["evaluations"]) == (peer.exact, peer.evaluations)
    best = max(line["exact"] for line in mine if line["method"] == "adaptive")
    assert ours(section, "adaptive (ours)").ours == best
    spoken = next(p for p in section.panels if p.title.startswith("Sudoku-Extreme")).spoken
    one = at["deterministic", "N = 48"]
    assert f"N = 48: {one['exact']:.1f} at {one['evaluations']:,.0f}" in spoken


def test_a_short_run_says_what_it_leaves_out(results: StoredResults) -> None:
    sizes = {SUDOKU: 1500, MAZE: 40}
    targets = {p: replace(results.targets[p], puzzles=n) for p, n in sizes.items()}
    assert describe_reductions("full", targets) == []
    assert describe_reductions("quick", targets) == [
        "2 seeds and 5 folds instead of 5 and 5.",
        "Table 1 and Figures 1, 4 and 7: 1,000 of 1,500 puzzles of Sudoku-Extreme.",
        "The frontier: 400 of 1,500 puzzles of Sudoku-Extreme; 24 of 40 puzzles of Maze-Hard.",
        "Sweeps: 200 of 1,500 puzzles of Sudoku-Extreme; 12 of 40 puzzles of Maze-Hard.",
        "Diagnostics: 64 of 512 puzzles of Sudoku-Extreme; 16 of 40 puzzles of Maze-Hard.",
        "Stability is measured on 8 puzzles instead of 16.",
    ]


def test_fig5_has_percent_and_says_the_end(results: StoredResults) -> None:
    section = ITEMS["fig5"].section(results)
    curves = [line for line in rows(section) if line["training run"] == "sudoku"]
    assert [line["value"] for line in curves if line["panel"] == "halt_accuracy"] == [90.0, 100.0]
    accuracy = next(p for p in section.panels if "how often right" in p.title)
    assert accuracy.spoken.endswith("at the end: sudoku 100.")


def test_fig8_asks_when_each_first_was_where_the_deterministic_model_ends() -> None:
    """Not when it ended, nor where it was best."""
    plain = [(10, 50.0), (20, 60.0), (30, 70.0), (40, 60.0)]
    guided = [(10, 60.0), (20, 80.0), (30, 80.0), (40, 80.0)]
    lines = {"deterministic": plain, "unguided": plain, "guided": guided}
    assert fig8_training._crossings(lines) == (60.0, 20, 10)
    assert fig8_training._times_earlier(lines) == 2.0
